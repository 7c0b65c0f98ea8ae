package metrics

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// MaxKeys is how many keys one set keeps; observations of further keys are
// added up under OtherKey. It bounds memory and the length of mntr when
// clients choose the keys (top-level node names). Source: our choice; Apache
// has no limit.
const MaxKeys = 10000

// OtherKey stands for the keys beyond MaxKeys.
const OtherKey = "_other"

// set holds one metric per key. Looking up a known key takes no lock.
type set[M any] struct {
	known sync.Map // string → *M
	size  atomic.Int64
	fresh func() *M
}

func (s *set[M]) of(key string) *M {
	if m, ok := s.known.Load(key); ok {
		return m.(*M)
	}
	if s.size.Load() >= MaxKeys {
		key = OtherKey
	}
	m, loaded := s.known.LoadOrStore(key, s.fresh())
	if !loaded {
		s.size.Add(1)
	}
	return m.(*M)
}

func (s *set[M]) each(do func(key string, m *M)) {
	all := map[string]*M{}
	s.known.Range(func(k, m any) bool {
		all[k.(string)] = m.(*M)
		return true
	})
	for _, key := range slices.Sorted(maps.Keys(all)) {
		do(key, all[key])
	}
}

// CounterSet is a Counter per key.
type CounterSet struct{ set[Counter] }

// Key returns the key's counter, making it when it is new.
func (s *CounterSet) Key(key string) *Counter { return s.of(key) }

// SummarySet is a Summary per key.
type SummarySet struct{ set[Summary] }

// Key returns the key's summary, making it when it is new.
func (s *SummarySet) Key(key string) *Summary { return s.of(key) }

// AdvancedSummarySet is an AdvancedSummary per key.
type AdvancedSummarySet struct{ set[AdvancedSummary] }

// Key returns the key's summary, making it when it is new.
func (s *AdvancedSummarySet) Key(key string) *AdvancedSummary { return s.of(key) }
