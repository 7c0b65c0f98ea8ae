package server

import (
	"time"

	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

const (
	// reconfigPause is the time between two looks at a change of the membership
	// under way. While there is none its begin is told, and only servers that
	// follow without being members are looked for, twice in syncLimit.
	reconfigPause = 50 * time.Millisecond
	// reconfigAgain is when a step is proposed again that has not been applied.
	reconfigAgain = time.Second
)

// reconfiguring is the duty that carries out changes of the membership: see
// state.Reconfig for their steps. It goes by what the state says, so a new
// leader goes on where the former one stopped. It belongs to its goroutine.
type reconfiguring struct {
	duties *duties
	server *Server

	id       uint64        // of the change that the following is about
	accepted bool          // its step
	since    time.Duration // when this leader first saw it at that step
	proposed time.Duration // when the next step was last proposed, 0 for never
	// absent are participants to be added that did not answer: the change does
	// not wait for them. They are added when they come.
	absent map[int]bool

	former map[int]time.Duration // servers beside the members: when each last followed
}

// reconfigure is the duty's goroutine.
func (d *duties) reconfigure(quit chan struct{}) {
	defer d.done.Done()
	r := reconfiguring{duties: d, server: d.server, former: map[int]time.Duration{}}
	for pause := reconfigPause; ; {
		select {
		case <-quit:
			return
		case <-d.server.reconfigMoved:
		case <-time.After(pause):
		}
		if d.server.config.Ensemble.ReconfigEnabled {
			d.server.wanted.want(r.formerMembers())
		}
		pause = max(d.server.patience()/2, reconfigPause)
		if change := d.server.reconfiguring(); change != nil {
			r.look(change)
			pause = reconfigPause
		}
	}
}

// look takes the next step if it is time for it.
func (r *reconfiguring) look(change *state.Reconfig) {
	now := r.server.clock.Monotonic()
	if change.ID != r.id || change.Accepted != r.accepted {
		r.id, r.accepted, r.since, r.proposed, r.absent = change.ID, change.Accepted, now, 0, nil
	}
	if r.proposed != 0 && now-r.proposed < reconfigAgain {
		return
	}
	var step []byte
	switch {
	case !change.Accepted && r.count(change.Next) >= change.Next.Quorum():
		step = state.AcceptBody(change.ID)
	case !change.Accepted:
		r.server.logger.Warn("a change of the membership is refused: fewer than a majority of the new participants answer")
		step = state.AbandonBody(change.ID, proto.ErrNewConfigNoQuorum)
	default:
		step = r.arrival(change, now-r.since)
	}
	if step != nil {
		r.proposed = now
		r.duties.propose(proto.Txn{TxnHeader: proto.TxnHeader{Type: proto.OpReconfig}, Body: step})
	}
}

// count is how many of the new participants are there.
func (r *reconfiguring) count(next proto.Membership) int {
	there := r.server.node.Reachable(r.participants(next))
	n := 0
	for _, m := range next.Members {
		if !m.Observer && there[int(m.ID)] {
			n++
		}
	}
	return n
}

func (r *reconfiguring) participants(next proto.Membership) (peers []consensus.Peer) {
	for _, m := range next.Members {
		if !m.Observer {
			peers = append(peers, consensus.Peer{ID: int(m.ID), Voter: true, Address: m.QuorumAddress()})
		}
	}
	return peers
}

// arrival is the last step, if Raft has got there, or has not in initLimit: then
// it depends on whether a majority of the new participants votes.
func (r *reconfiguring) arrival(change *state.Reconfig, waited time.Duration) []byte {
	if r.absent == nil {
		r.absent = map[int]bool{}
		peers := r.participants(change.Next)
		there := r.server.node.Reachable(peers)
		for _, p := range peers {
			r.absent[p.ID] = !there[p.ID]
		}
	}
	voters := map[int]bool{}
	done := true
	for _, p := range r.server.node.Membership().Current {
		m, member := change.Next.Get(int64(p.ID))
		voters[p.ID] = p.Voter
		if p.Voter && (!member || m.Observer) {
			done = false
		}
	}
	voting := 0
	for _, p := range r.participants(change.Next) {
		switch {
		case voters[p.ID]:
			voting++
		case !r.absent[p.ID]:
			done = false
		}
	}
	enough := voting >= change.Next.Quorum()
	e := &r.server.config.Ensemble
	switch {
	case done && enough:
		return state.FinishBody(change.ID)
	case waited < time.Duration(e.InitLimit)*r.server.config.Session.TickTime:
		return nil
	case enough:
		r.server.logger.Warn("a change of the membership is made known before all of it is done", "waits_for", r.server.node.Membership().WaitsFor)
		return state.FinishBody(change.ID)
	}
	r.server.logger.Warn("a change of the membership is given up: the new participants stay away", "waits_for", r.server.node.Membership().WaitsFor)
	return state.AbandonBody(change.ID, proto.ErrNewConfigNoQuorum)
}

// formerMembers are the servers that Raft still knows, that are no members, and
// that have followed this leader within syncLimit.
func (r *reconfiguring) formerMembers() (peers []consensus.Peer) {
	s := r.server
	now := s.clock.Monotonic()
	members, _ := s.membership()
	for _, p := range s.node.Membership().Current {
		if _, member := members.Get(int64(p.ID)); member || p.ID == int(s.serverID) {
			continue
		}
		last, seen := r.former[p.ID]
		if !seen || s.node.Attached(p.ID) {
			last = now
			r.former[p.ID] = now
		}
		if now-last < s.patience() {
			peers = append(peers, p)
		}
	}
	return peers
}
