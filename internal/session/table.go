// Package session knows who has a session. Table is the replicated part: id,
// timeout, password, owner. Tracker is the leader's clock: when each session
// is due. The two never mix in one type.
//
// It starts no goroutine, and reads no clock but the times handed in.
package session

import (
	"cmp"
	"crypto/subtle"
	"hash/fnv"
	"slices"

	"github.com/zooraft/zooraft/internal/proto"
)

// Session is one row of the table.
type Session struct {
	ID            proto.SessionID
	TimeoutMillis int32
	Password      []byte // PasswordLen bytes; never changed in place
	// Owner is the connection that may speak for the session. Generation
	// counts the owners: create is 1, each renew adds one.
	Owner      proto.Origin
	Generation uint64
	// LastSeq is the sequence number of the owner's last command that took
	// effect; a command takes effect only if its own is LastSeq + 1.
	LastSeq uint64
}

// PasswordMatches compares in constant time.
func (s *Session) PasswordMatches(password []byte) bool {
	return subtle.ConstantTimeCompare(s.Password, password) == 1
}

// Table is the replicated session table. It has no lock: it lives under the
// state lock.
//
// Rows are shared with the views that Freeze returned and therefore never
// changed in place once frozen: the first write to a row after a Freeze copies
// it.
//
// Invariants: rows[index[id]].ID == id for every id of index, and index, rows
// and born have the same length.
type Table struct {
	index map[proto.SessionID]int
	rows  []*Session
	born  []uint64 // born[i] is the epoch in which rows[i] was made
	epoch uint64   // raised by every Freeze
	// hash is the sum of the rows' hashes.
	hash uint64 // = Σ rows[i].constant() + rows[i].LastSeq × rows[i].weight()
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{index: map[proto.SessionID]int{}} }

// Freeze returns the rows as they are, in any order. They may be read from any
// goroutine while the table is written, and must not be changed. It costs a
// copy of 8 bytes for each row.
func (t *Table) Freeze() []*Session {
	t.epoch++
	return slices.Clone(t.rows)
}

// own returns the row for writing.
func (t *Table) own(id proto.SessionID) *Session {
	i := t.index[id]
	if t.born[i] != t.epoch {
		dup := *t.rows[i]
		t.rows[i], t.born[i] = &dup, t.epoch
	}
	return t.rows[i]
}

func (t *Table) add(s *Session) {
	t.hash += s.hash()
	t.index[s.ID] = len(t.rows)
	t.rows, t.born = append(t.rows, s), append(t.born, t.epoch)
}

// Get returns the row, or nil. The caller must not change it, nor keep it over
// a change of the table.
func (t *Table) Get(id proto.SessionID) *Session {
	if i, ok := t.index[id]; ok {
		return t.rows[i]
	}
	return nil
}

// Len is the number of sessions.
func (t *Table) Len() int { return len(t.rows) }

// Create adds a session with its first owner. It returns nil if the id is
// taken; the proposer then mints another one.
func (t *Table) Create(id proto.SessionID, timeoutMillis int32, password []byte, owner proto.Origin) *Session {
	if t.Get(id) != nil {
		return nil
	}
	s := &Session{ID: id, TimeoutMillis: timeoutMillis, Password: slices.Clone(password), Owner: owner, Generation: 1}
	t.add(s)
	return s
}

// Renew gives an existing session a new owner and timeout, starts its sequence
// numbers afresh, and returns the row. The caller has checked the password.
func (t *Table) Renew(id proto.SessionID, timeoutMillis int32, owner proto.Origin) *Session {
	s := t.own(id)
	t.hash -= s.hash()
	s.TimeoutMillis = timeoutMillis
	s.Owner = owner
	s.Generation++
	s.LastSeq = 0
	t.hash += s.hash()
	return s
}

// Advance records that the command seq of an existing session's owner takes
// effect. It returns false, changing nothing, if seq is not the next number.
func (t *Table) Advance(id proto.SessionID, seq uint64) bool {
	if seq != t.Get(id).LastSeq+1 {
		return false
	}
	s := t.own(id)
	s.LastSeq = seq
	t.hash += s.weight()
	return true
}

// Remove deletes the row, if there is one.
func (t *Table) Remove(id proto.SessionID) {
	i, ok := t.index[id]
	if !ok {
		return
	}
	t.hash -= t.rows[i].hash()
	last := len(t.rows) - 1
	t.rows[i], t.born[i] = t.rows[last], t.born[last]
	t.index[t.rows[i].ID] = i
	delete(t.index, id)
	t.rows[last] = nil
	t.rows, t.born = t.rows[:last], t.born[:last]
}

// All returns copies of all rows, sorted by id.
func (t *Table) All() []Session {
	out := t.Rows()
	Sort(out)
	return out
}

// Rows returns copies of all rows in any order.
func (t *Table) Rows() []Session {
	out := make([]Session, 0, len(t.rows))
	for _, s := range t.rows {
		out = append(out, *s)
	}
	return out
}

// Sort sorts rows by id.
func Sort(rows []Session) {
	slices.SortFunc(rows, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
}

// Restore adds a row as it was saved.
func (t *Table) Restore(s Session) {
	t.Remove(s.ID)
	t.add(&s)
}

// Hash is equal on replicas whose tables are equal. It is the sum of the
// rows' hashes, so that it does not depend on order, and kept up to date: each
// write of a client changes its row's LastSeq, and costs one addition.
func (t *Table) Hash() uint64 { return t.hash }

func (s *Session) hash() uint64 { return s.constant() + s.LastSeq*s.weight() }

// constant is the hash of all but LastSeq, which change seldom.
func (s *Session) constant() uint64 {
	without := *s
	without.LastSeq = 0
	h := fnv.New64a()
	h.Write(without.Append(nil)) // a hash.Hash never fails
	return h.Sum64()
}

// weight is an odd number of the session's own, so that LastSeq of one cannot
// make up for another's. The factor is 2⁶⁴ divided by the golden ratio.
func (s *Session) weight() uint64 { return uint64(s.ID)*0x9e3779b97f4a7c15 | 1 }

// Append adds the row's encoding to dst.
func (s *Session) Append(dst []byte) []byte {
	dst = proto.AppendLong(dst, int64(s.ID))
	dst = proto.AppendBuffer(proto.AppendInt(dst, s.TimeoutMillis), s.Password)
	dst = proto.AppendLong(proto.AppendInt(dst, s.Owner.Server), int64(s.Owner.Conn))
	return proto.AppendLong(proto.AppendLong(dst, int64(s.Generation)), int64(s.LastSeq))
}

// Decode reads a row that Append wrote.
func Decode(d *proto.Decoder) Session {
	return Session{
		ID: proto.SessionID(d.Long()), TimeoutMillis: d.Int(), Password: slices.Clone(d.Buffer()),
		Owner:      proto.Origin{Server: d.Int(), Conn: uint64(d.Long())},
		Generation: uint64(d.Long()), LastSeq: uint64(d.Long()),
	}
}
