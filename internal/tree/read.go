package tree

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// Reader is who asks. What a read returns by reference is never changed later.
type Reader struct {
	Identities []proto.ID
	SkipACL    bool
}

// reach finds a node and checks any of the permissions. No path is invalid
// for a read: what cannot be there is not there. Only null is malformed.
func (t *Tree) reach(r Reader, path string, perm int32) (*node, proto.ErrCode) {
	if path == proto.NullString {
		return nil, proto.ErrMarshalling
	}
	i := t.find(path)
	if i == none {
		return nil, proto.ErrNoNode
	}
	n := t.at(i)
	if !r.SkipACL && !n.acl.Allowed(perm, r.Identities) {
		return nil, proto.ErrNoAuth
	}
	return n, proto.ErrOK
}

func (t *Tree) stat(n *node) proto.Stat {
	st := n.stat.persisted()
	return st.Wire(len(n.data), int(n.children))
}

// Get answers getData. Data is nil for null.
func (t *Tree) Get(r Reader, path string) ([]byte, proto.Stat, proto.ErrCode) {
	n, code := t.reach(r, path, proto.PermRead)
	if code != proto.ErrOK {
		return nil, proto.Stat{}, code
	}
	return n.data, t.stat(n), proto.ErrOK
}

// Exists answers exists: it needs READ if the node is there.
func (t *Tree) Exists(r Reader, path string) (proto.Stat, proto.ErrCode) {
	if strings.IndexByte(path, 0) >= 0 {
		return proto.Stat{}, proto.ErrBadArguments
	}
	n, code := t.reach(r, path, proto.PermRead)
	if code != proto.ErrOK {
		return proto.Stat{}, code
	}
	return t.stat(n), proto.ErrOK
}

// Children is the list of a node's children, valid until the next write.
type Children struct {
	t     *Tree
	first uint32
	count int
}

// Len returns the number of children.
func (k Children) Len() int { return k.count }

// All yields the names, the newest child first.
func (k Children) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := k.first; i != none; {
			n := k.t.at(i)
			if !yield(n.name) {
				return
			}
			i = n.next
		}
	}
}

// Children answers getChildren and getChildren2.
func (t *Tree) Children(r Reader, path string) (Children, proto.Stat, proto.ErrCode) {
	n, code := t.reach(r, path, proto.PermRead)
	if code != proto.ErrOK {
		return Children{}, proto.Stat{}, code
	}
	return Children{t: t, first: n.first, count: int(n.children)}, t.stat(n), proto.ErrOK
}

// ACL answers getACL: it needs READ or ADMIN, and without ADMIN the hashes of
// digest ids are masked.
func (t *Tree) ACL(r Reader, path string) ([]proto.ACL, proto.Stat, proto.ErrCode) {
	n, code := t.reach(r, path, proto.PermRead|proto.PermAdmin)
	if code != proto.ErrOK {
		return nil, proto.Stat{}, code
	}
	acl := n.acl.acl
	if !r.SkipACL && !n.acl.Allowed(proto.PermAdmin, r.Identities) {
		acl = slices.Clone(acl)
		for i := range acl {
			acl[i].ID = mask(acl[i].ID)
		}
	}
	return acl, t.stat(n), proto.ErrOK
}

// PathACL returns the node's ACL list without a check.
func (t *Tree) PathACL(path string) ([]proto.ACL, bool) {
	i := t.find(path)
	if i == none {
		return nil, false
	}
	return t.at(i).acl.acl, true
}

// Stat returns the node's persisted stat without a check.
func (t *Tree) Stat(path string) (proto.StatPersisted, bool) {
	i := t.find(path)
	if i == none {
		return proto.StatPersisted{}, false
	}
	return t.at(i).stat.persisted(), true
}

// AllChildrenNumber answers getAllChildrenNumber: it counts all descendants.
func (t *Tree) AllChildrenNumber(r Reader, path string) (int32, proto.ErrCode) {
	n, code := t.reach(r, path, proto.PermRead)
	if code != proto.ErrOK {
		return 0, code
	}
	var count int
	switch {
	case path == "":
		count = t.nodes // Apache counts "/" as a child of its other name
	case path == proto.PathRoot:
		count = t.nodes - 1
	case n.first != none:
		t.below(t.find(path), func(*node) { count++ })
	}
	return int32(min(count, math.MaxInt32)), proto.ErrOK
}

// below visits all descendants of node top, parents first.
func (t *Tree) below(top uint32, visit func(*node)) {
	for i := t.at(top).first; i != none; {
		n := t.at(i)
		visit(n)
		if n.first != none {
			i = n.first
			continue
		}
		for n.next == none && n.parent != top {
			n = t.at(n.parent)
		}
		i = n.next
	}
}

// Ephemerals answers getEphemerals: the session's ephemerals whose path starts
// with prefix, in order. Null, blank and "/" mean all.
func (t *Tree) Ephemerals(session proto.SessionID, prefix string) []string {
	trimmed := strings.TrimFunc(prefix, func(r rune) bool { return r <= ' ' })
	all := prefix == proto.NullString || trimmed == "" || trimmed == proto.PathRoot
	out := []string{}
	for i := range t.owned[session] {
		if path := t.path(i); all || strings.HasPrefix(path, prefix) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// SessionsWithEphemerals yields each session that owns or, since its start,
// owned ephemerals, in the order of their ids, with the paths in order.
func (t *Tree) SessionsWithEphemerals() iter.Seq2[proto.SessionID, []string] {
	return func(yield func(proto.SessionID, []string) bool) {
		ids := make([]proto.SessionID, 0, len(t.owned))
		for id := range t.owned {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(id, t.Ephemerals(id, "")) {
				return
			}
		}
	}
}
