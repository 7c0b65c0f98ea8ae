// Package state is the replicated state machine: zxid, tree, session table and
// watches behind one lock. Apply decides what a command does; Read answers
// what needs no log; Freeze and Restore move the whole.
//
// It starts no goroutine, does no I/O, reads no clock, and waits for nothing.
// Under its lock it calls nobody but its Hook, the watch manager and the
// asker of a read.
package state

import (
	"sync/atomic"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/internal/watch"
)

// Outcome is what a command did, as its asker shall learn it.
type Outcome struct {
	// Zxid belongs into the reply: the command's own, or the last one where
	// it took none.
	Zxid proto.Zxid
	// Result holds the error code and what the reply's body is made of.
	Result tree.Result
	// Session is the row that create- or renew-session made; nil otherwise,
	// and nil if there is no such session or the password is wrong.
	Session *session.Session
	// ZxidAhead tells that a connecting client has seen a zxid that this
	// state has not reached.
	ZxidAhead bool
}

// Hook is told what apply does. Its methods are called by the goroutine that
// applies, under the state lock except where said, and must neither block nor
// call the Machine.
type Hook interface {
	// Applied hands over the outcome of a command to whoever asked. It
	// returns true if reads of the same connection wait behind it.
	Applied(h *proto.TxnHeader, o *Outcome) (readsWait bool)
	// ServeReads answers the reads that waited, up to the connection's next
	// write, before the next command applies. It uses ReadApplying, the one
	// method of the Machine that it may call. Giving the lock up for it would
	// mean to wait for slow readers after each command.
	ServeReads(origin proto.Origin)
	// OutOfTurn tells that a command of this connection had no effect, since
	// its session is owned by another one or an earlier command of the same
	// connection has not been applied. No reply can be given.
	OutOfTurn(origin proto.Origin)
	// SessionMoved tells that a session got a new owner or a new timeout.
	// Former is the owner before, the zero Origin for a new session.
	SessionMoved(s *session.Session, former proto.Origin)
	// SessionClosed tells that a session and its ephemerals are gone.
	SessionClosed(id proto.SessionID, owner proto.Origin)
	// MembershipChanged tells that /zookeeper/config has changed, or that a
	// change of the membership has begun, goes on or was given up.
	MembershipChanged()
	// EntryApplied is called once after each entry, without the lock, with the
	// leader's time in the entry.
	EntryApplied(timeMillis int64)
	// Reset tells that the whole state is being replaced, which takes as long as
	// reading it: until Restored there is nothing to be read. When it returns,
	// all connections are Gone: one that read the new state without the events
	// between would miss them for ever, since its client would then come back
	// and ask for what happened since that read.
	Reset()
	// Restored tells that the new state is in force, or still the old one if it
	// was new. It is not called when a state was let go and none took its place.
	Restored()
}

// Traffic counts the bytes of reads and writes by path, as mntr shows them by
// namespace. Its methods are called under the state lock, Read by many
// goroutines at once; they must neither block nor call the Machine, nor keep
// the path, which may be a piece of a request's buffer.
type Traffic interface {
	Read(a Asker, path string, bytes int)
	Wrote(path string, bytes int)
}

// CountTraffic has reads and writes counted. It must be called before the
// first of them.
func (m *Machine) CountTraffic(t Traffic) { m.traffic = t }

// digestEvery is how many zxids lie between two digests kept for the
// four-letter word hash, and digestsKept how many are kept (Apache's).
const (
	digestEvery = 128
	digestsKept = 1024
)

// DigestAt is the tree digest after a zxid, the session table's hash and the
// command level then.
type DigestAt struct {
	Zxid     proto.Zxid
	Digest   uint64
	Level    byte
	Sessions uint64
}

// Machine is the state of one server.
type Machine struct {
	hook    Hook
	watches *watch.Manager
	traffic Traffic // nil if nobody counts
	// supports is the highest command level that this server can apply. It is
	// not part of the state.
	supports byte
	// level is the command level in force; 1 ≤ level ≤ supports. It is written
	// under mu and read by everybody.
	level atomic.Uint32

	mu       spreadLock
	zxid     proto.Zxid // last one taken, or (epoch, 0) after an epoch began
	lastTerm uint64     // Raft term of the last command entry
	tree     *tree.Tree
	table    *session.Table
	digests  []DigestAt // oldest first, at most digestsKept

	reconfig *Reconfig // the change of the membership under way, or nil; replaced as a whole

	// switches are those of the last entry.
	switches uint32
	// changes is scratch for one command; only the applying goroutine uses it.
	changes []tree.Change
}

// New returns the state of a server that has never run.
func New(hook Hook, watches *watch.Manager) *Machine {
	m := &Machine{hook: hook, watches: watches, mu: newSpreadLock(), tree: tree.New(), table: session.NewTable(), supports: proto.CommandVersion}
	m.level.Store(uint32(firstLevel))
	return m
}

// View is the state as a reader sees it while it holds the read lock.
type View struct {
	Zxid    proto.Zxid
	Tree    *tree.Tree
	Table   *session.Table
	Digests []DigestAt
	// Reconfig is the change of the membership under way or nil. It may be
	// kept, and is not to be changed.
	Reconfig *Reconfig
}

// View calls fn under the read lock. fn must not keep what it is given.
func (m *Machine) View(fn func(v View)) {
	lane := m.mu.lane(0)
	lane.RLock()
	defer lane.RUnlock()
	fn(View{Zxid: m.zxid, Tree: m.tree, Table: m.table, Digests: m.digests, Reconfig: m.reconfig})
}

// Zxid returns the last processed zxid.
func (m *Machine) Zxid() proto.Zxid {
	lane := m.mu.lane(0)
	lane.RLock()
	defer lane.RUnlock()
	return m.zxid
}

// Watches returns the watch manager, which has its own lock.
func (m *Machine) Watches() *watch.Manager { return m.watches }

// SkipEpochs raises the epoch by n. It is for a state that goes on after others
// may have gone further, before it serves anybody: zxids never go back.
func (m *Machine) SkipEpochs(n uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.zxid = proto.MakeZxid(m.zxid.Epoch()+n, 0)
}
