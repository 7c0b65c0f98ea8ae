package metrics

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

/*
A number that each request changes is a word that all processors share, and it
travels between their caches. Counter, Summary and AdvancedSummary therefore can be
spread over lanes, each in cache lines of its own: who observes says which one by a
number of his own, a connection its id. A value is the sum of all lanes, and as exact
as that of one.
*/

// lanesMax bounds the memory of what is spread: 64 lanes. Source: our choice.
const lanesMax = 64

// laneCount is a power of two, twice as many as there are processors.
func laneCount() int {
	processors := runtime.GOMAXPROCS(0)
	if processors == 1 {
		return 1
	}
	return min(1<<bits.Len(uint(2*processors-1)), lanesMax)
}

// Spread is an integer that many processors add to. Make it with NewSpread; all
// methods may overlap.
type Spread struct {
	lanes []spreadLane // a power of two of them
}

type spreadLane struct {
	n atomic.Int64
	_ [128 - 8]byte // processors fetch lines in pairs
}

// NewSpread returns a zero.
func NewSpread() Spread { return Spread{make([]spreadLane, laneCount())} }

// Add adds n for whoever has that number.
func (s *Spread) Add(who uint64, n int64) {
	s.lanes[who&uint64(len(s.lanes)-1)].n.Add(n)
}

// Load returns the sum.
func (s *Spread) Load() int64 {
	var sum int64
	for i := range s.lanes {
		sum += s.lanes[i].n.Load()
	}
	return sum
}

// Reset sets it to zero.
func (s *Spread) Reset() {
	for i := range s.lanes {
		s.lanes[i].n.Store(0)
	}
}
