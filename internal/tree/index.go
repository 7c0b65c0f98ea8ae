package tree

import (
	"hash/maphash"
	"slices"
)

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
	shardMinSlots = 8
)

// shard grows by a quarter: doubling would leave it less than half full at times,
// and its slots are a twentieth of what a small node takes. So their number is no
// power of two, and a hash finds its home by its place among all hashes.
type shard struct {
	slots []uint64 // at most four fifths are in use
	count int
}

// home is where the search for the hash begins, if there are slots.
func (s *shard) home(h uint32) int { return int(uint64(h) * uint64(len(s.slots)) >> 32) }

// after is the slot behind p, round the end.
func (s *shard) after(p int) int {
	if p++; p < len(s.slots) {
		return p
	}
	return 0
}

// between is how many steps lead from slot p to slot q, round the end.
func (s *shard) between(p, q int) int {
	if q < p {
		q += len(s.slots)
	}
	return q - p
}

func newIndex() *index { return &index{seed: maphash.MakeSeed()} }

func (x *index) hash(path string) uint64 { return maphash.String(x.seed, path) }

func (x *index) shard(h uint64) *shard { return &x.shards[h&(indexShards-1)] }

// add stores number i under hash h.
func (x *index) add(h uint64, i uint32) {
	s := x.shard(h)
	if 5*(s.count+1) > 4*len(s.slots) {
		s.grow()
	}
	s.put(uint32(h>>32), i)
	s.count++
}

func (s *shard) put(h, i uint32) {
	for p := s.home(h); ; p = s.after(p) {
		if s.slots[p] == 0 {
			s.slots[p] = uint64(h)<<32 | uint64(i)
			return
		}
	}
}

func (s *shard) grow() {
	old := s.slots
	// With what the allocator would round it up by.
	s.slots = slices.Grow([]uint64(nil), max(shardMinSlots, len(old)+len(old)/4))
	s.slots = s.slots[:cap(s.slots)]
	clear(s.slots)
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
	p := s.home(uint32(h >> 32))
	for uint32(s.slots[p]) != i {
		if s.slots[p] == 0 {
			return
		}
		p = s.after(p)
	}
	s.count--
	// Close the gap: each later entry of the run moves back unless it already
	// stands between its home and the gap.
	for q := s.after(p); s.slots[q] != 0; q = s.after(q) {
		home := s.home(uint32(s.slots[q] >> 32))
		if s.between(home, q) >= s.between(p, q) {
			s.slots[p], p = s.slots[q], q
		}
	}
	s.slots[p] = 0
}
