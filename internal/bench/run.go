package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/client"
)

// Run prepares the nodes, runs the workloads one after the other, and deletes
// what it made.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	prepared := false
	defer func() {
		if o.Keep || o.Filled {
			return
		}
		// Also after an interrupt: the nodes must not stay.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
		defer cancel()
		if cleanErr := cleanUp(clean, o); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", cleanErr))
		}
	}()
	for _, name := range o.Workloads {
		w, _ := find(name) // Validate has found it
		if !w.own && !o.Filled && !prepared {
			if err := prepare(ctx, o); err != nil {
				return results, fmt.Errorf("prepare: %w", err)
			}
			prepared = true
		}
		result, err := w.run(ctx, w, o)
		if err != nil {
			return results, fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// cleanPatience is how long the nodes may take to be deleted: 10 min, for
// millions of them.
const cleanPatience = 10 * time.Minute

func (o Options) dial(ctx context.Context) (*client.Conn, error) {
	return client.Dial(ctx, o.addresses()[0], client.Options{Timeout: o.SessionTimeout})
}

// dialLanes opens connections; close ends their sessions.
func (o Options) dialLanes(ctx context.Context, n, bufferBytes int) (lanes []*lane, closeAll func(), err error) {
	lanes = make([]*lane, n)
	closeAll = func() {
		_ = inParallel(n, func(i int) error { // closing has no errors
			if lanes[i] != nil {
				lanes[i].closeSession()
			}
			return nil
		})
	}
	err = inParallel(n, func(i int) (err error) {
		lanes[i], err = dialLane(ctx, o, i, bufferBytes)
		return err
	})
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return lanes, closeAll, nil
}

// dialers is how many connections are opened, or closed, at the same time.
const dialers = 32

// inParallel calls f for 0 to n-1, several at a time, until one fails, and
// returns the first error.
func inParallel(n int, f func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		first = make(chan error, 1)
	)
	for range min(n, dialers) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < n && len(first) == 0; i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					select {
					case first <- err:
					default:
					}
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-first:
		return err
	default:
		return nil
	}
}

// window is the time in which answers count.
type window struct {
	start, end time.Time
	// left counts down the answers that are still wanted; nil without a limit.
	left     *atomic.Int64
	timeline *timeline // nil for none
}

func (o Options) window(now time.Time) window {
	w := window{start: now.Add(o.WarmUp), end: now.Add(o.WarmUp + o.Duration)}
	if o.Requests > 0 {
		w.left = new(atomic.Int64)
		w.left.Store(o.Requests)
	}
	w.timeline = newTimeline(o, w)
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

// countMore is count for a connection that no more requests are wanted of once
// more has been false.
func (w *window) countMore(now time.Time, more bool) (counts, stillMore bool) {
	counts, still := w.count(now)
	return counts, more && still
}

// elapsed is the time measured, given when the last answer counted.
func (w *window) elapsed(last time.Time) time.Duration {
	if w.left == nil {
		return w.end.Sub(w.start)
	}
	return max(last.Sub(w.start), time.Nanosecond)
}
