package tree

import "hash/maphash"

// index finds nodes by the hash of their full path. It is split into shards
// that grow one by one, so that no write pays for rehashing a million entries.
// An entry is hash‖number in one word, invisible to the collector; zero is
// empty. The caller compares the path.
type index struct {
	seed   maphash.Seed
	shards [indexShards]shard
}

const (
	indexShards   = 256
	shardMinSlots = 8 // a power of two
)

type shard struct {
	slots []uint64
	count int
}

func newIndex() *index { return &index{seed: maphash.MakeSeed()} }

func (x *index) hash(path string) uint64 { return maphash.String(x.seed, path) }

func (x *index) shard(h uint64) *shard { return &x.shards[h&(indexShards-1)] }

// add stores number i under hash h.
func (x *index) add(h uint64, i uint32) {
	s := x.shard(h)
	if 4*(s.count+1) > 3*len(s.slots) {
		s.grow()
	}
	s.put(uint32(h>>32), i)
	s.count++
}

func (s *shard) put(h, i uint32) {
	mask := uint32(len(s.slots) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		if s.slots[p] == 0 {
			s.slots[p] = uint64(h)<<32 | uint64(i)
			return
		}
	}
}

func (s *shard) grow() {
	old := s.slots
	s.slots = make([]uint64, max(shardMinSlots, 2*len(old)))
	for _, e := range old {
		if e != 0 {
			s.put(uint32(e>>32), uint32(e))
		}
	}
}

// remove takes out number i stored under hash h.
func (x *index) remove(h uint64, i uint32) {
	s := x.shard(h)
	if len(s.slots) == 0 {
		return
	}
	mask := uint32(len(s.slots) - 1)
	p := uint32(h>>32) & mask
	for uint32(s.slots[p]) != i {
		if s.slots[p] == 0 {
			return
		}
		p = (p + 1) & mask
	}
	s.count--
	// Close the gap: each later entry of the run moves back unless it already
	// stands between its home and the gap.
	for q := (p + 1) & mask; s.slots[q] != 0; q = (q + 1) & mask {
		home := uint32(s.slots[q]>>32) & mask
		if (q-home)&mask >= (q-p)&mask {
			s.slots[p], p = s.slots[q], q
		}
	}
	s.slots[p] = 0
}
