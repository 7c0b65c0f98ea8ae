package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// crowd is many sessions that do little: one goroutine and half a kilobyte
// each, and one goroutine that pings for all of them.
type crowd struct {
	lanes []*lane
	// answers and events count frames since the last forget; when one of them
	// reaches target, full is told. All are set by forget.
	answers, events atomic.Int64
	target          atomic.Int64
	full            chan struct{}
	lost            chan error // holds the first error
	failed          atomic.Int64
	stop            chan struct{}
	running         sync.WaitGroup
}

// newCrowd opens sessions, which all must open.
func newCrowd(ctx context.Context, o Options, n int, t *tally) (*crowd, error) {
	var mu sync.Mutex
	c := &crowd{lanes: make([]*lane, n), full: make(chan struct{}, 1), lost: make(chan error, 1), stop: make(chan struct{})}
	err := inParallel(n, func(i int) (err error) {
		begin := time.Now()
		if c.lanes[i], err = dialLane(ctx, o, i, crowdBytes); err != nil {
			return fmt.Errorf("session %d of %d: %w", i+1, n, err)
		}
		took := time.Since(begin)
		mu.Lock()
		t.operations++
		t.latency.add(took)
		mu.Unlock()
		return nil
	})
	for _, l := range c.lanes {
		if l != nil {
			c.running.Go(func() { c.listen(l) })
		}
	}
	c.running.Go(c.ping)
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// listen takes what comes on one session.
func (c *crowd) listen(l *lane) {
	for {
		frame, err := l.frame()
		if err != nil {
			select {
			case c.lost <- err:
			default:
			}
			return
		}
		xid, code, err := l.answer(frame)
		switch {
		case err != nil || xid > 0 && code != proto.ErrOK && code != proto.ErrNoNode:
			c.failed.Add(1)
		case xid == proto.XidNotification:
			c.reached(c.events.Add(1))
		case xid > 0:
			c.reached(c.answers.Add(1))
		}
	}
}

func (c *crowd) reached(count int64) {
	if count == c.target.Load() {
		select {
		case c.full <- struct{}{}:
		default:
		}
	}
}

// forget begins to count anew, up to target.
func (c *crowd) forget(target int) {
	select {
	case <-c.full:
	default:
	}
	c.target.Store(int64(target))
	c.answers.Store(0)
	c.events.Store(0)
}

// await waits for the target.
func (c *crowd) await(ctx context.Context, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.full:
		if n := c.failed.Load(); n > 0 {
			return fmt.Errorf("%w: %d wrong ones", errAnswer, n)
		}
		return nil
	case err := <-c.lost:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: %d answers and %d events of %d came", errLost, c.answers.Load(), c.events.Load(), c.target.Load())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends the same request on all sessions.
func (c *crowd) send(op proto.OpCode, body []byte) error {
	for _, l := range c.lanes {
		l.mu.Lock()
		start := l.begin(op)
		l.out = append(l.out, body...)
		l.end(start)
		err := l.flush()
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// ping keeps all sessions alive, spread over a third of their timeout.
func (c *crowd) ping() {
	timeout := 30 * time.Second
	if len(c.lanes) > 0 && c.lanes[0] != nil {
		timeout = c.lanes[0].timeout
	}
	const parts = 100
	tick := time.NewTicker(max(timeout/3/parts, time.Millisecond))
	defer tick.Stop()
	for part := 0; ; part = (part + 1) % parts {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		for i := part; i < len(c.lanes); i += parts {
			l := c.lanes[i]
			if l == nil {
				continue
			}
			l.mu.Lock()
			l.ping()
			_ = l.flush() // the reader meets the same end
			l.mu.Unlock()
		}
	}
}

// close ends the sessions.
func (c *crowd) close() {
	close(c.stop)
	_ = inParallel(len(c.lanes), func(i int) error { // closing has no errors
		if l := c.lanes[i]; l != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.end(l.begin(proto.OpCloseSession))
			_ = l.flush()
			// The server closes, which ends the reader; if it does not:
			_ = l.socket.SetReadDeadline(time.Now().Add(10 * time.Second))
		}
		return nil
	})
	c.running.Wait()
	for _, l := range c.lanes {
		if l != nil {
			_ = l.socket.Close()
		}
	}
}

// runSessions opens sessions and holds them.
func runSessions(ctx context.Context, w workload, o Options) (Result, error) {
	var t tally
	meter, begin := newMeter(), time.Now()
	c, err := newCrowd(ctx, o, o.Watchers, &t)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	took := time.Since(begin)
	if o.WatchesEach > 0 {
		if err := c.watch(ctx, o); err != nil {
			return Result{}, err
		}
	}
	o.tell(fmt.Sprintf("%d sessions are open", o.Watchers))
	timer := time.NewTimer(o.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // held long enough
	case err := <-c.lost:
		return Result{}, err
	}
	o.Connections, o.Outstanding = o.Watchers, 1
	r := t.result(w, o, took)
	r.Client = meter.read()
	return r, nil
}

// watch has each session watch nodes that do not exist, all of them different.
func (c *crowd) watch(ctx context.Context, o Options) error {
	const atOnce = 1000
	for from := 0; from < o.WatchesEach; from += atOnce {
		n := min(atOnce, o.WatchesEach-from)
		c.forget(n * len(c.lanes))
		for i, l := range c.lanes {
			l.mu.Lock()
			for k := range n {
				exists := proto.PathWatch{Path: fmt.Sprintf("%s/watched/%d/%d", o.Root, i, from+k), Watch: true}
				start := l.begin(proto.OpExists)
				l.out = exists.Append(l.out)
				l.end(start)
			}
			err := l.flush()
			l.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if err := c.await(ctx, o.SessionTimeout); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) tell(line string) {
	if o.Progress != nil {
		o.Progress(line)
	}
}
