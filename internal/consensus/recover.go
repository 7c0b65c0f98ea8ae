package consensus

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

/*
Recover starts an ensemble again from the data of one stopped server, when so
many others are lost for good that no majority will ever come back. What they
acknowledged and this server does not have is lost with them; nobody can tell
whether there is any.

The ensemble gets a new name, so that a lost server that turns up after all is
refused with all its data, and this server is its only member. The others come
back with empty directories, and the leader adds them. This server also tells whose
place it has taken: should a majority turn up after all, and it be an ensemble by
itself, its servers stop when they call this one. The name is changed
first: a crash after it leaves a server that finds no majority, and Recover can
be run again.
*/

// Recovery is what Recover found and, if it was allowed to, did.
type Recovery struct {
	ServerID int
	// Last is the last entry that this server has, LastTerm its term.
	Last, LastTerm uint64
	// Former are the members that the ensemble had as this server knows it.
	Former []Peer
	// Done says that the data were changed.
	Done bool
}

// Recover looks at the data of a stopped server and, if accepted, makes it the
// only member of a new ensemble. Finish is called once all entries have been
// applied to the state machine and before its state is stored.
func Recover(cfg Config, sm StateMachine, accepted bool, finish func()) (r Recovery, err error) {
	if err := cfg.Validate(); err != nil {
		return r, err
	}
	own, ok := newWanted(cfg.Peers).find(cfg.ServerID)
	if cfg.alone() || !ok {
		return r, fmt.Errorf("%w: a server alone has no majority to lose; use the file with all the server lines", ErrInvalidConfig)
	}
	l := cfg.layout()
	if !exists(l.stable()) {
		return r, fmt.Errorf("%w: %s holds no data", ErrLess, l.root)
	}
	n := newNode(cfg, sm, nil)
	defer close(n.opened)
	if n.locks, err = l.lock(); err != nil {
		return r, err
	}
	defer func() { _ = n.closeFiles() }()
	if err := n.openFiles(); err != nil {
		return r, err
	}
	if n.isElsewhere() {
		return r, fmt.Errorf("%w: %s was written by %s; start it with this file instead, if it is to become server %d",
			ErrIdentityMismatch, l.root, named(n.id, 0), cfg.ServerID)
	}
	if !n.id.Formed {
		return r, fmt.Errorf("%w: server %d has never been a member", ErrLess, cfg.ServerID)
	}
	if r, err = n.lookBeforeRecovery(); err != nil || !accepted {
		return r, err
	}
	if err := n.recover(own, finish); err != nil {
		return r, err
	}
	r.Done = true
	return r, nil
}

// lookBeforeRecovery says what is there.
func (n *Node) lookBeforeRecovery() (Recovery, error) {
	r := Recovery{ServerID: n.cfg.ServerID}
	configuration, err := n.storedConfiguration()
	if err != nil {
		return r, err
	}
	if r.Last, r.LastTerm, err = n.storedEnd(); err != nil {
		return r, err
	}
	for _, s := range configuration.Servers {
		number, _ := splitRaftID(string(s.ID))
		r.Former = append(r.Former, Peer{ID: number, Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	slices.SortFunc(r.Former, func(a, b Peer) int { return a.ID - b.ID })
	return r, nil
}

// storedConfiguration is the last of Raft's configurations in the opened files.
func (n *Node) storedConfiguration() (c raft.Configuration, err error) {
	snapshots, err := n.snapshots.List()
	if err != nil {
		return c, err
	}
	var covered uint64
	if len(snapshots) > 0 {
		covered, c = snapshots[0].Index, snapshots[0].Configuration
	}
	last, err := n.log.LastIndex()
	if err != nil {
		return c, err
	}
	for index := covered + 1; index <= last; index++ {
		var l raft.Log
		if err := n.log.GetLog(index, &l); err != nil {
			return c, err
		}
		if l.Type == raft.LogConfiguration {
			c = raft.DecodeConfiguration(l.Data)
		}
	}
	return c, nil
}

// storedEnd is the last entry in the opened files.
func (n *Node) storedEnd() (index, term uint64, err error) {
	snapshots, err := n.snapshots.List()
	if err != nil {
		return 0, 0, err
	}
	if len(snapshots) > 0 {
		index, term = snapshots[0].Index, snapshots[0].Term
	}
	last, err := n.log.LastIndex()
	if err != nil || last <= index {
		return index, term, err
	}
	var l raft.Log
	err = n.log.GetLog(last, &l)
	return l.Index, l.Term, err
}

func (n *Node) recover(own Peer, finish func()) error {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	term, err := n.stable.GetUint64(currentTermKey)
	if err != nil {
		return err
	}
	if err := n.stable.update(func(i *identity) {
		i.Superseded = append(i.Superseded, i.ClusterID)
		i.ClusterID, i.Founders = hex.EncodeToString(b[:]), nil
	}); err != nil {
		return err
	}
	only := raft.Server{ID: raft.ServerID(n.id.raftID()), Address: raft.ServerAddress(own.Address)}
	if err := n.rewriteMembers(only, &finishedFSM{fsm: n.fsm, finish: finish}); err != nil {
		return err
	}
	return n.stable.SetUint64(currentTermKey, term+1) // entries of the new ensemble have a term of their own
}

// rewriteMembers stores the whole state in a snapshot whose configuration has one
// member.
func (n *Node) rewriteMembers(only raft.Server, machine raft.FSM) error {
	config := n.cfg.raftConfig(only.ID)
	config.Logger = newRaftLogger(n.logger, "raft")
	err := raft.RecoverCluster(config, machine, n.log, n.stable, n.snapshots, newLoneTransport(only.Address),
		raft.Configuration{Servers: []raft.Server{only}})
	n.fsm.release() // the library does not here
	if reason := n.Err(); reason != nil {
		return reason // the library only says that it could not go on
	}
	return err
}

// finishedFSM changes the state once before it is stored.
type finishedFSM struct {
	*fsm
	finish func()
}

// Snapshot implements raft.FSM.
func (f *finishedFSM) Snapshot() (raft.FSMSnapshot, error) {
	if !f.refused.Load() {
		f.finish()
	}
	return f.fsm.Snapshot()
}
