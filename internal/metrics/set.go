package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MaxKeys is how many keys one set keeps; observations of further keys are
// added up under OtherKey. It bounds memory and the length of mntr when
// clients choose the keys (top-level node names). Source: our choice; Apache
// has no limit.
const MaxKeys = 1000

// MaxKeyBytes is how long a key may be; a longer one counts as OtherKey. A client
// may name a node with a megabyte.
const MaxKeyBytes = 256

// OtherKey stands for the keys beyond MaxKeys.
const OtherKey = "_other"

// set holds one metric per key. Looking up a known key takes no lock.
type set[M any] struct {
	// last is the entry asked for last. Most servers are used below one or two
	// top-level nodes, and the comparison allocates nothing.
	last  []lastKeyed[M] // a power of two of them
	known sync.Map       // string → *keyed[M]
	size  atomic.Int64
	fresh func() *M
}

type lastKeyed[M any] struct {
	atomic.Pointer[keyed[M]]
	_ [128 - 8]byte // processors fetch lines in pairs
}

func newSet[M any](fresh func() *M) set[M] {
	return set[M]{last: make([]lastKeyed[M], 1), fresh: fresh}
}

type keyed[M any] struct {
	key    string
	metric *M
}

func (s *set[M]) of(who uint64, key string) *M {
	lane := &s.last[who&uint64(len(s.last)-1)]
	if last := lane.Load(); last != nil && last.key == key {
		return last.metric
	}
	k := s.find(key)
	lane.Store(k)
	return k.metric
}

func (s *set[M]) find(key string) *keyed[M] {
	if k, ok := s.known.Load(key); ok {
		return k.(*keyed[M])
	}
	if s.size.Load() >= MaxKeys || len(key) > MaxKeyBytes {
		key = OtherKey
	}
	key = strings.Clone(key) // it may be a piece of a request's buffer
	k, loaded := s.known.LoadOrStore(key, &keyed[M]{key, s.fresh()})
	if !loaded {
		s.size.Add(1)
	}
	return k.(*keyed[M])
}

func (s *set[M]) each(do func(key string, m *M)) {
	all := map[string]*M{}
	s.known.Range(func(_, k any) bool {
		entry := k.(*keyed[M])
		all[entry.key] = entry.metric
		return true
	})
	for _, key := range slices.Sorted(maps.Keys(all)) {
		do(key, all[key])
	}
}

// CounterSet is a Counter per key.
type CounterSet struct{ set[Counter] }

// Key returns the key's counter, making it when it is new.
func (s *CounterSet) Key(key string) *Counter { return s.of(0, key) }

// SummarySet is a Summary per key.
type SummarySet struct{ set[Summary] }

// Key returns the key's summary, making it when it is new.
func (s *SummarySet) Key(key string) *Summary { return s.of(0, key) }

// Spread spreads the summaries of a set that nobody uses yet, for ObserveBy.
func (s *SummarySet) Spread() *SummarySet {
	s.last = make([]lastKeyed[Summary], laneCount())
	s.fresh = func() *Summary { return NewSummary().Spread() }
	return s
}

// ObserveBy adds an observation to the key's summary in the lane of whoever has
// that number.
func (s *SummarySet) ObserveBy(who uint64, key string, v int64) {
	s.of(who, key).ObserveBy(who, v)
}

// AdvancedSummarySet is an AdvancedSummary per key.
type AdvancedSummarySet struct{ set[AdvancedSummary] }

// Key returns the key's summary, making it when it is new.
func (s *AdvancedSummarySet) Key(key string) *AdvancedSummary { return s.of(0, key) }
