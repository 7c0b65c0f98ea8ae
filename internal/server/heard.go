package server

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
)

/*
Who has been heard. The leader alone judges whether a session's time is up, but
clients talk to any server. So each server reports to the leader which sessions
it has heard, and the leader confirms the report once a majority has confirmed
that it still leads.

	server ── heard: when built, (session, ago)… ──► leader: Tracker.Touch
	server ◄─ confirmed: whose, when built ───────── leader, after VerifyLeader

A server that is cut off goes on for a while for clients that only read. It must
not answer a session that the majority may have closed meanwhile: its client
would believe that it holds a lock which is somebody else's. So a connection is
closed once no report has been confirmed for two thirds of its session's
timeout. A confirmation speaks of the moment when its report was built, so no
clocks are compared; one that is meant for the former process of this server, whose
clock began elsewhere, is none.
*/

// Kinds of messages between servers: the first byte.
const (
	messageHeard     = 'H' // when built, then (session, nanoseconds ago) each
	messageIdle      = 'I' // when built; there is no connection
	messageConfirmed = 'C' // server, when built
	messageDigest    = 'D' // zxid, tree digest, command level, hash of the sessions
	messageDiffers   = 'X' // server, what differs
)

// heard is what a server of an ensemble knows about its reports and, where it
// leads, about those of the others.
type heard struct {
	server *Server
	// base is added to what this process calls the time of a report: a number of its
	// own, so that what an earlier one built cannot be taken for a report of this one.
	base int64
	// confirmed is the monotonic time of the last report that was confirmed;
	// at the leader, of its own last confirmation by a majority.
	confirmed atomic.Int64
	doubted   chan struct{} // capacity 1: at the leader, a confirmation is owed
	resting   atomic.Bool   // the report loop waits longer, because there is no connection
	appeared  chan struct{} // capacity 1: one came meanwhile

	mu        sync.Mutex
	owed      map[int]int64         // guarded by mu; by server, the newest report to confirm
	overdueAt map[int]time.Duration // guarded by mu; by server, when it should have reported again
	pardoned  map[int]bool          // guarded by mu; servers whose sessions were given time since their last report
}

func newHeard(s *Server) *heard {
	return &heard{server: s, base: rand.Int64N(1 << 61), doubted: make(chan struct{}, 1), appeared: make(chan struct{}, 1),
		owed: map[int]int64{}, overdueAt: map[int]time.Duration{}, pardoned: map[int]bool{}}
}

// doubt asks for a confirmation by a majority.
func (k *heard) doubt() {
	select {
	case k.doubted <- struct{}{}:
	default:
	}
}

// interval is the time between two reports: half a tick, or less where shorter
// sessions are allowed.
func (k *heard) interval() time.Duration {
	c := &k.server.config.Session
	return max(min(c.TickTime/2, c.MinTimeout/8), 10*time.Millisecond)
}

// rest is the time between two reports of a server without connections.
func (k *heard) rest() time.Duration { return 4 * k.interval() }

// appear says that there is a connection.
func (k *heard) appear() {
	if k.resting.Load() {
		select {
		case k.appeared <- struct{}{}:
		default:
		}
	}
}

// pause waits for the time of the next report. It returns false when the server
// stops.
func (k *heard) pause() bool {
	k.resting.Store(true) // before the count, so that a connection is seen by it or says that it appears
	defer k.resting.Store(false)
	if k.server.conns.count() == 0 {
		timer := time.NewTimer(k.rest())
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-k.server.stopped:
			return false
		case <-k.appeared:
		}
	}
	return k.server.pause(k.interval())
}

// report is a goroutine. What has not been confirmed is reported again. A server
// without connections sends an idle report, which needs no confirmation and says
// that this server is not the reason why sessions of it are silent.
func (k *heard) report() {
	s := k.server
	defer s.running.Done()
	for k.pause() {
		now := s.clock.Monotonic()
		confirmed := time.Duration(k.confirmed.Load())
		all := s.conns.all()
		kind := byte(messageHeard)
		if len(all) == 0 {
			kind = messageIdle
		} else if s.leading.Load() {
			k.doubt()
		}
		report := proto.AppendLong([]byte{kind}, k.base+int64(now))
		for _, c := range all {
			if k.doubtful(c, now) {
				go c.close(reasonNotConfirmed, "")
				continue
			}
			at := c.lastHeard(now)
			if id := c.SessionID(); id != 0 && at > confirmed-k.interval() && !c.Gone() {
				report = proto.AppendLong(proto.AppendLong(report, int64(id)), int64(now-at))
			}
		}
		s.node.Send(report)
		if digest := s.divergence.newest(); digest != nil {
			s.node.Send(digest)
		}
	}
}

// doubtful tells whether the session of a connection may have been closed
// without this server knowing.
func (k *heard) doubtful(c *conn, now time.Duration) bool {
	if !k.server.distributed || k.server.embedding.Connected != nil || c.local.Load() {
		return false // nobody else can end a local session; with a clock moved by hand, what is connected counts as heard
	}
	timeout := time.Duration(c.timeout.Load()) * time.Millisecond
	since := time.Duration(max(k.confirmed.Load(), c.owned.Load()))
	return timeout > 0 && now-since > timeout*2/3
}

// confirm is a goroutine: where this server leads and has connections or reports,
// a majority confirms that it leads, and then the reports that came before are
// confirmed. Those that come close together are confirmed by one question.
func (k *heard) confirm() {
	s := k.server
	defer s.running.Done()
	for {
		select {
		case <-s.stopped:
			return
		case <-k.doubted:
		}
		if !s.pause(k.interval() / 2) {
			return
		}
		k.mu.Lock()
		owed := k.owed
		k.owed = map[int]int64{} // of this reign, or of one that is over
		k.mu.Unlock()
		if !s.leading.Load() {
			continue
		}
		begun := s.clock.Monotonic()
		if s.node.VerifyLeader() != nil {
			continue
		}
		k.confirmedAt(begun)
		for server, built := range owed {
			s.node.Broadcast(proto.AppendLong(proto.AppendLong([]byte{messageConfirmed}, int64(server)), built))
		}
	}
}

func (k *heard) confirmedAt(at time.Duration) {
	for {
		old := k.confirmed.Load()
		if old >= int64(at) || k.confirmed.CompareAndSwap(old, int64(at)) {
			return
		}
	}
}

// take reads a message of another server.
func (k *heard) take(from int, message []byte) {
	if len(message) < 1 {
		return
	}
	s := k.server
	d := proto.NewDecoder(message[1:])
	switch message[0] {
	case messageHeard, messageIdle:
		built := d.Long()
		now := s.clock.Monotonic()
		for len(d.Rest()) >= 16 {
			id, ago := proto.SessionID(d.Long()), time.Duration(d.Long())
			s.tracker.Touch(id, now-max(ago, 0))
		}
		if d.Err() != nil {
			return
		}
		k.mu.Lock()
		delete(k.pardoned, from)
		k.overdueAt[from] = now + 3*k.interval()
		if message[0] == messageIdle {
			k.overdueAt[from] = now + 2*k.rest()
		} else {
			k.owed[from] = built
			k.doubt()
		}
		k.mu.Unlock()
	case messageDigest:
		told := state.DigestAt{Zxid: proto.Zxid(d.Long()), Digest: uint64(d.Long()), Level: 1}
		if len(d.Rest()) > 0 { // a build that knows only level 1 does not say so
			told.Level = byte(d.Long())
		}
		sessions := len(d.Rest()) > 0
		if sessions { // nor one that does not hash its sessions
			told.Sessions = uint64(d.Long())
		}
		if d.Err() == nil {
			s.divergence.compare(from, told, sessions)
		}
	case messageDiffers:
		if server := d.Long(); d.Err() == nil && server == int64(s.serverID) {
			s.divergence.report(string(d.Rest()))
		}
	case messageConfirmed:
		server, built := d.Long(), d.Long()
		at := time.Duration(built - k.base)
		if d.Err() == nil && server == int64(s.serverID) && at >= 0 && at <= s.clock.Monotonic() {
			k.confirmedAt(at)
		}
	}
}

// overdue are the servers that are connected but whose reports do not come: it
// may be this server, or the way, that is slow, and their clients may be well.
// Each is named once between two reports, so that a dead server's sessions end.
func (k *heard) overdue() map[int32]bool {
	now := k.server.clock.Monotonic()
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[int32]bool{}
	for server, at := range k.overdueAt {
		if now > at && !k.pardoned[server] && k.server.node.Attached(server) {
			out[int32(server)] = true
		}
	}
	return out
}

// pardon gives the sessions of servers whose reports are overdue their full
// timeout again, once.
func (k *heard) pardon(due []session.Due) (pardoned map[proto.SessionID]bool) {
	late := k.overdue()
	if len(late) == 0 {
		return nil
	}
	s := k.server
	pardoned = map[proto.SessionID]bool{}
	now := s.clock.Monotonic()
	s.state.View(func(v state.View) {
		for _, one := range due {
			if row := v.Table.Get(one.ID); row != nil && late[row.Owner.Server] {
				pardoned[one.ID] = true
			}
		}
	})
	if len(pardoned) == 0 {
		return nil
	}
	s.state.View(func(v state.View) {
		for _, row := range v.Table.Rows() {
			if late[row.Owner.Server] {
				s.tracker.Touch(row.ID, now)
			}
		}
	})
	k.mu.Lock()
	for server := range late {
		k.pardoned[int(server)] = true
	}
	k.mu.Unlock()
	s.logger.Warn("reports of sessions that other servers have heard are overdue; those sessions get their full timeout again",
		"sessions", len(pardoned))
	return pardoned
}
