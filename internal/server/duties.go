package server

import (
	"slices"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
)

// duties are what a leader does by time: it proposes to close sessions that
// are due, and to delete containers and TTL nodes that may go. They propose
// with the fact that they saw; apply checks it again and may do nothing.
type duties struct {
	server *Server

	mu   sync.Mutex
	quit chan struct{} // closed to end the running ones; nil while none run
	done sync.WaitGroup
}

// start begins the duties, with every session given its full timeout. The
// table is read and the tracker seeded under one lock, so that no renewal
// falls between.
func (d *duties) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quit != nil {
		return
	}
	d.reseed()
	d.quit = make(chan struct{})
	d.done.Add(3)
	s := d.server
	s.clock.Begin()
	s.clock.Begin()
	go d.expire(d.quit)
	go d.reap(d.quit)
	go d.raise(d.quit)
	if s.distributed {
		d.done.Add(1)
		go d.reconfigure(d.quit)
	}
}

// stop ends the duties and waits for them.
func (d *duties) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quit == nil {
		return
	}
	close(d.quit)
	d.quit = nil
	d.done.Wait()
}

func (d *duties) reseed() {
	s := d.server
	s.state.View(func(v state.View) { s.tracker.Reseed(v.Table.All(), s.clock.Monotonic()) })
}

// expire is the goroutine of the expirer. It looks at each tick, when all
// deadlines of that tick's bucket have come.
func (d *duties) expire(quit chan struct{}) {
	defer d.done.Done()
	s := d.server
	tick := s.config.Session.TickTime
	for {
		next := (s.clock.Monotonic()/tick + 1) * tick
		if !s.clock.SleepUntil(next, quit) {
			return
		}
		// A process that was stopped has not heard its clients meanwhile; they
		// must not pay for that.
		if late := s.clock.Monotonic() - next; late > tick/2 {
			s.logger.Warn("the expirer was held up; sessions get their full timeout again", "late", late)
			s.logMetrics.pauseTime.Observe(late.Milliseconds())
			d.reseed()
			continue
		}
		s.collectHeard()
		d.closeDue(s.tracker.Due(s.clock.Monotonic()))
	}
}

// dueNamedMax is how many due sessions of one tick are named in the log: 8.
const dueNamedMax = 8

// closeDue proposes to close the sessions whose time is up.
func (d *duties) closeDue(due []session.Due) {
	pardoned := d.server.heard.pardon(due)
	due = slices.DeleteFunc(due, func(one session.Due) bool { return pardoned[one.ID] })
	for i, one := range due {
		if i < dueNamedMax {
			d.server.logger.Info("proposing to close a session whose time is up", "session", one.ID.String())
		}
		d.propose(proto.Txn{
			TxnHeader: proto.TxnHeader{Session: one.ID, Type: proto.OpExpireSession},
			Body:      state.ExpireBody(one.Generation),
		})
	}
	if more := len(due) - dueNamedMax; more > 0 {
		d.server.logger.Info("proposing to close more sessions whose time is up", "sessions", more)
	}
}

// lastHeard is when the connection was last heard. One with requests in work
// may be held back from reading, and its pings wait in the socket: it is not
// silent, the server is slow.
func (c *conn) lastHeard(now time.Duration) time.Duration {
	if c.queue.length() > 0 || c.behindReads.Load() {
		return now
	}
	return time.Duration(c.heard.Load())
}

// collectHeard tells the tracker when each connection was last heard.
func (s *Server) collectHeard() {
	now := s.clock.Monotonic()
	for _, c := range s.conns.all() {
		if id := c.SessionID(); id != 0 && !c.Gone() {
			s.tracker.Touch(id, c.lastHeard(now))
		}
	}
	if s.embedding.Connected != nil {
		for _, id := range s.embedding.Connected() {
			s.tracker.Touch(id, s.clock.Monotonic())
		}
	}
}

// reap is the goroutine of the janitor.
func (d *duties) reap(quit chan struct{}) {
	defer d.done.Done()
	s := d.server
	c := &s.config.Containers
	for {
		if !s.clock.SleepUntil(s.clock.Monotonic()+c.CheckInterval, quit) {
			return
		}
		var due []tree.Reap
		s.state.View(func(v state.View) {
			due = v.Tree.Reapable(s.leaderClock.now().UnixMilli(), c.MaxNeverUsedInterval.Milliseconds(), c.MaxPerMinute)
		})
		// At most MaxPerMinute of them a minute, evenly.
		pace := time.Minute / time.Duration(c.MaxPerMinute)
		begin := s.clock.Monotonic()
		for i, r := range due {
			d.propose(proto.Txn{
				TxnHeader: proto.TxnHeader{Type: proto.OpDeleteContainer}, Body: tree.AppendReap(nil, r)})
			if !s.clock.SleepUntil(begin+time.Duration(i+1)*pace, quit) {
				return
			}
		}
	}
}

// propose hands over a command of the server's own. If consensus does not take
// it, the next round proposes again.
func (d *duties) propose(t proto.Txn) {
	if err := d.server.node.Propose(0, d.server.encode(&t)); err != nil {
		d.server.logger.Debug("a proposal of the server itself was not taken", "type", t.Type.String(), "error", err)
	}
}
