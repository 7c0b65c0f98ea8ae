package consensus

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// route says where this server's proposals go.
type route struct {
	mu       sync.Mutex
	stream   *stream // guarded by mu; to the leader once this server has caught up, else nil
	attached string  // guarded by mu; Raft id of the leader that there is a stream to
}

func (r *route) get() *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream
}

func (r *route) set(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream = s
}

func (r *route) attach(leader string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attached = leader
}

func (r *route) leader() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attached
}

// redial is the pause between two attempts to reach the leader.
const redial = 20 * time.Millisecond

// leads is how long a leader waits before it looks whether it still leads, if
// nobody has told it otherwise.
const leads = 10 * time.Second

// followLeader is a goroutine: it keeps a stream to whoever leads.
func (n *Node) followLeader() {
	defer n.workers.Done()
	followed := false
	for {
		leader, ok := n.otherLeader()
		switch {
		case ok:
			n.followOne(leader)
			followed = true
		case followed && n.raft.State() != raft.Leader:
			followed = !n.leaderLost()
		}
		pause := redial
		if !ok && n.raft.State() == raft.Leader {
			pause = leads // its end is told by leaderMoved
		}
		select {
		case <-n.stop:
			return
		case <-n.leaderMoved:
		case <-time.After(pause):
		}
	}
}

// otherLeader is the leader if it is another server.
func (n *Node) otherLeader() (raft.Server, bool) {
	addr, id := n.raft.LeaderWithID()
	if id == "" || string(id) == n.stable.identity().raftID() {
		return raft.Server{}, false
	}
	// The library sends the leader's address as addressBook gives it.
	if _, where, ok := strings.Cut(string(addr), "@"); ok {
		addr = raft.ServerAddress(where)
	}
	return raft.Server{ID: id, Address: addr}, true
}

// changed tells whether the given server no longer is who leads.
func (n *Node) changed(leader raft.Server) bool {
	now, ok := n.otherLeader()
	return ok && now.ID != leader.ID || !ok && n.raft.State() == raft.Leader
}

// greetLeader dials the leader, and gives up when another server leads: a
// server that is cut off would be waited for meanwhile.
func (n *Node) greetLeader(leader raft.Server) (net.Conn, []Peer) {
	type result struct {
		conn net.Conn
		who  welcome
		err  error
	}
	done := make(chan result, 1)
	go func() {
		address := n.addressOf(string(leader.ID), string(leader.Address))
		conn, who, err := n.greet(kindStream, string(leader.ID), address, helloTimeout)
		if said := string(leader.Address); err != nil && said != address && said != "" && !isWildcard(said) {
			// Its line may have changed, and this server's file not yet.
			conn, who, err = n.greet(kindStream, string(leader.ID), said, helloTimeout)
		}
		done <- result{conn, who, err}
	}()
	abandon := func() {
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close()
			}
		}()
	}
	for {
		select {
		case r := <-done:
			if r.err != nil {
				n.logger.Debug("the leader does not take this server's stream", "leader", leader.ID, "error", r.err)
				n.leaderGone(leader.ID, r.err, r.who.ID)
			}
			return r.conn, r.who.Peers
		case <-n.leaderMoved:
			if n.changed(leader) {
				abandon()
				return nil, nil
			}
		case <-n.stop:
			abandon()
			return nil, nil
		}
	}
}

// followOne keeps one stream until it breaks or another server leads. The
// route is open, and the server told so, once this server has applied what was
// committed when it asked.
func (n *Node) followOne(leader raft.Server) {
	conn, lines := n.greetLeader(leader)
	if conn == nil {
		return
	}
	tracked, ok := n.port.track(conn)
	if !ok {
		return
	}
	number, _ := splitRaftID(string(leader.ID))
	s := newStream(tracked, number, n.cfg.StreamTimeout)
	f := &following{node: n, leader: leader, stream: s, ended: make(chan struct{}), ready: make(chan uint64, 1)}
	_ = s.send(frameProcess, u64(n.process))
	go s.write()
	go func() {
		defer close(f.ended)
		_ = s.read(func(kind byte, payload []byte) error { return n.fromLeader(leader, f.ready, kind, payload) })
	}()
	n.compareLines(number, lines)
	n.route.attach(string(leader.ID))
	n.followingMoved()
	f.attend()
	// First nothing more goes onto the stream, then it is said that the fate
	// of what went there is unknown.
	s.close()
	<-f.ended
	n.forgetLines(number)
	n.route.attach("")
	n.followingMoved()
	n.route.set(nil)
	if f.open {
		n.events.Route(false)
	}
	if n.refusedAsTwin() {
		n.disk.wait(twinPatience(n.cfg.StreamTimeout))
	}
}

func (n *Node) fromLeader(leader raft.Server, ready chan uint64, kind byte, payload []byte) error {
	switch kind {
	case frameCommit:
		v, err := numbers(payload, 2)
		if err != nil {
			return err
		}
		n.notes.note(leader, v[0], v[1])
	case frameTwin:
		n.isTwin(string(payload))
	case frameReady:
		v, err := numbers(payload, 1)
		if err != nil {
			return err
		}
		n.noTwin()
		select {
		case ready <- v[0]:
		default:
		}
	case frameMessage:
		number, _ := splitRaftID(string(leader.ID))
		n.events.Message(number, payload)
	}
	return nil
}

// following is one stream to a leader, and how far behind it this server is.
// It belongs to the goroutine that attends to it.
type following struct {
	node   *Node
	leader raft.Server
	stream *stream
	ended  chan struct{} // closed when the stream's reader has ended
	ready  chan uint64   // the leader's answers: its commit index

	known  bool      // an answer has come
	target uint64    // what was committed at the leader …
	since  time.Time // … when this answer came; kept until it is applied here
	open   bool      // the route is open
}

// attend reports progress over the stream and asks what is committed, opens
// the route once this server has caught up, and returns when the stream ends,
// another server leads, or this server has fallen behind: heartbeats go on
// even where its disk or its state machine is stuck, and clients must not be
// kept on a state that gets older and older.
func (f *following) attend() {
	n := f.node
	tick := time.NewTicker(n.cfg.StreamTimeout / 6)
	defer tick.Stop()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	_ = f.stream.send(frameQuery)
	for polls := 1; ; polls++ {
		select {
		case <-n.stop:
			return
		case <-f.ended:
			return
		case v := <-f.ready:
			if !f.known || n.hasApplied(f.target) {
				f.known, f.target, f.since = true, v, time.Now()
			}
		case <-n.leaderMoved:
		case <-tick.C:
			_ = f.stream.send(frameApplied, u64(n.raft.AppliedIndex()))
			_ = f.stream.send(frameQuery)
		case <-poll.C:
			switch {
			case f.open:
				poll.Stop()
			case !f.known && polls%10 == 0:
				_ = f.stream.send(frameQuery) // the leader may just have begun to lead
			}
		}
		if n.changed(f.leader) || !f.measure() {
			return
		}
	}
}

// measure opens the route when the target is reached. It returns false when
// this server has been behind for too long.
func (f *following) measure() bool {
	n := f.node
	if !f.known {
		return true
	}
	if !n.hasApplied(f.target) {
		if f.open && time.Since(f.since) > n.cfg.StreamTimeout/2 {
			n.logger.Warn("this server is behind the leader and does not catch up; it takes no writes until it has",
				"applied", n.fsm.done.Load(), "committed", f.target, "since", time.Since(f.since).Round(time.Millisecond))
			return false
		}
		return true
	}
	f.since = time.Now()
	if !f.open {
		f.open = true
		n.route.set(f.stream)
		n.events.Route(true)
	}
	return true
}

// hasApplied tells whether the state machine has finished all entries up to
// index. Not every entry reaches it, so the last one that does is looked for.
func (n *Node) hasApplied(index uint64) bool {
	if n.raft.AppliedIndex() < index {
		return false
	}
	for done := n.fsm.done.Load(); index > done; index-- {
		var l raft.Log
		if n.log.GetLog(index, &l) != nil {
			return true // it is behind a snapshot, which is restored before the library counts it
		}
		if l.Type == raft.LogCommand || l.Type == raft.LogConfiguration {
			return false
		}
	}
	return true
}

// Send hands a message of the server room to the leader. It is lost if there
// is no stream.
func (n *Node) Send(payload []byte) {
	if s := n.route.get(); s != nil {
		_ = s.send(frameMessage, payload)
	}
}

// Broadcast hands a message to all servers that have a stream to this one.
func (n *Node) Broadcast(payload []byte) {
	for _, s := range n.followers.streams() {
		_ = s.send(frameMessage, payload)
	}
}

// VerifyLeader returns nil if this server still led after the call began, as a
// majority has confirmed. It waits for that majority.
func (n *Node) VerifyLeader() error {
	if !n.leading.Load() {
		return ErrNotLeader
	}
	return translate(n.raft.VerifyLeader().Error())
}

// Attached tells whether a server has a stream to this one.
func (n *Node) Attached(serverID int) bool {
	for _, s := range n.followers.streams() {
		if s.peer == serverID {
			return true
		}
	}
	return false
}

// AttachedServers are the servers that have a stream to this one.
func (n *Node) AttachedServers() []int {
	var ids []int
	for _, s := range n.followers.streams() {
		ids = append(ids, s.peer)
	}
	return ids
}

// keepStreams is a goroutine: it keeps the deadline of the leader's streams
// away, and breaks them when this server no longer leads, or the other one is no
// member any more.
func (n *Node) keepStreams() {
	defer n.workers.Done()
	tick := time.NewTicker(n.cfg.StreamTimeout / 4)
	defer tick.Stop()
	for {
		select {
		case <-n.stop:
			return
		case <-tick.C:
		}
		if n.raft.State() != raft.Leader {
			n.followers.closeAll()
			continue
		}
		for _, s := range n.followers.streams() {
			if !n.knows(s.peer) { // it was removed; when it comes again it is told
				s.close()
				continue
			}
			s.ping()
		}
	}
}
