package tree

import (
	"strings"
	"sync/atomic"

	"github.com/zooraft/zooraft/internal/proto"
)

// Nodes live in chunks and name each other by number, so that the collector
// has little to follow and a frozen view is a copy of the chunk table:
//
//	chunks ──► [120]node [120]node [120]node …
//	            ▲ number 1 is the root, number 0 means "none"
//
// While a view lives, the first write to a chunk copies it; the view keeps the
// old one.
const (
	// 120 nodes of 136 bytes fill a size class of Go's allocator, 16 KiB, but for
	// 64 bytes. A power of two would save a multiplication, and cost 8 bytes a node.
	chunkLen = 120

	none uint32 = 0
	root uint32 = 1
)

// node is a znode. Data, name and ACL list are never changed in place: readers
// and views hold them without a copy. Its fields leave no gap.
type node struct {
	name string // last path segment; empty for the root

	parent, first, next, prev uint32 // first child; next and previous sibling; next also links free nodes
	children                  int32  // number of direct children

	sum uint32 // the node's term of the tree digest; 0 below /zookeeper/

	data []byte // nil is null, which clients can tell from empty
	acl  *ACLSet
	stat nodeStat
}

// nodeStat is a proto.StatPersisted and, where that would have a gap, crc.
type nodeStat struct {
	Czxid, Mzxid, Pzxid         proto.Zxid
	Ctime, Mtime                int64 // Unix ms
	EphemeralOwner              int64
	Version, CVersion, AVersion int32

	crc uint32 // CRC-32 of path ‖ data, the part of the digest that stat changes leave alone
}

func (s *nodeStat) set(p proto.StatPersisted) {
	*s = nodeStat{
		Czxid: p.Czxid, Mzxid: p.Mzxid, Pzxid: p.Pzxid, Ctime: p.Ctime, Mtime: p.Mtime,
		EphemeralOwner: p.EphemeralOwner, Version: p.Version, CVersion: p.CVersion, AVersion: p.AVersion, crc: s.crc,
	}
}

func (s *nodeStat) persisted() proto.StatPersisted {
	return proto.StatPersisted{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, Ctime: s.Ctime, Mtime: s.Mtime,
		EphemeralOwner: s.EphemeralOwner, Version: s.Version, CVersion: s.CVersion, AVersion: s.AVersion,
	}
}

type chunk [chunkLen]node

// slab hands out nodes. The zero value is not ready: see newSlab.
type slab struct {
	chunks []*chunk
	// born[i] is the epoch in which chunks[i] was made. A chunk is private to
	// the tree if born[i] == epoch or no view lives.
	born  []uint64
	epoch uint64        // raised by every freeze
	views *atomic.Int64 // views not yet released; the only field that other goroutines touch
	free  uint32        // head of the list of free nodes
	used  uint32        // numbers handed out so far, free ones included
	names nameArena
}

// nameArena packs short names into small blocks, so that the collector marks
// one object for a dozen names. A name keeps its block in memory: the block's
// size bounds what one long-lived name can hold back.
type nameArena struct{ block strings.Builder }

const (
	nameBlockLen = 256 // bytes
	nameMaxLen   = 64  // bytes; a longer name stands alone
)

// keep returns a copy of the name that does not hold its path in memory.
func (a *nameArena) keep(name string) string {
	if len(name) > nameMaxLen {
		return strings.Clone(name)
	}
	if a.block.Cap()-a.block.Len() < len(name) {
		a.block.Reset()
		a.block.Grow(nameBlockLen)
	}
	start := a.block.Len()
	a.block.WriteString(name)
	return a.block.String()[start:]
}

func newSlab() slab { return slab{views: new(atomic.Int64), used: 1} }

// at returns the node for reading.
func (s *slab) at(i uint32) *node { return &s.chunks[i/chunkLen][i%chunkLen] }

// mut returns the node for writing. Pointers that at returned before for the
// same chunk may be stale afterwards.
func (s *slab) mut(i uint32) *node {
	c := i / chunkLen
	if s.born[c] != s.epoch && s.views.Load() > 0 {
		dup := *s.chunks[c]
		s.chunks[c], s.born[c] = &dup, s.epoch
	}
	return &s.chunks[c][i%chunkLen]
}

// alloc returns the number of a zeroed node.
func (s *slab) alloc() uint32 {
	if i := s.free; i != none {
		n := s.mut(i)
		s.free, n.next = n.next, none
		return i
	}
	i := s.used
	if int(i/chunkLen) == len(s.chunks) {
		s.chunks = append(s.chunks, new(chunk))
		s.born = append(s.born, s.epoch)
	}
	s.used++
	return i
}

// release gives the node back.
func (s *slab) release(i uint32) {
	n := s.mut(i)
	*n = node{next: s.free}
	s.free = i
}

// link makes child i the first child of parent p.
func (s *slab) link(p, i uint32) {
	pn := s.mut(p)
	old := pn.first
	pn.first = i
	pn.children++
	n := s.mut(i)
	n.parent, n.next, n.prev = p, old, none
	if old != none {
		s.mut(old).prev = i
	}
}

// unlink takes child i out of its parent's list.
func (s *slab) unlink(i uint32) {
	n := *s.at(i)
	p := s.mut(n.parent)
	p.children--
	if n.prev == none {
		p.first = n.next
	} else {
		s.mut(n.prev).next = n.next
	}
	if n.next != none {
		s.mut(n.next).prev = n.prev
	}
}
