package bench

import (
	"errors"
	"sync"
	"time"
)

// runOpen sends requests by the clock, whatever the answers do, o.Rate in a
// second over all connections. The k-th request of a connection has its time in
// the plan; its latency counts from then and not from when it was sent, so a
// server that stands still for a second shows in the latency of all the
// requests that should have gone out in that second (coordinated omission).
func runOpen(w workload, o Options, lanes []*lane, tallies []tally, errs []error, win window) {
	var (
		group    sync.WaitGroup
		interval = time.Duration(float64(time.Second) * float64(len(lanes)) / o.Rate)
		begin    = win.start.Add(-o.WarmUp) // the plan does not wait for a busy machine
		plans    = make([]plan, len(lanes))
	)
	for i, l := range lanes {
		plans[i] = plan{first: begin.Add(interval * time.Duration(i) / time.Duration(len(lanes))), interval: interval, end: win.end}
		group.Go(func() { errs[i] = l.receive(plans[i], win, &tallies[i]) })
	}
	group.Go(func() { pace(o, w, lanes, plans) })
	group.Wait()
}

// plan says when the requests of one connection are due.
type plan struct {
	first, end time.Time
	interval   time.Duration
}

// due is when request number xid, from 1, is due.
func (p plan) due(xid int32) time.Time { return p.first.Add(time.Duration(xid-1) * p.interval) }

// requests is how many the plan has.
func (p plan) requests() int32 { return int32(p.end.Sub(p.first)/p.interval) + 1 }

// receive takes the answers of a plan.
func (l *lane) receive(p plan, win window, t *tally) error {
	for all := p.requests(); l.answers < all; {
		if err := l.read(); err != nil {
			return err
		}
		now := time.Now()
		before := t.operations
		for l.complete() {
			xid, code, err := l.answer(l.take())
			if err != nil {
				return err
			}
			if xid < 0 {
				continue
			}
			// What counts is decided by the plan, so that late answers are in.
			if due := p.due(xid); !due.Before(win.start) && due.Before(win.end) {
				t.count(now, now.Sub(due), code)
			}
		}
		t.slice(now, before)
		// A server that cannot keep up is not waited for without end.
		if now.After(p.end.Add(overrun)) {
			return errOverrun
		}
	}
	return nil
}

// overrun is how long answers of an open loop may come after its end: 30 s.
const overrun = 30 * time.Second

// errOverrun is returned when a server cannot keep up with the rate.
var errOverrun = errors.New("bench: the server cannot keep up with the rate: it is behind by more than half a minute")

// paceStep is the time between two looks at the plans: requests go out at most
// so much late, which their latency includes.
const paceStep = 100 * time.Microsecond

// pace sends what is due on every connection until all plans are fulfilled. It
// keeps a thread to itself, because the runtime's timers are a millisecond
// coarse.
func pace(o Options, w workload, lanes []*lane, plans []plan) {
	defer keepThread()()
	next := make([]generator, len(lanes))
	for i := range lanes {
		next[i] = w.generator(o, i)
	}
	for open := len(lanes); open > 0; {
		now := time.Now()
		open = 0
		for i, l := range lanes {
			p := plans[i]
			for l.sent < p.requests() && !p.due(l.sent+1).After(now) {
				next[i](int(l.sent), l)
			}
			if l.flush() != nil { // the reader meets the same end
				l.sent = p.requests()
			}
			if l.sent < p.requests() {
				open++
			}
		}
		nap(paceStep)
	}
}
