package consensus

import (
	"fmt"
	"strconv"

	"github.com/hashicorp/raft"
)

/*
A server alone that becomes a member of an ensemble, and the way back. Its zoo.cfg
says which it is, so an operator who adds server lines to the file of a server
alone has decided it, as with Apache's; the data go with it. The leader, which it
is then, adds the others.

Nothing is lost or doubled by it only while this server is the one member that its
data know. Otherwise it is refused: a member of several that went on alone would
take the others' writes with it, and Recover, which does so, is never run by
accident.

The Raft id holds the server's number, so Raft's configuration is rewritten, by the
library's own way of doing it: a snapshot of everything with the new configuration.
The identity says before and until after it which number the configuration may
still have, so that a start after a crash goes on, or back if the file says so.
*/

// resettles tells whether data of this identity may become those of this server.
// There are none before an ensemble is formed, unless this server has promised
// itself to one: then another number, in a file with an error put right, is fine.
func (n *Node) resettles(id identity) bool {
	if !id.Formed {
		return len(id.Promised) == 0 && len(id.Founders) == 0
	}
	return id.alone() != n.cfg.alone()
}

// isElsewhere tells that the data are another server's, in whole or in part, and
// may become this one's.
func (n *Node) isElsewhere() bool {
	return n.id.ServerID != n.cfg.ServerID || n.id.Former != nil || n.id.Alone != nil && *n.id.Alone != n.cfg.alone()
}

// resettle gives the data to the server that this is now.
func (n *Node) resettle() error {
	stored, err := n.storedConfiguration()
	if err != nil {
		return err
	}
	was := n.id
	former := n.id
	if n.id.Former != nil {
		former.ServerID = *n.id.Former
	}
	if !onlyMember(stored, n.id) && !onlyMember(stored, former) {
		return fmt.Errorf("%w: %s was written by %s, and this is %s; add the server lines again, or, if the others are lost for good, "+
			"run 'zooraft recover' with them", ErrIdentityMismatch, n.cfg.layout().root, named(was, len(stored.Servers)), n.configured())
	}
	own, member := newWanted(n.cfg.Peers).find(n.cfg.ServerID)
	if member && !own.Voter {
		return fmt.Errorf("%w: %s was written by %s; only a participant can go on with its data, and the configuration makes this server an observer",
			ErrIdentityMismatch, n.cfg.layout().root, named(was, 0))
	}
	number, _ := splitRaftID(string(stored.Servers[0].ID))
	alone := n.cfg.alone()
	if err := n.stable.update(func(i *identity) { i.ServerID, i.Former, i.Alone = n.cfg.ServerID, &number, &alone }); err != nil {
		return err
	}
	id := n.stable.identity().raftID()
	only := raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)}
	if member {
		only.Address = raft.ServerAddress(own.Address)
	}
	if err := n.rewriteMembers(only, n.fsm); err != nil {
		return err
	}
	if err := n.stable.update(func(i *identity) { i.Former, i.Founders = nil, nil }); err != nil {
		return err
	}
	n.id = n.stable.identity()
	n.logger.Warn("the data of a server go on under another number", "was", named(was, 1), "is", named(n.id, 1))
	return nil
}

// onlyMember tells whether a configuration has one voter, of this identity.
func onlyMember(c raft.Configuration, id identity) bool {
	return len(c.Servers) == 1 && string(c.Servers[0].ID) == id.raftID() && c.Servers[0].Suffrage == raft.Voter
}

// configured is this server in words, as its file has it.
func (n *Node) configured() string {
	alone := n.cfg.alone()
	return named(identity{ServerID: n.cfg.ServerID, Alone: &alone}, 0)
}

// named is the server of an identity in words; members is how many servers its
// ensemble has.
func named(id identity, members int) string {
	switch {
	case id.alone():
		return "a server alone"
	case members > 1:
		return fmt.Sprintf("server %d of an ensemble of %d", id.ServerID, members)
	}
	return "server " + strconv.Itoa(id.ServerID)
}
