package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// errLost is returned when a watcher's connection ended during a run.
var errLost = errors.New("bench: a connection was lost")

// runFanOut has one connection change a node that many watch with persistent
// watches. A round is one change; the next one starts when every watcher has
// its event.
func runFanOut(ctx context.Context, w workload, o Options) (Result, error) {
	watchers, closeAll, err := o.dialAll(ctx, o.Watchers)
	if err != nil {
		return Result{}, err
	}
	defer closeAll()
	writers, closeWriter, err := o.dialAll(ctx, 1)
	if err != nil {
		return Result{}, err
	}
	defer closeWriter()

	path := nodePath(o, 0)
	watch := proto.PathType{Path: path, Type: proto.AddWatchPersistent}
	for _, c := range watchers {
		if _, err := c.Do(proto.OpAddWatch, watch.Append(nil)).Wait(ctx); err != nil {
			return Result{}, err
		}
	}
	var (
		arrived atomic.Int64
		round   = make(chan struct{}, 1)
		group   sync.WaitGroup
		all     = int64(len(watchers))
	)
	for _, c := range watchers {
		group.Go(func() {
			for range c.Events() {
				if arrived.Add(1) == all {
					round <- struct{}{}
				}
			}
		})
	}
	t, elapsed, err := rounds(ctx, writers[0], watchers, path, o, &arrived, round)
	for _, c := range watchers {
		c.Drop()
	}
	group.Wait()
	if err != nil {
		return Result{}, err
	}
	o.Connections, o.Outstanding = o.Watchers, 1
	return t.result(w, o, elapsed), nil
}

// rounds changes the node again and again.
func rounds(ctx context.Context, writer *client.Conn, watchers []*client.Conn, path string, o Options,
	arrived *atomic.Int64, round <-chan struct{}) (*tally, time.Duration, error) {
	var (
		t    tally
		last time.Time
		win  = o.window(time.Now())
		set  = proto.SetDataRequest{Path: path, Data: value(o), Version: -1}
		body = set.Append(nil)
	)
	for more := true; more; {
		arrived.Store(0)
		begin := time.Now()
		call := writer.Do(proto.OpSetData, body)
		select {
		case <-round:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(o.SessionTimeout):
			return nil, 0, fmt.Errorf("%w: %d of %d events came", errLost, arrived.Load(), len(watchers))
		}
		now := time.Now()
		if _, err := call.Wait(ctx); err != nil {
			return nil, 0, err
		}
		var counts bool
		if counts, more = win.count(now); counts {
			t.operations += int64(len(watchers))
			t.latency.add(now.Sub(begin))
			last = now
		}
	}
	return &t, win.elapsed(last), nil
}
