package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// runConnect opens and closes sessions on all connections at once.
func runConnect(ctx context.Context, w workload, o Options) (Result, error) {
	var (
		group   sync.WaitGroup
		tallies = make([]tally, o.Connections)
		lasts   = make([]time.Time, o.Connections)
		errs    = make([]error, o.Connections)
		meter   = newMeter()
		win     = o.window(time.Now())
	)
	for i := range o.Connections {
		group.Go(func() { lasts[i], errs[i] = connect(ctx, o, win, &tallies[i]) })
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
	o.Outstanding = 1
	r := total.result(w, o, win.elapsed(last))
	r.Client = meter.read()
	return r, nil
}

func connect(ctx context.Context, o Options, win window, t *tally) (last time.Time, err error) {
	for more := true; more; {
		begin := time.Now()
		c, err := o.dial(ctx)
		if err != nil {
			return last, err
		}
		opened := time.Now()
		if err := c.Close(ctx); err != nil {
			return last, err
		}
		now := time.Now()
		var counts bool
		if counts, more = win.count(now); counts {
			t.operations++
			t.latency.add(opened.Sub(begin))
			last = now
		}
	}
	return last, nil
}
