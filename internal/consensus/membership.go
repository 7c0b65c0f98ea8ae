package consensus

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// memberPause is the pause between two looks at the membership.
const memberPause = 200 * time.Millisecond

// promoteLag is how far, in entries, a server may be behind the commit index
// when it is made a voter.
const promoteLag = 1000

// changeTimeout bounds one change of Raft's configuration.
const changeTimeout = 10 * time.Second

// manageMembers is a goroutine: a leader moves Raft's configuration to its own
// configured membership, one change at a time. Each look starts from what is
// there, so that a new leader goes on where the former one stopped.
func (n *Node) manageMembers() {
	defer n.workers.Done()
	for n.disk.wait(memberPause) {
		if !n.leading.Load() {
			continue
		}
		change, apply := n.nextChange()
		if apply == nil {
			continue
		}
		n.logger.Info("the leader changes the membership", "change", change)
		if err := apply().Error(); err != nil {
			n.logger.Warn("a change of the membership failed and is tried again", "change", change, "error", err)
		} else {
			n.logger.Info("the membership has changed", "change", change)
		}
	}
}

// nextChange is the first difference between what is and what is wanted; nil
// if there is none that can be made now.
func (n *Node) nextChange() (string, func() raft.IndexFuture) {
	current := map[int]raft.Server{}
	for _, s := range n.raftServers() {
		number, _ := splitRaftID(string(s.ID))
		if _, wanted := n.wanted.find(number); !wanted && number != n.cfg.ServerID {
			return fmt.Sprintf("remove server %s", s.ID), func() raft.IndexFuture { return n.raft.RemoveServer(s.ID, 0, changeTimeout) }
		}
		current[number] = s
	}
	for _, p := range n.wanted.list() {
		s, there := current[p.ID]
		if change, apply := n.changeOf(p, s, there); apply != nil {
			return change, apply
		}
	}
	return "", nil
}

// changeOf is the change that one wanted server needs.
func (n *Node) changeOf(p Peer, s raft.Server, there bool) (string, func() raft.IndexFuture) {
	address := raft.ServerAddress(p.Address)
	applied, streaming := n.followers.appliedBy(string(s.ID))
	if p.ID != n.cfg.ServerID && !streaming {
		// Not heard from: it may be new, or another server after its disk was
		// wiped.
		w, ok := n.probe(p, probeTimeout)
		switch {
		case !ok:
			return "", nil
		case !there:
			id := raft.ServerID(w.ID)
			return fmt.Sprintf("add server %s at %s", id, address), func() raft.IndexFuture { return n.raft.AddNonvoter(id, address, 0, changeTimeout) }
		case w.ID != string(s.ID):
			return fmt.Sprintf("remove server %s, which is %s now", s.ID, w.ID), func() raft.IndexFuture { return n.raft.RemoveServer(s.ID, 0, changeTimeout) }
		}
		return "", nil
	}
	voter := s.Suffrage == raft.Voter
	switch {
	case voter && !p.Voter:
		return fmt.Sprintf("make server %s an observer", s.ID), func() raft.IndexFuture { return n.raft.DemoteVoter(s.ID, 0, changeTimeout) }
	case !voter && p.Voter && (p.ID == n.cfg.ServerID || applied+promoteLag >= n.raft.CommitIndex()):
		return fmt.Sprintf("make server %s a voter", s.ID), func() raft.IndexFuture { return n.raft.AddVoter(s.ID, address, 0, changeTimeout) }
	case s.Address != address && voter:
		return fmt.Sprintf("server %s is at %s", s.ID, address), func() raft.IndexFuture { return n.raft.AddVoter(s.ID, address, 0, changeTimeout) }
	case s.Address != address:
		return fmt.Sprintf("server %s is at %s", s.ID, address), func() raft.IndexFuture { return n.raft.AddNonvoter(s.ID, address, 0, changeTimeout) }
	}
	return "", nil
}

// TransferLeadership hands leadership to another voter. It is refused while
// this server does not lead.
func (n *Node) TransferLeadership() error {
	return translate(n.raft.LeadershipTransfer().Error())
}

// TransferLeadershipTo is TransferLeadership to one of them.
func (n *Node) TransferLeadershipTo(id int) error {
	for _, s := range n.raftServers() {
		if number, _ := splitRaftID(string(s.ID)); number == id {
			return translate(n.raft.LeadershipTransferToServer(s.ID, s.Address).Error())
		}
	}
	return fmt.Errorf("%w: server %d is not a member", ErrInvalidConfig, id)
}

// watchLeader is a goroutine: it tells the server who leads.
func (n *Node) watchLeader() {
	defer n.workers.Done()
	seen := make(chan raft.Observation, 16)
	o := raft.NewObserver(seen, true, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	n.raft.RegisterObserver(o)
	defer n.raft.DeregisterObserver(o)
	tick := time.NewTicker(n.cfg.ElectionTimeout)
	defer tick.Stop()
	last := -2
	for {
		select {
		case <-n.stop:
			return
		case <-seen:
		case <-tick.C:
		}
		_, id := n.raft.LeaderWithID()
		now := -1
		if id != "" {
			now, _ = splitRaftID(string(id))
		}
		if now == last {
			continue
		}
		last = now
		select {
		case n.leaderMoved <- struct{}{}:
		default:
		}
		n.events.LeaderChanged(now)
	}
}
