package consensus

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

/*
Membership. What the ensemble is to consist of is one list, the wanted one:
Config.Peers, until SetMembership replaces it. The leader moves Raft's
configuration there by one server at a time, and each look starts from what is
there, so that a new leader goes on where the former one stopped:

  - first servers are added, as observers, and made voters once they have caught
    up;
  - then others are demoted or removed, never so that the voters which can be
    reached would be no majority of those that are left;
  - a leader that is itself to go hands over when all else is done, and the
    next one removes it.
*/

// memberPause is the pause between two looks at the membership, memberHaste that
// while it changes, and memberRest that while all is as it is to be: then what
// changes is told (followingMoved).
const (
	memberPause = 200 * time.Millisecond
	memberHaste = 50 * time.Millisecond
	memberRest  = 5 * time.Second
)

// promoteLag is how far, in entries, a server may be behind the commit index
// when it is made a voter.
const promoteLag = 1000

// changeTimeout bounds one change of Raft's configuration.
const changeTimeout = 10 * time.Second

// Membership is what the ensemble consists of, and what it is to consist of.
type Membership struct {
	Wanted []Peer
	// Current is Raft's configuration as this server knows it. A server's
	// address is the one that Raft has for it.
	Current []Peer
	// Settled says that Current is committed and is what is wanted.
	Settled bool
	// WaitsFor says what keeps a leader from the next change, empty if nothing.
	WaitsFor string
}

// SetMembership replaces the wanted membership. It does not block, so that it
// may be called while an entry is applied. This server may be missing in it.
func (n *Node) SetMembership(peers []Peer) error {
	if n.cfg.alone() {
		return fmt.Errorf("%w: a server alone has no membership", ErrInvalidConfig)
	}
	if err := checkMembership(peers); err != nil {
		return err
	}
	n.wanted.set(peers)
	n.wantedSet.Store(true)
	select {
	case n.wantedMoved <- struct{}{}:
	default:
	}
	return nil
}

// followingMoved says that somebody follows or leads who did not, or no longer.
func (n *Node) followingMoved() {
	select {
	case n.streamsMoved <- struct{}{}:
	default:
	}
}

// awaitLook waits until it is time to look at the membership. When somebody comes or
// goes that is after memberPause: the library, which changes a follower's address
// while it uses it, should be done with greeting it. It returns false when the node
// stops.
func (n *Node) awaitLook(pause time.Duration) bool {
	next := time.Now().Add(pause)
	for {
		select {
		case <-n.stop:
			return false
		case <-n.wantedMoved:
			return true
		case <-n.streamsMoved:
			if soon := time.Now().Add(memberPause); soon.Before(next) {
				next = soon
			}
		case <-time.After(time.Until(next)):
			return true
		}
	}
}

// checkMembership refuses a list that no ensemble can have.
func checkMembership(peers []Peer) error {
	seen := map[int]bool{}
	for _, p := range peers {
		if p.ID < 0 || p.ID > 255 || seen[p.ID] || p.Address == "" {
			return fmt.Errorf("%w: a membership with server %d at %q", ErrInvalidConfig, p.ID, p.Address)
		}
		seen[p.ID] = true
	}
	if decider(peers) < 0 {
		return fmt.Errorf("%w: a membership without participant", ErrInvalidConfig)
	}
	return nil
}

// Membership tells how far the change of membership is. It does not block.
func (n *Node) Membership() Membership {
	m := Membership{Wanted: n.wanted.list()}
	if n.cfg.alone() {
		m.Settled = true
		return m
	}
	if n.raftState() == raft.Shutdown {
		return m
	}
	servers, committed := n.configuration()
	for _, s := range servers {
		number, _ := splitRaftID(string(s.ID))
		m.Current = append(m.Current, Peer{ID: number, Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	slices.SortFunc(m.Current, func(a, b Peer) int { return a.ID - b.ID })
	m.Settled = committed && slices.EqualFunc(m.Wanted, m.Current, func(w, c Peer) bool {
		return w.ID == c.ID && w.Voter == c.Voter && (w.Address == c.Address || w.ID == n.cfg.ServerID && isWildcard(w.Address))
	})
	n.mu.Lock()
	m.WaitsFor = n.memberWait
	n.mu.Unlock()
	return m
}

// configuration is Raft's newest configuration, and whether it is committed.
func (n *Node) configuration() ([]raft.Server, bool) {
	select {
	case <-n.raftSet:
	default:
		return nil, false
	}
	f := n.raft.GetConfiguration()
	return f.Configuration().Servers, f.Index() <= n.raft.CommitIndex()
}

// manageMembers is a goroutine.
func (n *Node) manageMembers() {
	defer n.workers.Done()
	var ledSince time.Time
	failed := ""
	pause := memberPause
	for n.awaitLook(pause) {
		pause = memberPause
		if !n.leading.Load() || n.cfg.MembershipIsSet && !n.wantedSet.Load() {
			ledSince = time.Time{}
			n.setMemberWait("")
			n.lookForOthers()
			if n.attached() != "" {
				pause = memberRest
			}
			continue
		}
		if ledSince.IsZero() {
			ledSince = time.Now()
		}
		p := n.planMembers(time.Since(ledSince) > n.cfg.StreamTimeout)
		n.setMemberWait(p.waits)
		if p.apply == nil {
			if p.waits == "" {
				pause = memberRest
			}
			continue
		}
		pause = memberHaste
		if failed != p.change {
			n.logger.Info("the leader changes the membership", "change", p.change)
		}
		switch err := p.apply(); {
		case err == nil:
			failed = ""
			n.logger.Info("the membership has changed", "change", p.change)
		case failed != p.change:
			failed = p.change
			n.logger.Warn("a change of the membership failed and is tried again", "change", p.change, "error", err)
		default:
			pause = memberPause
		}
	}
}

func (n *Node) setMemberWait(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memberWait = text
}

// TransferLeadership hands leadership to another voter. It is refused while
// this server does not lead.
func (n *Node) TransferLeadership() error {
	return translate(n.raft.LeadershipTransfer().Error())
}

// TransferLeadershipTo is TransferLeadership to one of them.
func (n *Node) TransferLeadershipTo(id int) error {
	if n.raft.State() != raft.Leader {
		return ErrNotLeader
	}
	for _, s := range n.raftServers() {
		if number, _ := splitRaftID(string(s.ID)); number == id {
			return translate(n.raft.LeadershipTransferToServer(s.ID, s.Address).Error())
		}
	}
	return fmt.Errorf("%w: server %d is not a member", ErrMember, id)
}

// RemoveDead removes a member that does not answer, so that those that are left
// need a smaller majority. It comes back when it follows again, unless the
// wanted membership lacks it.
func (n *Node) RemoveDead(id int) error {
	switch {
	case n.cfg.alone() || !n.leading.Load():
		return ErrNotLeader
	case n.cfg.MembershipIsSet:
		return fmt.Errorf("%w: the membership is changed by reconfig", ErrMember)
	case id == n.cfg.ServerID:
		return fmt.Errorf("%w: server %d leads", ErrMember, id)
	}
	for _, s := range n.raftServers() {
		if number, _ := splitRaftID(string(s.ID)); number != id {
			continue
		}
		if _, alive := n.followers.appliedBy(string(s.ID)); alive {
			return fmt.Errorf("%w: server %d is alive; take it out of the files instead", ErrMember, id)
		}
		if p, wanted := n.wanted.find(id); wanted {
			if _, answers := n.probe(p, probeTimeout); answers {
				return fmt.Errorf("%w: server %d answers; stop it first", ErrMember, id)
			}
		}
		n.logger.Info("a member is removed by hand", "server", s.ID)
		return translate(n.raft.RemoveServer(s.ID, 0, changeTimeout).Error())
	}
	return fmt.Errorf("%w: server %d is none", ErrMember, id)
}
