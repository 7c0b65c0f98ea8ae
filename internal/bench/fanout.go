package bench

import (
	"context"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// runFanOut has one connection change a node that many sessions watch, each by
// a getData that leaves a watch. A round is one change; the watches of the next
// one are set outside of what is measured.
func runFanOut(ctx context.Context, w workload, o Options) (Result, error) {
	var opening tally
	meter := newMeter()
	c, err := newCrowd(ctx, o, o.Watchers, &opening)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	writer, err := dialLane(ctx, o, 0, laneBytes)
	if err != nil {
		return Result{}, err
	}
	defer writer.closeSession()

	var t tally
	path := nodePath(o, 0)
	watch := proto.PathWatch{Path: path, Watch: true}
	set := proto.SetDataRequest{Path: path, Data: value(o), Version: -1}
	body := watch.Append(nil)
	win := o.window(time.Now())
	var took time.Duration
	var rounds []float64
	for more := true; more || len(rounds) < o.Rounds; {
		c.forget(o.Watchers)
		if err := c.send(proto.OpGetData, body); err != nil {
			return Result{}, err
		}
		if err := c.await(ctx, o.SessionTimeout); err != nil {
			return Result{}, err
		}
		c.forget(o.Watchers)
		begin := time.Now()
		start := writer.begin(proto.OpSetData)
		writer.out = set.Append(writer.out)
		writer.end(start)
		if err := writer.flush(); err != nil {
			return Result{}, err
		}
		if err := c.await(ctx, o.SessionTimeout); err != nil {
			return Result{}, err
		}
		now := time.Now()
		if err := writer.await(nil); err != nil {
			return Result{}, err
		}
		var counts bool
		if counts, more = win.count(now); counts || !more {
			t.operations += int64(o.Watchers)
			t.latency.add(now.Sub(begin))
			rounds = append(rounds, millis(now.Sub(begin)))
			took += now.Sub(begin)
		}
	}
	o.Connections, o.Outstanding = o.Watchers, 1
	r := t.result(w, o, took)
	r.RoundMillis, r.Client = rounds, meter.read()
	return r, nil
}
