package consensus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// plan is the next change of the membership, if any can be made, and what is
// waited for.
type plan struct {
	change string
	apply  func() error // nil if no change can be made now
	waits  string
	// absent says that it waits for a server that is not there at all.
	absent bool
	// address is where the change puts server id, empty if it moves none.
	id      raft.ServerID
	address raft.ServerAddress
}

// doRaft makes a change of Raft's configuration.
func doRaft(change string, apply func() raft.IndexFuture) plan {
	return plan{change: change, apply: func() error { return apply().Error() }}
}

// put makes a server a voter, or an observer, at an address.
func (n *Node) put(change string, id raft.ServerID, address raft.ServerAddress, voter bool) plan {
	add := n.raft.AddNonvoter
	if voter {
		add = n.raft.AddVoter
	}
	p := doRaft(change, func() raft.IndexFuture { return add(id, address, 0, changeTimeout) })
	p.id, p.address = id, address
	return p
}

// makeRoom is what has to come before a change: Raft takes no address twice, so
// a server that is still listed where another one is to be, as when two swap
// their addresses, is first listed nowhere. Nobody dials by that: the lines come
// first (addressOf), and what the server says of itself (ownLineOf).
func (n *Node) makeRoom(servers []raft.Server, change plan) plan {
	for _, s := range servers {
		if s.Address != change.address || s.ID == change.id {
			continue
		}
		number, _ := splitRaftID(string(s.ID))
		if p, wanted := n.wanted.find(number); wanted && p.Address == string(s.Address) {
			return plan{waits: fmt.Sprintf("another address of server %s: server %d is at %s already", change.id, number, s.Address)}
		}
		return n.put(fmt.Sprintf("server %s is no longer at %s", s.ID, s.Address), s.ID, nowhere(number), s.Suffrage == raft.Voter)
	}
	return change
}

// nowhere is an address of a server that no server can have, and that is refused
// at once by the machine itself: a broadcast's.
func nowhere(number int) raft.ServerAddress {
	return raft.ServerAddress(fmt.Sprintf("255.255.255.255:%d", number+1))
}

// planMembers compares what is with what is wanted. judge says that this leader
// has led for long enough to take a server without a stream for dead.
func (n *Node) planMembers(judge bool) plan {
	servers, committed := n.configuration()
	if !committed {
		return plan{waits: "the last change to be committed"}
	}
	current := map[int]raft.Server{}
	for _, s := range servers {
		number, _ := splitRaftID(string(s.ID))
		current[number] = s
	}
	waits, growing, blocked := "", false, false
	for _, p := range n.wanted.list() {
		s, there := current[p.ID]
		grow := n.growBy(p, s, there)
		if grow.apply != nil && grow.address != "" {
			grow = n.makeRoom(servers, grow)
		}
		if grow.apply != nil {
			return grow
		}
		// Who asked for this list knows who is there: as on Apache's server, the
		// rest of the change does not wait for the others. Files may be changed
		// before the servers that they name are started.
		if grow.waits != "" && !(grow.absent && n.wantedSet.Load()) {
			growing, blocked = growing || p.Voter, true
		}
		if waits == "" {
			waits = grow.waits
		}
	}
	for _, s := range servers {
		number, _ := splitRaftID(string(s.ID))
		if number == n.cfg.ServerID {
			continue
		}
		shrink := n.shrinkBy(servers, s, growing, judge)
		if shrink.apply != nil {
			return shrink
		}
		blocked = blocked || shrink.waits != ""
		if waits == "" {
			waits = shrink.waits
		}
	}
	if blocked {
		return plan{waits: waits}
	}
	own := n.planOwn(servers)
	own.waits = cmp.Or(own.waits, waits)
	return own
}

// growBy is the change that a wanted server needs to be all that it is to be,
// apart from being demoted.
func (n *Node) growBy(p Peer, s raft.Server, there bool) plan {
	address := raft.ServerAddress(p.Address)
	applied, streaming := n.followers.appliedBy(string(s.ID))
	own := p.ID == n.cfg.ServerID
	voter := s.Suffrage == raft.Voter
	if !own && !streaming {
		if silent := n.growSilent(p, s, there); silent.apply != nil || !there || !voter {
			return silent
		}
	}
	switch {
	case !voter && p.Voter && (own || applied+promoteLag >= n.raft.CommitIndex()):
		return n.put(fmt.Sprintf("make server %s a voter", s.ID), s.ID, address, true)
	case !voter && p.Voter:
		return plan{waits: fmt.Sprintf("server %s to catch up", s.ID)}
	case s.Address == address || own && isWildcard(p.Address) || !own && !streaming:
		return plan{}
	}
	return n.put(fmt.Sprintf("server %s is at %s", s.ID, address), s.ID, address, voter)
}

// growSilent is for a wanted server that is not heard from: it may be new, or
// another one after its disk was wiped.
func (n *Node) growSilent(p Peer, s raft.Server, there bool) plan {
	w, ok := n.probe(p, probeTimeout)
	switch {
	case !ok:
		return plan{waits: fmt.Sprintf("server %d to answer at %s", p.ID, p.Address), absent: true}
	case w.Formed && w.ClusterID != n.stable.identity().ClusterID:
		n.setForeign(otherEnsemble(w, n.stable.identity()))
		return plan{waits: fmt.Sprintf("server %d: what answers at %s belongs to ensemble %s", p.ID, p.Address, w.ClusterID), absent: true}
	case n.misfit(w.ID, w.levels) != "":
		text := n.misfit(w.ID, w.levels)
		n.refusals.warn(n.logger, p.Address, text)
		return plan{waits: text, absent: true}
	case !there:
		id, address := raft.ServerID(w.ID), raft.ServerAddress(p.Address)
		return n.put(fmt.Sprintf("add server %s at %s", id, address), id, address, false)
	case w.ID != string(s.ID):
		return doRaft(fmt.Sprintf("remove server %s, which is %s now", s.ID, w.ID), func() raft.IndexFuture { return n.raft.RemoveServer(s.ID, 0, changeTimeout) })
	}
	return plan{waits: fmt.Sprintf("server %s to follow", s.ID)}
}

// shrinkBy is the change that makes another server less than it is. growing
// says that wanted participants are still to be added: until then a voter that is
// alive stays one.
func (n *Node) shrinkBy(servers []raft.Server, s raft.Server, growing, judge bool) plan {
	number, _ := splitRaftID(string(s.ID))
	p, wanted := n.wanted.find(number)
	voter := s.Suffrage == raft.Voter
	if wanted && (p.Voter || !voter) {
		return plan{}
	}
	_, alive := n.followers.appliedBy(string(s.ID))
	switch {
	case !voter:
	case !alive && !judge:
		return plan{waits: fmt.Sprintf("a sign of life of server %s", s.ID)}
	case alive && growing:
		return plan{}
	case alive && !n.majorityWithout(servers, s.ID):
		return plan{waits: fmt.Sprintf("a majority of the participants without server %s", s.ID)}
	}
	if wanted {
		return doRaft(fmt.Sprintf("make server %s an observer", s.ID), func() raft.IndexFuture { return n.raft.DemoteVoter(s.ID, 0, changeTimeout) })
	}
	return doRaft(fmt.Sprintf("remove server %s", s.ID), func() raft.IndexFuture { return n.raft.RemoveServer(s.ID, 0, changeTimeout) })
}

// majorityWithout tells whether the voters that are heard from are a majority
// of all voters but one.
func (n *Node) majorityWithout(servers []raft.Server, without raft.ServerID) bool {
	voters, alive := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter || s.ID == without {
			continue
		}
		voters++
		_, streams := n.followers.appliedBy(string(s.ID))
		if number, _ := splitRaftID(string(s.ID)); streams || number == n.cfg.ServerID {
			alive++
		}
	}
	return alive > voters/2
}

// planOwn is for a leader that is to be an observer or to go: it hands over to
// a participant that follows, and that one goes on.
func (n *Node) planOwn(servers []raft.Server) plan {
	if own, wanted := n.wanted.find(n.cfg.ServerID); wanted && own.Voter {
		return plan{}
	}
	self := raft.ServerID(n.stable.identity().raftID())
	for _, s := range servers {
		_, streams := n.followers.appliedBy(string(s.ID))
		if s.ID == self || s.Suffrage != raft.Voter || !streams || !n.majorityWithout(servers, self) {
			continue
		}
		return plan{
			change: fmt.Sprintf("leave leadership to server %s, because this one is to go", s.ID),
			apply:  func() error { return translate(n.raft.LeadershipTransferToServer(s.ID, s.Address).Error()) },
			waits:  "another leader, because this one is to go",
		}
	}
	return plan{waits: "a participant that this leader can hand over to, because it is to go"}
}

// outsidePause is the pause between two questions of a server without leader.
const outsidePause = time.Second

// lookForOthers is for a member that has no leader: if the others have one and
// do not count this server among them any more, it says so. They do not call a
// server that they have removed.
func (n *Node) lookForOthers() {
	id := n.stable.identity()
	if !id.Formed || n.attached() != "" {
		n.asked = time.Time{}
		if n.attached() != "" {
			n.setRemoved(false)
			n.setForeign("")
			n.setMinority("")
		}
		return
	}
	if n.asked.IsZero() { // it may just have lost its leader
		n.asked = time.Now()
	}
	if time.Since(n.asked) < outsidePause {
		return
	}
	n.asked = time.Now()
	n.judgeOthers(id, n.probeAll(n.everybody(), probeTimeout))
}

// judgeOthers says what the answers of the others mean for a server that has no
// leader.
func (n *Node) judgeOthers(id identity, answers map[int]welcome) {
	foreign := ""
	for _, number := range slices.Sorted(maps.Keys(answers)) {
		w := answers[number]
		switch {
		case w.Formed && w.ClusterID != id.ClusterID:
			foreign = cmp.Or(foreign, otherEnsemble(w, id))
		case w.Leader == "":
		case w.Member:
			n.setForeign("")
			n.setMinority("")
			n.askForTwin(w.Leader)
			return
		default:
			n.setForeign("")
			n.setMinority("")
			n.noteRemoved(w.ID)
			return
		}
	}
	n.setForeign(foreign)
	n.setMinority(n.minorityText(id, answers))
	if own := id.raftID(); len(n.raftServers()) > 0 && !n.isMember(own) {
		n.noteRemoved(own) // the others may be gone for good
	}
}

// noteRemoved notes that this server is no member, by the word of another one or
// by its own log, and says so once.
func (n *Node) noteRemoved(toldBy string) {
	if n.setRemoved(true) {
		n.logger.Warn("this server is no member of the ensemble any more", "told_by", toldBy)
	}
}

// otherEnsemble says that who answers has data of another ensemble.
func otherEnsemble(w welcome, id identity) string {
	return fmt.Sprintf("server %s belongs to ensemble %s, this server's data to %s: one of the two has a wrong dataDir, or wrong server lines", w.ID, w.ClusterID, id.ClusterID)
}

// setForeign notes that those who answer have data of another ensemble, empty if
// they do not.
func (n *Node) setForeign(text string) {
	n.mu.Lock()
	changed := n.foreign != text
	n.foreign = text
	n.mu.Unlock()
	if changed && text != "" {
		n.logger.Error("the other servers are those of another ensemble", "reason", text)
	}
}

// setRemoved notes whether this server is no member any more, and tells whether
// that is new.
func (n *Node) setRemoved(removed bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := n.removed != removed
	n.removed = removed
	return changed
}
