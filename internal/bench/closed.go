package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// runStream keeps requests in work on every connection until the window ends,
// or, with a rate, sends them by the clock.
func runStream(ctx context.Context, w workload, o Options) (Result, error) {
	lanes, closeAll, err := o.dialLanes(ctx, o.Connections, laneBytes)
	if err != nil {
		return Result{}, err
	}
	defer closeAll()
	cut := context.AfterFunc(ctx, func() {
		for _, l := range lanes {
			_ = l.socket.SetReadDeadline(time.Now())
		}
	})
	defer cut()
	var (
		group   sync.WaitGroup
		tallies = make([]tally, len(lanes))
		errs    = make([]error, len(lanes))
		meter   = newMeter()
		win     = o.window(time.Now())
	)
	for i := range tallies {
		tallies[i].timeline = win.timeline
	}
	if o.Rate > 0 {
		runOpen(w, o, lanes, tallies, errs, win)
	} else {
		for i, l := range lanes {
			next := w.generator(o, i)
			group.Go(func() { errs[i] = l.stream(ctx, o.Outstanding, next, win, &tallies[i]) })
		}
		group.Wait()
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	return gather(w, o, tallies, win, meter), nil
}

// gather merges what the connections counted.
func gather(w workload, o Options, tallies []tally, win window, meter *meter) Result {
	var total tally
	for i := range tallies {
		total.merge(&tallies[i])
	}
	r := total.result(w, o, win.elapsed(total.last))
	r.Client = meter.read()
	r.Timeline = win.timeline.report()
	return r
}

// stream drives one connection: all answers that have come are taken, each is
// followed by the next request of its slot, and what that gives is written in
// one piece. It returns when nothing is in work any more.
func (l *lane) stream(ctx context.Context, outstanding int, next generator, win window, t *tally) error {
	sent := make([]time.Time, outstanding)
	now := time.Now()
	for i := range sent {
		next(i, l)
		sent[i] = now
	}
	if err := l.flush(); err != nil {
		return err
	}
	for more := true; l.answers < l.sent; {
		if err := l.read(); err != nil {
			return err
		}
		now = time.Now()
		before := t.operations
		for l.complete() {
			xid, code, err := l.answer(l.take())
			if err != nil {
				return err
			}
			if xid < 0 {
				continue
			}
			slot := int(xid-1) % outstanding
			var counts bool
			if counts, more = win.countMore(now, more); counts {
				t.count(now, now.Sub(sent[slot]), code)
			}
			if more && ctx.Err() == nil {
				next(slot, l)
				sent[slot] = now
			}
		}
		t.slice(now, before)
		if err := l.flush(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// count notes an answer that came in the window.
func (t *tally) count(now time.Time, latency time.Duration, code proto.ErrCode) {
	t.last = now
	if code != proto.ErrOK {
		t.fail(code)
		return
	}
	t.operations++
	t.latency.add(latency)
}

// slice notes in the timeline what was counted since before.
func (t *tally) slice(now time.Time, before int64) {
	if t.timeline != nil && t.operations > before {
		t.timeline.add(now, t.operations-before)
	}
}
