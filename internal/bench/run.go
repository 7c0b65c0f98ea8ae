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

// Run prepares the nodes, runs the workloads one after the other, and deletes
// what it made.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := prepare(ctx, o); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	defer func() {
		// Also after an interrupt: the nodes must not stay.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if cleanErr := cleanUp(clean, o); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", cleanErr))
		}
	}()
	for _, name := range o.Workloads {
		for _, w := range workloads() {
			if w.name != name {
				continue
			}
			result, err := w.run(ctx, w, o)
			if err != nil {
				return results, fmt.Errorf("%s: %w", name, err)
			}
			results = append(results, result)
		}
	}
	return results, nil
}

func (o Options) dial(ctx context.Context) (*client.Conn, error) {
	return client.Dial(ctx, o.Addr, client.Options{Timeout: o.SessionTimeout})
}

// dialAll opens connections; close ends their sessions.
func (o Options) dialAll(ctx context.Context, n int) (conns []*client.Conn, closeAll func(), err error) {
	closeAll = func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		for _, c := range conns {
			c.Close(clean) // a session that does not close expires
		}
	}
	for range n {
		c, err := o.dial(ctx)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("connection %d of %d: %w", len(conns)+1, n, err)
		}
		conns = append(conns, c)
	}
	return conns, closeAll, nil
}

// prepare makes the root and its nodes; those that are left from a run that was
// killed are used again.
func prepare(ctx context.Context, o Options) error {
	c, err := o.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Drop()
	data := value(o)
	calls := []*client.Call{c.Do(proto.OpCreate, createBody(o.Root, nil))}
	for i := range o.Nodes {
		calls = append(calls, c.Do(proto.OpCreate, createBody(nodePath(o, i), data)))
	}
	for _, call := range calls {
		if _, err := call.Wait(ctx); err != nil && client.Code(err) != proto.ErrNodeExists {
			return err
		}
	}
	return c.Close(ctx)
}

func createBody(path string, data []byte) []byte {
	request := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL, TTL: -1}
	return request.Append(nil, proto.OpCreate)
}

func cleanUp(ctx context.Context, o Options) error {
	c, err := o.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Drop()
	names, _, err := c.Children(ctx, o.Root, false)
	if err != nil {
		return err
	}
	var calls []*client.Call
	for _, name := range names {
		remove := proto.PathVersion{Path: o.Root + "/" + name, Version: -1}
		calls = append(calls, c.Do(proto.OpDelete, remove.Append(nil)))
	}
	for _, call := range calls {
		if _, err := call.Wait(ctx); err != nil && client.Code(err) != proto.ErrNoNode {
			return err
		}
	}
	if err := c.Delete(ctx, o.Root, -1); err != nil {
		return err
	}
	return c.Close(ctx)
}

// window is the time in which answers count.
type window struct {
	start, end time.Time
	// left counts down the answers that are still wanted; nil without a limit.
	left *atomic.Int64
}

func (o Options) window(now time.Time) window {
	w := window{start: now.Add(o.WarmUp), end: now.Add(o.WarmUp + o.Duration)}
	if o.Requests > 0 {
		w.left = new(atomic.Int64)
		w.left.Store(o.Requests)
	}
	return w
}

// count reports whether an answer that came now counts, and whether more are
// wanted after it.
func (w *window) count(now time.Time) (counts, more bool) {
	switch {
	case now.Before(w.start):
		return false, true
	case now.After(w.end):
		return false, false
	case w.left == nil:
		return true, true
	}
	left := w.left.Add(-1)
	return left >= 0, left > 0
}

// elapsed is the time measured, given when the last answer counted.
func (w *window) elapsed(last time.Time) time.Duration {
	if w.left == nil {
		return w.end.Sub(w.start)
	}
	return max(last.Sub(w.start), time.Nanosecond)
}

// runStream keeps requests in work on every connection until the window ends.
func runStream(ctx context.Context, w workload, o Options) (Result, error) {
	conns, closeAll, err := o.dialAll(ctx, o.Connections)
	if err != nil {
		return Result{}, err
	}
	defer closeAll()
	var (
		group   sync.WaitGroup
		tallies = make([]tally, len(conns))
		lasts   = make([]time.Time, len(conns))
		errs    = make([]error, len(conns))
		win     = o.window(time.Now())
	)
	for i, c := range conns {
		next := w.generator(o, i)
		group.Go(func() { lasts[i], errs[i] = stream(ctx, c, o.Outstanding, next, win, &tallies[i]) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	var total tally
	var last time.Time
	for i := range tallies {
		total.merge(&tallies[i])
		if lasts[i].After(last) {
			last = lasts[i]
		}
	}
	return total.result(w, o, win.elapsed(last)), nil
}

// stream drives one connection, and returns when its last answer that counted
// came.
func stream(ctx context.Context, c *client.Conn, outstanding int, next generator, win window, t *tally) (last time.Time, err error) {
	done := make(chan *client.Call, outstanding)
	sent := make([]time.Time, outstanding)
	for i := range outstanding {
		call := &client.Call{Tag: i, Done: done}
		next(i, call)
		sent[i] = time.Now()
		c.Go(call)
	}
	for running := outstanding; running > 0; {
		call := <-done
		now := time.Now()
		if call.Err != nil {
			return last, call.Err
		}
		counts, more := win.count(now)
		switch {
		case counts && call.Header.Err != proto.ErrOK:
			t.fail(call.Header.Err)
		case counts:
			t.operations++
			t.latency.add(now.Sub(sent[call.Tag]))
			last = now
		}
		if !more || ctx.Err() != nil {
			running--
			continue
		}
		next(call.Tag, call)
		sent[call.Tag] = now
		c.Go(call)
	}
	return last, ctx.Err()
}
