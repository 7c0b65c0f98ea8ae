package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// route says where this server's proposals go.
type route struct {
	mu     sync.Mutex
	stream *stream // guarded by mu; to the leader, nil if there is none
}

func (r *route) get() *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream
}

// set replaces the stream and tells whether there was another.
func (r *route) set(s *stream) (had bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	had = r.stream != nil && r.stream != s
	r.stream = s
	return had
}

// redial is the pause between two attempts to reach the leader.
const redial = 20 * time.Millisecond

// followLeader is a goroutine: it keeps a stream to whoever leads.
func (n *Node) followLeader() {
	defer n.workers.Done()
	for {
		leader, ok := n.otherLeader()
		if ok {
			n.followOne(leader)
		}
		select {
		case <-n.stop:
			return
		case <-n.leaderMoved:
		case <-time.After(redial):
		}
	}
}

// otherLeader is the leader if it is another server.
func (n *Node) otherLeader() (raft.Server, bool) {
	addr, id := n.raft.LeaderWithID()
	if id == "" || string(id) == n.stable.identity().raftID() {
		return raft.Server{}, false
	}
	return raft.Server{ID: id, Address: addr}, true
}

// followOne keeps one stream until it breaks or another server leads. The
// route is open, and the server told so, once this server has applied what was
// committed when it asked.
func (n *Node) followOne(leader raft.Server) {
	conn, _, err := n.greet(kindStream, string(leader.ID), n.addressOf(string(leader.ID), string(leader.Address)), helloTimeout)
	if err != nil {
		n.leaderGone(leader.ID, err)
		return
	}
	tracked, ok := n.port.track(conn)
	if !ok {
		return
	}
	number, _ := splitRaftID(string(leader.ID))
	s := newStream(tracked, number, n.cfg.StreamTimeout)
	ended := make(chan struct{})
	ready := make(chan uint64, 1)
	go s.write()
	go func() {
		defer close(ended)
		_ = s.read(func(kind byte, payload []byte) error { return n.fromLeader(leader, ready, kind, payload) })
	}()
	n.route.set(s)
	n.attend(leader, s, ready, ended)
	s.close()
	<-ended
	n.route.set(nil)
	n.events.Route(false)
}

func (n *Node) fromLeader(leader raft.Server, ready chan uint64, kind byte, payload []byte) error {
	switch kind {
	case frameCommit:
		v, err := numbers(payload, 2)
		if err != nil {
			return err
		}
		n.notes.note(leader, v[0], v[1])
	case frameReady:
		v, err := numbers(payload, 1)
		if err != nil {
			return err
		}
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

// attend reports progress over the stream, opens the route once this server
// has caught up, and returns when the stream ends or another server leads.
func (n *Node) attend(leader raft.Server, s *stream, ready chan uint64, ended chan struct{}) {
	tick := time.NewTicker(n.cfg.StreamTimeout / 20)
	defer tick.Stop()
	target, known, open := uint64(0), false, false
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	_ = s.send(frameQuery)
	for {
		select {
		case <-n.stop:
			return
		case <-ended:
			return
		case target = <-ready:
			known = true
		case <-n.leaderMoved:
		case <-tick.C:
			_ = s.send(frameApplied, u64(n.raft.AppliedIndex()))
		case <-poll.C:
			if open {
				poll.Stop()
			}
		}
		if now, ok := n.otherLeader(); ok && now.ID != leader.ID || !ok && n.raft.State() == raft.Leader {
			return
		}
		if known && !open && n.raft.AppliedIndex() >= target {
			open = true
			n.events.Route(true)
		}
	}
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

// keepStreams is a goroutine: it keeps the deadline of the leader's streams
// away, and breaks them when this server no longer leads.
func (n *Node) keepStreams() {
	defer n.workers.Done()
	tick := time.NewTicker(n.cfg.StreamTimeout / 10)
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
			_ = s.send(framePing)
		}
	}
}
