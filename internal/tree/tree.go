package tree

import (
	"strings"
	"unicode/utf8"

	"github.com/zooraft/zooraft/internal/proto"
)

// Tree is the znode tree. See the package comment for who may call what when.
type Tree struct {
	slab
	index *index
	acls  aclTable

	nodes      int   // nodes in the tree, the root once
	ephemerals int   // sum of the sizes of owned's sets
	dataBytes  int64 // Σ path length in UTF-16 units + data length, the root's path also as ""
	digest     uint64

	// owned holds each session's ephemerals. As on Apache a session stays,
	// with an empty set, until it is closed.
	owned map[proto.SessionID]map[uint32]struct{}
	reap  reapIndex
	// quotas holds the paths that have a limits node: invariant
	// p ∈ quotas ⇔ /zookeeper/quota‖p‖/zookeeper_limits exists.
	quotas map[string]struct{}

	scratch []byte // for one call, never across calls
}

func newEmpty() *Tree {
	return &Tree{
		slab: newSlab(), index: newIndex(), acls: newACLTable(),
		owned: map[proto.SessionID]map[uint32]struct{}{}, quotas: map[string]struct{}{},
		reap: reapIndex{slots: map[reapSlot]map[uint32]struct{}{}},
	}
}

// readACL is the ACL that /zookeeper/config starts with.
var readACL = []proto.ACL{{Perms: proto.PermRead, ID: proto.OpenACL[0].ID}}

// New returns the tree that a server starts with: /, /zookeeper,
// /zookeeper/quota and /zookeeper/config, with zero stats and empty data.
func New() *Tree {
	t := newEmpty()
	t.insertRoot([]byte{}, proto.OpenACL, proto.StatPersisted{})
	t.addSystemNodes()
	return t
}

// addSystemNodes adds those nodes that every server has and that are missing.
func (t *Tree) addSystemNodes() {
	for _, path := range []string{proto.PathZooKeeper, proto.PathQuota, proto.PathConfig} {
		if t.find(path) != none {
			continue
		}
		acl, st := proto.OpenACL, proto.StatPersisted{}
		if path == proto.PathConfig {
			acl, st.AVersion = readACL, -1
		}
		parent, _, _ := proto.SplitPath(path)
		t.insert(t.find(parent), path, []byte{}, acl, st)
	}
}

// find returns the number of the node with exactly this path, or none. Like
// Apache's map of paths it knows the root by two names, "" and "/".
func (t *Tree) find(path string) uint32 {
	if len(path) <= 1 {
		if path == "" || path == proto.PathRoot {
			return root
		}
		return none
	}
	return t.findHashed(t.index.hash(path), path)
}

// findHashed is find for a path that is not the root's, with its hash.
func (t *Tree) findHashed(h uint64, path string) uint32 {
	s := t.index.shard(h)
	if len(s.slots) == 0 {
		return none
	}
	want := uint32(h >> 32)
	for p := s.home(want); ; p = s.after(p) {
		e := s.slots[p]
		if e == 0 {
			return none
		}
		if uint32(e>>32) == want && t.hasPath(uint32(e), path) {
			return uint32(e)
		}
	}
}

// hasPath compares the path from its end with the names up to the root.
func (t *Tree) hasPath(i uint32, path string) bool {
	for i != root {
		n := t.at(i)
		cut := len(path) - len(n.name) - 1
		if cut < 0 || path[cut] != '/' || path[cut+1:] != n.name {
			return false
		}
		path, i = path[:cut], n.parent
	}
	return path == ""
}

// path returns the path of node i.
func (t *Tree) path(i uint32) string {
	if i == root {
		return proto.PathRoot
	}
	size := 0
	for j := i; j != root; j = t.at(j).parent {
		size += len(t.at(j).name) + 1
	}
	b := make([]byte, size)
	for j := i; j != root; j = t.at(j).parent {
		name := t.at(j).name
		size -= len(name)
		copy(b[size:], name)
		size--
		b[size] = '/'
	}
	return string(b)
}

func (t *Tree) insertRoot(data []byte, acl []proto.ACL, st proto.StatPersisted) {
	t.fill(t.alloc(), "", "", data, acl, st)
}

// insert adds a node below parent, with all indexes; it leaves the parent's
// stat and quotas alone. Data is kept as it is.
func (t *Tree) insert(parent uint32, path string, data []byte, acl []proto.ACL, st proto.StatPersisted) uint32 {
	return t.insertHashed(t.index.hash(path), parent, path, data, acl, st)
}

// insertHashed is insert with the hash of the path.
func (t *Tree) insertHashed(h uint64, parent uint32, path string, data []byte, acl []proto.ACL, st proto.StatPersisted) uint32 {
	i := t.alloc()
	t.reap.out(parent, t.at(parent))
	t.link(parent, i)
	t.reap.in(parent, t.at(parent))
	t.index.add(h, i)
	t.fill(i, path, t.names.keep(path[strings.LastIndexByte(path, '/')+1:]), data, acl, st)
	if kind, _ := proto.ClassifyOwner(st.EphemeralOwner); kind == proto.OwnerSession {
		set := t.owned[proto.SessionID(st.EphemeralOwner)]
		if set == nil {
			set = map[uint32]struct{}{}
			t.owned[proto.SessionID(st.EphemeralOwner)] = set
		}
		set[i] = struct{}{}
		t.ephemerals++
	}
	t.reap.in(i, t.at(i))
	return i
}

func (t *Tree) fill(i uint32, path, name string, data []byte, acl []proto.ACL, st proto.StatPersisted) {
	n := t.mut(i)
	n.stat.set(st)
	n.name, n.data, n.acl = name, data, t.acls.acquire(acl)
	n.stat.crc = t.pathDataCRC(path, data)
	t.seal(n, path)
	t.nodes++
	t.dataBytes += sizeOf(path, data)
}

// remove takes out a node without children, with all indexes; it leaves the
// parent's stat and quotas alone.
func (t *Tree) remove(i uint32, path string) {
	n := t.at(i)
	if kind, _ := proto.ClassifyOwner(n.stat.EphemeralOwner); kind == proto.OwnerSession {
		delete(t.owned[proto.SessionID(n.stat.EphemeralOwner)], i)
		t.ephemerals--
	}
	t.reap.out(i, n)
	t.nodes--
	t.dataBytes -= sizeOf(path, n.data)
	t.digest -= uint64(n.sum)
	t.acls.release(n.acl)
	t.index.remove(t.index.hash(path), i)
	parent := n.parent
	t.reap.out(parent, t.at(parent))
	t.unlink(i)
	t.reap.in(parent, t.at(parent))
	t.release(i)
}

// putData gives n other data, which are kept as they are, between edit and seal.
func (t *Tree) putData(n *node, path string, data []byte) {
	t.dataBytes += int64(len(data)) - int64(len(n.data))
	n.data = data
	n.stat.crc = t.pathDataCRC(path, data)
}

// sizeOf is a node's share of ApproximateDataSize. The root's path counts as
// one unit: Apache keeps it under "" and "/".
func sizeOf(path string, data []byte) int64 {
	if path == "" {
		path = proto.PathRoot
	}
	return int64(utf8.RuneCountInString(path)) + int64(len(data))
}

// NodeCount returns the number of nodes as Apache counts them: the root twice.
func (t *Tree) NodeCount() int { return t.nodes + 1 }

// EphemeralCount returns the number of ephemerals.
func (t *Tree) EphemeralCount() int { return t.ephemerals }

// ApproximateDataSize returns the sum of the lengths of all paths and data.
func (t *Tree) ApproximateDataSize() int64 { return t.dataBytes }
