package state

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
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

// Versions of zooraft's block in a snapshot. The lowest that can hold the state
// is written, so that a build before the newest can still be put back.
const (
	extensionPlain    = 1 // zxid, last term, sessions
	extensionReconfig = 2 // then the change of the membership under way
	// extensionLevel is for a command level above 1, which stands before the
	// rest: a build that does not support it can say so, whatever follows. The
	// change of the membership follows a byte that tells whether there is one.
	extensionLevel = 3
)

// Freeze returns the state as it is now: persist writes it, on any goroutine
// and while later commands are applied; release must be called when it is no
// longer needed. Freeze itself is short and does no I/O.
func (m *Machine) Freeze() (persist func(w io.Writer) error, release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	view := m.tree.Freeze()
	rows := m.table.Freeze()
	zxid, lastTerm, digest, reconfig, level := m.zxid, m.lastTerm, m.tree.Digest(), m.reconfig, m.CommandLevel()
	return func(w io.Writer) error {
		slices.SortFunc(rows, func(a, b *session.Session) int { return cmp.Compare(a.ID, b.ID) })
		c := snapshot.Content{
			Nodes: func(yield snapshot.NodeFunc) error { return view.Nodes(yield) },
			Zxid:  zxid, Digest: digest,
			Extension: extension(zxid, lastTerm, rows, reconfig, level),
			Sessions:  make([]snapshot.Session, len(rows)),
		}
		for i := range rows {
			c.Sessions[i] = snapshot.Session{ID: rows[i].ID, TimeoutMillis: rows[i].TimeoutMillis}
		}
		return snapshot.Write(w, c)
	}, view.Release
}

// extension encodes what Apache's format has no room for.
func extension(zxid proto.Zxid, lastTerm uint64, rows []*session.Session, reconfig *Reconfig, level byte) []byte {
	b := make([]byte, 0, 32+80*len(rows))
	switch {
	case level > firstLevel:
		b = proto.AppendInt(proto.AppendInt(b, extensionLevel), int32(level))
	case reconfig != nil:
		b = proto.AppendInt(b, extensionReconfig)
	default:
		b = proto.AppendInt(b, extensionPlain)
	}
	b = proto.AppendLong(proto.AppendLong(b, int64(zxid)), int64(lastTerm))
	b = proto.AppendInt(b, int32(len(rows)))
	for i := range rows {
		b = rows[i].Append(b)
	}
	if level > firstLevel {
		b = proto.AppendBool(b, reconfig != nil)
	}
	if reconfig != nil {
		b = reconfig.append(b, level)
	}
	return b
}

// restored is a state read from a snapshot, beside the one in use.
type restored struct {
	builder  *tree.Builder
	table    *session.Table
	zxid     proto.Zxid
	lastTerm uint64
	level    byte
	reconfig *Reconfig
}

// Session implements snapshot.Sink. The extension holds the rows in full.
func (r *restored) Session(snapshot.Session) error { return nil }

// Node implements snapshot.Sink.
func (r *restored) Node(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
	return r.builder.Add(path, data, acl, st)
}

// extension reads zooraft's block, of a state whose level is at most newest.
func (r *restored) extension(block []byte, newest byte) (err error) {
	d := proto.NewDecoder(block)
	version := d.Int()
	r.level = firstLevel
	switch version {
	case extensionPlain, extensionReconfig:
	case extensionLevel:
		if r.level, err = checkLevel(d.Int(), newest); err != nil {
			return err
		}
	default:
		return fmt.Errorf("version %d is unknown, newest known is %d", version, extensionLevel)
	}
	r.zxid, r.lastTerm = proto.Zxid(d.Long()), uint64(d.Long())
	for range d.Count(48) {
		r.table.Restore(session.Decode(d))
	}
	if version == extensionReconfig || version == extensionLevel && d.Bool() {
		if r.reconfig, err = decodeReconfig(d, newest); err != nil {
			return err
		}
	}
	return d.Err()
}

// Restore replaces the whole state by what Freeze's persist wrote. A state that
// has applied nothing stays on an error; any other one is let go first, or both
// would be in memory, and is lost.
func (m *Machine) Restore(in io.Reader) (err error) {
	used := m.letGo()
	defer func() {
		if err != nil && !used {
			m.hook.Restored() // as it was
		}
	}()
	r := &restored{builder: tree.NewBuilder(), table: session.NewTable()}
	trailer, err := snapshot.Read(in, r)
	if err != nil {
		return fmt.Errorf("state: restore: %w", err)
	}
	if trailer.Extension == nil {
		return ErrNotOurs
	}
	if err := r.extension(trailer.Extension, m.supports); err != nil {
		return fmt.Errorf("state: restore: zooraft's block: %w", err)
	}
	t, err := r.builder.Tree()
	if err != nil {
		return fmt.Errorf("state: restore: %w", err)
	}
	if trailer.HasDigest && trailer.Digest != t.Digest() {
		return fmt.Errorf("%w: it says %x, the nodes give %x", ErrDigest, trailer.Digest, t.Digest())
	}
	m.mu.Lock()
	m.zxid, m.lastTerm, m.tree, m.table, m.digests = r.zxid, r.lastTerm, t, r.table, nil
	m.reconfig = r.reconfig
	m.level.Store(uint32(r.level))
	m.hook.Restored()
	m.hook.MembershipChanged()
	m.mu.Unlock()
	return nil
}

// letGo empties the state, but for its zxid, and has the memory collected: by
// its own pace the collector would wait until the heap has doubled. It tells
// whether there was anything.
func (m *Machine) letGo() (used bool) {
	m.mu.Lock()
	m.hook.Reset()
	used = m.zxid != 0
	if used {
		m.tree, m.table, m.digests, m.reconfig, m.changes = tree.New(), session.NewTable(), nil, nil, nil
	}
	m.mu.Unlock()
	if used {
		runtime.GC()
	}
	return used
}
