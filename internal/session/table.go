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
type Table struct {
	rows map[proto.SessionID]*Session
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{rows: map[proto.SessionID]*Session{}} }

// Get returns the row, or nil. The caller must not change it.
func (t *Table) Get(id proto.SessionID) *Session { return t.rows[id] }

// Len is the number of sessions.
func (t *Table) Len() int { return len(t.rows) }

// Create adds a session with its first owner. It returns nil if the id is
// taken; the proposer then mints another one.
func (t *Table) Create(id proto.SessionID, timeoutMillis int32, password []byte, owner proto.Origin) *Session {
	if t.rows[id] != nil {
		return nil
	}
	s := &Session{ID: id, TimeoutMillis: timeoutMillis, Password: slices.Clone(password), Owner: owner, Generation: 1}
	t.rows[id] = s
	return s
}

// Renew gives an existing session a new owner and timeout and starts its
// sequence numbers afresh. The caller has checked the password.
func (t *Table) Renew(s *Session, timeoutMillis int32, owner proto.Origin) {
	s.TimeoutMillis = timeoutMillis
	s.Owner = owner
	s.Generation++
	s.LastSeq = 0
}

// Advance records that the owner's command seq takes effect. It returns false,
// changing nothing, if seq is not the next number.
func (t *Table) Advance(s *Session, seq uint64) bool {
	if seq != s.LastSeq+1 {
		return false
	}
	s.LastSeq = seq
	return true
}

// Remove deletes the row.
func (t *Table) Remove(id proto.SessionID) { delete(t.rows, id) }

// All returns copies of all rows, sorted by id.
func (t *Table) All() []Session {
	out := t.Rows()
	Sort(out)
	return out
}

// Rows returns copies of all rows in any order: the part of All that must be
// done under the state lock.
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
func (t *Table) Restore(s Session) { t.rows[s.ID] = &s }

// Hash is equal on replicas whose tables are equal. It is the sum of the
// rows' hashes, so that it does not depend on order.
func (t *Table) Hash() uint64 {
	var sum uint64
	for _, s := range t.rows {
		h := fnv.New64a()
		h.Write(s.Append(nil)) // a hash.Hash never fails
		sum += h.Sum64()
	}
	return sum
}

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
