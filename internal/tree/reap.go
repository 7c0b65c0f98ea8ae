package tree

import "github.com/zooraft/zooraft/internal/proto"

// Reap names a container or TTL node that may go, with the fact on which that
// was judged: it is still the node that czxid made, and where its age matters
// nobody has set its data since mzxid.
type Reap struct {
	Path  string
	Czxid proto.Zxid
	Mzxid proto.Zxid
}

// AppendReap adds the body of the deleteContainer command that reaps the node.
func AppendReap(dst []byte, r Reap) []byte {
	dst = proto.AppendString(dst, r.Path)
	return proto.AppendLong(proto.AppendLong(dst, int64(r.Czxid)), int64(r.Mzxid))
}

func decodeReap(d *proto.Decoder) Reap {
	return Reap{Path: d.String(), Czxid: proto.Zxid(d.Long()), Mzxid: proto.Zxid(d.Long())}
}

// Reapable returns at most limit nodes that may be reaped at nowMillis (Unix
// ms): containers without children that had some, or that have been left
// unused for longer than maxNeverUsedMillis (0 means for ever), and TTL nodes
// without children whose data are older than their TTL.
func (t *Tree) Reapable(nowMillis, maxNeverUsedMillis int64, limit int) []Reap {
	var out []Reap
	for i := range t.reapable {
		if len(out) >= limit {
			break
		}
		n := t.at(i)
		if n.children > 0 {
			continue
		}
		kind, ttl := proto.ClassifyOwner(n.stat.EphemeralOwner)
		age := nowMillis - n.stat.Mtime
		due := ttl != 0 && age > ttl
		if kind == proto.OwnerContainer {
			due = n.stat.CVersion > 0 || maxNeverUsedMillis != 0 && age > maxNeverUsedMillis
		}
		if due {
			out = append(out, Reap{Path: t.path(i), Czxid: n.stat.Czxid, Mzxid: n.stat.Mzxid})
		}
	}
	return out
}

// planReap checks a deleteContainer command of our own. A node that is not the
// one judged, or whose age starts anew, gives ErrBadVersion.
func (c *checker) planReap(r *Reap) (plan, proto.ErrCode) {
	p := plan{op: proto.OpDeleteContainer, path: r.Path}
	parentPath, ok := parentOf(r.Path)
	if !ok || systemPath(r.Path) {
		return p, proto.ErrBadArguments
	}
	n, ok := c.look(r.Path)
	if !ok {
		return p, proto.ErrNoNode
	}
	if n.children > 0 {
		return p, proto.ErrNotEmpty
	}
	st := &c.t.at(n.number).stat
	kind, _ := proto.ClassifyOwner(st.EphemeralOwner)
	byAge := kind == proto.OwnerTTL || st.CVersion == 0
	if kind != proto.OwnerContainer && kind != proto.OwnerTTL || st.Czxid != r.Czxid || byAge && st.Mzxid != r.Mzxid {
		return p, proto.ErrBadVersion
	}
	parent, _ := c.look(parentPath)
	return c.planRemoval(proto.OpDeleteContainer, r.Path, parentPath, &n, &parent), proto.ErrOK
}
