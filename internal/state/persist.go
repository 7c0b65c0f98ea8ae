package state

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/snapshot"
	"github.com/zooraft/zooraft/internal/tree"
)

var (
	// ErrNotOurs is returned for a snapshot that lacks zooraft's own block.
	ErrNotOurs = errors.New("state: the snapshot has no zooraft block; it is another program's and must be imported")
	// ErrDigest is returned for a snapshot whose tree does not have the
	// digest that it claims.
	ErrDigest = errors.New("state: the snapshot's tree does not match its digest")
)

// extensionVersion is the version of zooraft's block in a snapshot.
const extensionVersion = 2

// extensionPlain is the version of a block without a change of the membership
// under way, which earlier builds read as well.
const extensionPlain = 1

// Freeze returns the state as it is now: persist writes it, on any goroutine
// and while later commands are applied; release must be called when it is no
// longer needed. Freeze itself is short and does no I/O.
func (m *Machine) Freeze() (persist func(w io.Writer) error, release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	view := m.tree.Freeze()
	rows := m.table.Freeze()
	zxid, lastTerm, digest, reconfig := m.zxid, m.lastTerm, m.tree.Digest(), m.reconfig
	return func(w io.Writer) error {
		slices.SortFunc(rows, func(a, b *session.Session) int { return cmp.Compare(a.ID, b.ID) })
		c := snapshot.Content{
			Nodes: func(yield snapshot.NodeFunc) error { return view.Nodes(yield) },
			Zxid:  zxid, Digest: digest,
			Extension: extension(zxid, lastTerm, rows, reconfig),
			Sessions:  make([]snapshot.Session, len(rows)),
		}
		for i := range rows {
			c.Sessions[i] = snapshot.Session{ID: rows[i].ID, TimeoutMillis: rows[i].TimeoutMillis}
		}
		return snapshot.Write(w, c)
	}, view.Release
}

// extension encodes what Apache's format has no room for.
func extension(zxid proto.Zxid, lastTerm uint64, rows []*session.Session, reconfig *Reconfig) []byte {
	version := int32(extensionPlain)
	if reconfig != nil {
		version = extensionVersion
	}
	b := proto.AppendInt(make([]byte, 0, 24+80*len(rows)), version)
	b = proto.AppendLong(proto.AppendLong(b, int64(zxid)), int64(lastTerm))
	b = proto.AppendInt(b, int32(len(rows)))
	for i := range rows {
		b = rows[i].Append(b)
	}
	if reconfig != nil {
		b = reconfig.append(b)
	}
	return b
}

// restored is a state read from a snapshot, beside the one in use.
type restored struct {
	builder  *tree.Builder
	table    *session.Table
	reconfig *Reconfig
}

// Session implements snapshot.Sink. The extension holds the rows in full.
func (r *restored) Session(snapshot.Session) error { return nil }

// Node implements snapshot.Sink.
func (r *restored) Node(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
	return r.builder.Add(path, data, acl, st)
}

// Restore replaces the whole state by what Freeze's persist wrote. On an error
// the old state stays.
func (m *Machine) Restore(in io.Reader) error {
	r := &restored{builder: tree.NewBuilder(), table: session.NewTable()}
	trailer, err := snapshot.Read(in, r)
	if err != nil {
		return fmt.Errorf("state: restore: %w", err)
	}
	if trailer.Extension == nil {
		return ErrNotOurs
	}
	d := proto.NewDecoder(trailer.Extension)
	v := d.Int()
	if v != extensionVersion && v != extensionPlain {
		return fmt.Errorf("state: restore: block version %d is unknown, newest known is %d", v, extensionVersion)
	}
	zxid, lastTerm := proto.Zxid(d.Long()), uint64(d.Long())
	for range d.Count(48) {
		r.table.Restore(session.Decode(d))
	}
	if v == extensionVersion {
		if r.reconfig, err = decodeReconfig(d); err != nil {
			return fmt.Errorf("state: restore: zooraft's block: %w", err)
		}
	}
	if d.Err() != nil {
		return fmt.Errorf("state: restore: zooraft's block: %w", d.Err())
	}
	t, err := r.builder.Tree()
	if err != nil {
		return fmt.Errorf("state: restore: %w", err)
	}
	if trailer.HasDigest && trailer.Digest != t.Digest() {
		return fmt.Errorf("%w: it says %x, the nodes give %x", ErrDigest, trailer.Digest, t.Digest())
	}
	m.mu.Lock()
	m.zxid, m.lastTerm, m.tree, m.table, m.digests = zxid, lastTerm, t, r.table, nil
	m.reconfig = r.reconfig
	m.hook.Reset()
	m.hook.MembershipChanged()
	m.mu.Unlock()
	return nil
}
