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

// reapIndex holds the container and TTL nodes without children, where one that
// is due is found without looking at the others. A node is in exactly the slot
// that reapSlot tells for its present state.
type reapIndex struct {
	slots map[reapSlot]map[uint32]struct{}
}

// reapSlot is a set of nodes that become due together, give or take a minute.
type reapSlot struct {
	why reapReason
	// minute is a time in minutes since 1970: of the expiry for reapTTL, of
	// mtime for reapUnused, 0 for reapUsed.
	minute int64
}

type reapReason uint8

const (
	reapUsed   reapReason = iota + 1 // a container that had children: due at once
	reapUnused                       // a container that never had any
	reapTTL
)

const reapSlotMillis = 60_000

// slotOf returns the node's slot, if it has one.
func slotOf(n *node) (reapSlot, bool) {
	if n.stat.EphemeralOwner >= 0 || n.children > 0 {
		return reapSlot{}, false
	}
	switch kind, ttl := proto.ClassifyOwner(n.stat.EphemeralOwner); {
	case kind == proto.OwnerTTL:
		return reapSlot{reapTTL, (n.stat.Mtime + ttl) / reapSlotMillis}, true
	case kind == proto.OwnerContainer && n.stat.CVersion > 0:
		return reapSlot{reapUsed, 0}, true
	case kind == proto.OwnerContainer:
		return reapSlot{reapUnused, n.stat.Mtime / reapSlotMillis}, true
	}
	return reapSlot{}, false
}

// out and in stand around every change of a node's mtime, creates or number
// of children.
func (x *reapIndex) out(i uint32, n *node) {
	if s, ok := slotOf(n); ok {
		delete(x.slots[s], i)
		if len(x.slots[s]) == 0 {
			delete(x.slots, s)
		}
	}
}

func (x *reapIndex) in(i uint32, n *node) {
	if s, ok := slotOf(n); ok {
		set := x.slots[s]
		if set == nil {
			set = map[uint32]struct{}{}
			x.slots[s] = set
		}
		set[i] = struct{}{}
	}
}

// Reapable returns at most limit nodes that may be reaped at nowMillis (Unix
// ms): containers without children that had some, or that have been left
// unused for longer than maxNeverUsedMillis (0 means for ever), and TTL nodes
// without children whose data are older than their TTL.
func (t *Tree) Reapable(nowMillis, maxNeverUsedMillis int64, limit int) []Reap {
	var out []Reap
	for s, set := range t.reap.slots {
		late := nowMillis - s.minute*reapSlotMillis
		if s.why == reapTTL && late < 0 || s.why == reapUnused && (maxNeverUsedMillis == 0 || late < maxNeverUsedMillis) {
			continue
		}
		for i := range set {
			if len(out) >= limit {
				return out
			}
			if n := t.at(i); due(n, s.why, nowMillis-n.stat.Mtime, maxNeverUsedMillis) {
				out = append(out, Reap{Path: t.path(i), Czxid: n.stat.Czxid, Mzxid: n.stat.Mzxid})
			}
		}
	}
	return out
}

// due judges a node of a slot by its age in ms.
func due(n *node, why reapReason, age, maxNeverUsedMillis int64) bool {
	switch why {
	case reapTTL:
		_, ttl := proto.ClassifyOwner(n.stat.EphemeralOwner)
		return ttl != 0 && age > ttl
	case reapUnused:
		return age > maxNeverUsedMillis
	}
	return true
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
	return c.planRemoval(proto.OpDeleteContainer, r.Path, parentPath, n, parent), proto.ErrOK
}
