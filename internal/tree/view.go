package tree

import (
	"slices"
	"sync/atomic"

	"github.com/zooraft/zooraft/internal/proto"
)

// View is the tree as it was when Freeze was called. It may be walked from any
// goroutine while the tree is written. Release it: until then every chunk that
// is written is copied once.
type View struct {
	chunks []*chunk
	count  int
	views  *atomic.Int64
	done   atomic.Bool
}

// Freeze returns a view of the tree. It costs a copy of the chunk table: 8
// bytes for every 120 nodes.
func (t *Tree) Freeze() *View {
	t.epoch++
	t.views.Add(1)
	return &View{chunks: slices.Clone(t.chunks), count: t.nodes, views: t.views}
}

// Release ends the view; it must not be walked any more. A second call does
// nothing.
func (v *View) Release() {
	if !v.done.Swap(true) {
		v.views.Add(-1)
		v.chunks = nil
	}
}

// NodeCount returns the number of nodes that Nodes yields: the root once.
func (v *View) NodeCount() int { return v.count }

// Nodes calls yield for every node, parents before children, the root first
// (as "/"), and stops at the first error, which it returns. Data and ACL must
// not be changed; a node without an ACL list of its own has none (nil).
func (v *View) Nodes(yield func(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error) error {
	return walk(v.chunks, func(path string, n *node) error {
		return yield(path, n.data, n.acl.acl, n.stat.persisted())
	})
}

// walk visits all nodes of a chunk table in pre-order.
func walk(chunks []*chunk, visit func(path string, n *node) error) error {
	at := func(i uint32) *node { return &chunks[i/chunkLen][i%chunkLen] }
	path := []byte{}
	for i := root; ; {
		n := at(i)
		p := proto.PathRoot
		if i != root {
			path = append(append(path, '/'), n.name...)
			p = string(path)
		}
		if err := visit(p, n); err != nil {
			return err
		}
		if n.first != none {
			i = n.first
			continue
		}
		for i != root && at(i).next == none {
			path = path[:len(path)-len(at(i).name)-1]
			i = at(i).parent
		}
		if i == root {
			return nil
		}
		path = path[:len(path)-len(at(i).name)-1]
		i = at(i).next
	}
}
