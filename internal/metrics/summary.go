package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// SummaryValue is what a summary has seen since its last reset. An empty
// summary has zeros everywhere, as mntr prints them.
type SummaryValue struct {
	Avg      float64 // rounded to four decimals
	Min, Max int64
	Count    int64
	Sum      int64

	// Quantiles are filled by advanced summaries only.
	Quantiles Quantiles
}

// Quantiles are estimated from a uniform sample, rounded to integers.
type Quantiles struct {
	P50, P95, P99, P999 int64
}

// Summary keeps average, smallest, largest, count and sum of observations.
// Make it with NewSummary; all methods may overlap. A reader that overlaps a
// writer may see an observation in the sum that is not yet in the count.
type Summary struct {
	sum, count atomic.Int64
	// min and max are at the far ends of the range while count is 0.
	min, max atomic.Int64
}

// NewSummary returns an empty summary that belongs to no registry.
func NewSummary() *Summary {
	s := &Summary{}
	s.Reset()
	return s
}

// Observe adds one observation.
func (s *Summary) Observe(v int64) {
	s.sum.Add(v)
	s.count.Add(1)
	for m := s.min.Load(); v < m && !s.min.CompareAndSwap(m, v); {
		m = s.min.Load()
	}
	for m := s.max.Load(); v > m && !s.max.CompareAndSwap(m, v); {
		m = s.max.Load()
	}
}

// Value returns the present numbers.
func (s *Summary) Value() SummaryValue {
	v := SummaryValue{Sum: s.sum.Load(), Count: s.count.Load()}
	if v.Count > 0 {
		v.Avg = roundAverage(float64(v.Sum) / float64(v.Count))
	}
	if m := s.min.Load(); m != math.MaxInt64 {
		v.Min = m
	}
	if m := s.max.Load(); m != math.MinInt64 {
		v.Max = m
	}
	return v
}

// Reset forgets all observations.
func (s *Summary) Reset() {
	s.count.Store(0)
	s.sum.Store(0)
	s.min.Store(math.MaxInt64)
	s.max.Store(math.MinInt64)
}

// reservoirSize is how many observations an advanced summary samples for its
// quantiles. Source: ZooKeeper's own reservoir.
const reservoirSize = 4096

// AdvancedSummary is a Summary with quantiles from a uniform sample of
// everything seen since the last reset. Its 32 KiB sample is allocated with
// the first observation.
type AdvancedSummary struct {
	Summary
	seen   atomic.Int64
	sample atomic.Pointer[[reservoirSize]atomic.Int64]
}

// NewAdvancedSummary returns an empty summary that belongs to no registry.
func NewAdvancedSummary() *AdvancedSummary {
	s := &AdvancedSummary{}
	s.Reset()
	return s
}

// Observe adds one observation.
func (s *AdvancedSummary) Observe(v int64) {
	s.Summary.Observe(v)
	sample := s.sample.Load()
	if sample == nil {
		s.sample.CompareAndSwap(nil, new([reservoirSize]atomic.Int64))
		sample = s.sample.Load()
	}
	// The n-th observation takes a place with probability size/n, which keeps
	// every observation equally likely to be in the sample.
	n := s.seen.Add(1)
	if n <= reservoirSize {
		sample[n-1].Store(v)
	} else if r := rand.Int64N(n); r < reservoirSize {
		sample[r].Store(v)
	}
}

// Value returns the present numbers, quantiles included.
func (s *AdvancedSummary) Value() SummaryValue {
	v := s.Summary.Value()
	sample, n := s.sample.Load(), min(s.seen.Load(), reservoirSize)
	if sample == nil || n == 0 {
		return v
	}
	sorted := make([]int64, n)
	for i := range sorted {
		sorted[i] = sample[i].Load()
	}
	slices.Sort(sorted)
	v.Quantiles = Quantiles{
		P50:  quantile(sorted, 0.5),
		P95:  quantile(sorted, 0.95),
		P99:  quantile(sorted, 0.99),
		P999: quantile(sorted, 0.999),
	}
	return v
}

// Reset forgets all observations.
func (s *AdvancedSummary) Reset() {
	s.Summary.Reset()
	s.seen.Store(0)
}

// quantile interpolates between the two neighbours of position q×(n+1), the
// definition that ZooKeeper's histogram library uses, and rounds to an
// integer, halves up. sorted is not empty.
func quantile(sorted []int64, q float64) int64 {
	pos := q * float64(len(sorted)+1)
	i := int(pos)
	switch {
	case i < 1:
		return sorted[0]
	case i >= len(sorted):
		return sorted[len(sorted)-1]
	}
	lower, upper := float64(sorted[i-1]), float64(sorted[i])
	return int64(math.Floor(lower + (pos-math.Floor(pos))*(upper-lower) + 0.5))
}
