package state

import (
	"fmt"
	"slices"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/internal/watch"
)

// Apply applies one log entry: the commands, in order, with the leader's time
// (Unix ms) and switches. What it does depends on the log alone, so replicas
// agree. It is total: whatever a client sent gives an outcome.
//
// The error is for commands that this build cannot read; none of the entry's
// commands has then taken effect, and the server must stop.
func (m *Machine) Apply(index, term uint64, timeMillis int64, switches uint32, commands [][]byte) error {
	txns := make([]proto.Txn, len(commands))
	for i, c := range commands {
		var err error
		if txns[i], err = m.decode(c); err != nil {
			return fmt.Errorf("state: log entry %d, command %d: %w", index, i, err)
		}
	}
	m.mu.Lock()
	m.switches = switches
	if len(txns) > 0 && term != m.lastTerm {
		m.lastTerm = term
		m.zxid = proto.MakeZxid(m.zxid.Epoch()+1, 0)
	}
	for i := range txns {
		if m.applyOne(&txns[i], index, timeMillis) {
			m.hook.ServeReads(txns[i].Origin)
		}
	}
	m.mu.Unlock()
	m.hook.EntryApplied(timeMillis)
	return nil
}

// applyOne requires the lock. It returns true if reads wait behind the
// command.
func (m *Machine) applyOne(t *proto.Txn, index uint64, timeMillis int64) bool {
	switch t.Type {
	case proto.OpCreateSession:
		return m.createSession(t)
	case proto.OpRenewSession:
		return m.renewSession(t)
	case proto.OpExpireSession:
		m.expireSession(t, timeMillis)
		return false
	}
	if t.Type == proto.OpRaiseLevel && t.Origin == (proto.Origin{}) {
		m.raiseLevel(t)
		return false
	}
	if t.Origin != (proto.Origin{}) && t.Seq != proto.SeqLocal {
		row := m.table.Get(t.Session)
		switch {
		case row == nil:
			zxid := m.zxid
			if t.Type != proto.OpSync {
				zxid = m.take(m.nextZxid())
			}
			return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: zxid, Result: tree.Result{Err: proto.ErrSessionExpired}})
		case row.Owner != t.Origin || !m.table.Advance(t.Session, t.Seq):
			m.hook.OutOfTurn(t.Origin)
			return false
		}
	}
	switch t.Type {
	case proto.OpSync:
		return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, Result: syncResult(t.Body)})
	case proto.OpCloseSession:
		return m.closeSession(t, timeMillis)
	case proto.OpReconfig:
		if t.Origin == (proto.Origin{}) {
			return m.stepReconfig(t, timeMillis)
		}
		return m.askReconfig(t, index)
	}
	return m.applyTree(t, timeMillis)
}

// applyTree lets the tree decide, fires the watches, and reports.
func (m *Machine) applyTree(t *proto.Txn, timeMillis int64) bool {
	zxid := m.nextZxid()
	result, changes := m.tree.Apply(m.txn(t, zxid, timeMillis), t.Type, t.Body, m.changes[:0])
	m.changes = changes
	if result.NoZxid {
		zxid = m.zxid
	} else {
		m.take(zxid)
	}
	m.fire(zxid)
	return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: zxid, Result: result})
}

func (m *Machine) txn(t *proto.Txn, zxid proto.Zxid, timeMillis int64) tree.Txn {
	return tree.Txn{
		Zxid: zxid, TimeMillis: timeMillis, Session: t.Session,
		Identities: t.Identities, Switches: m.switches, LocalSession: t.Seq == proto.SeqLocal,
	}
}

// changesKept is the longest scratch of changes that is kept for the next
// command: the end of a session with many ephemerals makes a very long one.
const changesKept = 1024

// fire turns the changes of the command just applied into notifications.
func (m *Machine) fire(zxid proto.Zxid) {
	for i := range m.changes {
		c := &m.changes[i]
		m.watches.Fire(watch.Trigger{Type: c.Type, Path: c.Path, ACL: c.ACL}, zxid)
		if m.traffic != nil && c.Type != proto.EventNodeChildrenChanged {
			m.traffic.Wrote(c.Path, len(c.Path)+c.DataLength)
		}
		*c = tree.Change{}
	}
	if m.changes = m.changes[:0]; cap(m.changes) > changesKept {
		m.changes = nil
	}
}

// nextZxid is what the next command will take. A full counter goes on in the
// next epoch, without an election.
func (m *Machine) nextZxid() proto.Zxid {
	if m.zxid.Counter() == 0xffffffff {
		return proto.MakeZxid(m.zxid.Epoch()+1, 1)
	}
	return m.zxid + 1
}

// take makes zxid the last one, and keeps the digest of each 128th.
func (m *Machine) take(zxid proto.Zxid) proto.Zxid {
	m.zxid = zxid
	if zxid.Counter()%digestEvery == 0 {
		if len(m.digests) == digestsKept {
			m.digests = slices.Delete(m.digests, 0, 1)
		}
		m.digests = append(m.digests, DigestAt{Zxid: zxid, Digest: m.tree.Digest(), Level: m.CommandLevel(), Sessions: m.table.Hash()})
	}
	return zxid
}

func (m *Machine) createSession(t *proto.Txn) bool {
	d := proto.NewDecoder(t.Body)
	req := d.CreateSessionBody()
	if req.LastZxidSeen > m.zxid {
		return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, ZxidAhead: true})
	}
	s := m.table.Create(t.Session, req.TimeoutMillis, req.Password, t.Origin)
	if s == nil {
		// The proposer mints another id.
		return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, Result: tree.Result{Err: proto.ErrNodeExists}})
	}
	zxid := m.take(m.nextZxid())
	m.hook.SessionMoved(s, proto.Origin{})
	return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: zxid, Session: s})
}

func (m *Machine) renewSession(t *proto.Txn) bool {
	d := proto.NewDecoder(t.Body)
	req := d.CreateSessionBody()
	if req.LastZxidSeen > m.zxid {
		return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, ZxidAhead: true})
	}
	s := m.table.Get(t.Session)
	if s == nil || !s.PasswordMatches(req.Password) {
		// The owner, if there is one, keeps its session: a guess must not
		// disconnect it.
		return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, Result: tree.Result{Err: proto.ErrSessionExpired}})
	}
	former := s.Owner
	s = m.table.Renew(s.ID, req.TimeoutMillis, t.Origin)
	m.hook.SessionMoved(s, former)
	return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, Session: s})
}

// ExpireBody is the record of an expire-session command: the owner generation
// that the proposer knew when the session's time was up.
func ExpireBody(generation uint64) []byte { return proto.AppendLong(nil, int64(generation)) }

// expireSession closes the session, unless a renewal came first.
func (m *Machine) expireSession(t *proto.Txn, timeMillis int64) {
	d := proto.NewDecoder(t.Body)
	s := m.table.Get(t.Session)
	if s == nil || s.Generation != uint64(d.Long()) {
		return
	}
	m.endSession(t, s, timeMillis)
}

func (m *Machine) closeSession(t *proto.Txn, timeMillis int64) bool {
	s := m.table.Get(t.Session)
	if s == nil { // only a command of the server's own gets here without a row
		return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: m.zxid, Result: tree.Result{Err: proto.ErrSessionExpired}})
	}
	zxid := m.endSession(t, s, timeMillis)
	return m.hook.Applied(&t.TxnHeader, &Outcome{Zxid: zxid})
}

// endSession removes the row and the ephemerals in one step, so that whoever
// is told that the session is over finds none of its nodes.
func (m *Machine) endSession(t *proto.Txn, s *session.Session, timeMillis int64) proto.Zxid {
	zxid := m.nextZxid()
	m.changes = m.tree.CloseSession(m.txn(t, zxid, timeMillis), m.changes[:0])
	m.table.Remove(s.ID)
	m.take(zxid)
	m.fire(zxid)
	if t.Type == proto.OpExpireSession {
		m.hook.SessionClosed(s.ID, s.Owner)
	} else {
		// The asker's connection is closed by its own reply.
		m.hook.SessionClosed(s.ID, proto.Origin{})
	}
	return zxid
}

// syncResult echoes the path, which is not looked at.
func syncResult(body []byte) tree.Result {
	d := proto.NewDecoder(body)
	path := d.String()
	if d.Err() != nil {
		return tree.Result{Err: proto.ErrMarshalling}
	}
	return tree.Result{Type: proto.OpSync, Path: path}
}
