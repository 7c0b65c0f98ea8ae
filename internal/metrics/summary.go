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
	lanes []summaryLane // a power of two of them
}

type summaryLane struct {
	sum, count atomic.Int64
	// min and max are at the far ends of the range while count is 0.
	min, max atomic.Int64
	_        [128 - 32]byte // processors fetch lines in pairs
}

// NewSummary returns an empty summary that belongs to no registry, in one piece.
func NewSummary() *Summary {
	s := &Summary{}
	s.spread(1)
	return s
}

// Spread spreads a summary that nobody uses yet, for ObserveBy.
func (s *Summary) Spread() *Summary {
	s.spread(laneCount())
	return s
}

func (s *Summary) spread(lanes int) {
	s.lanes = make([]summaryLane, lanes)
	s.Reset()
}

// Observe adds one observation.
func (s *Summary) Observe(v int64) { s.ObserveBy(0, v) }

// ObserveBy adds one in the lane of whoever has that number.
func (s *Summary) ObserveBy(who uint64, v int64) { s.observe(who, v) }

// observe returns the number of observations in the lane.
func (s *Summary) observe(who uint64, v int64) (count int64) {
	l := &s.lanes[who&uint64(len(s.lanes)-1)]
	l.sum.Add(v)
	count = l.count.Add(1)
	for m := l.min.Load(); v < m && !l.min.CompareAndSwap(m, v); {
		m = l.min.Load()
	}
	for m := l.max.Load(); v > m && !l.max.CompareAndSwap(m, v); {
		m = l.max.Load()
	}
	return count
}

// Value returns the present numbers.
func (s *Summary) Value() SummaryValue {
	v := SummaryValue{Min: math.MaxInt64, Max: math.MinInt64}
	for i := range s.lanes {
		l := &s.lanes[i]
		v.Sum += l.sum.Load()
		v.Count += l.count.Load()
		v.Min, v.Max = min(v.Min, l.min.Load()), max(v.Max, l.max.Load())
	}
	if v.Count > 0 {
		v.Avg = roundAverage(float64(v.Sum) / float64(v.Count))
	}
	if v.Min == math.MaxInt64 {
		v.Min = 0
	}
	if v.Max == math.MinInt64 {
		v.Max = 0
	}
	return v
}

// Reset forgets all observations.
func (s *Summary) Reset() {
	for i := range s.lanes {
		l := &s.lanes[i]
		l.count.Store(0)
		l.sum.Store(0)
		l.min.Store(math.MaxInt64)
		l.max.Store(math.MinInt64)
	}
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

// NewAdvancedSummary returns an empty summary that belongs to no registry, in one
// piece.
func NewAdvancedSummary() *AdvancedSummary {
	s := &AdvancedSummary{}
	s.spread(1)
	return s
}

// Spread spreads a summary that nobody uses yet, for ObserveBy.
func (s *AdvancedSummary) Spread() *AdvancedSummary {
	s.spread(laneCount())
	return s
}

// Observe adds one observation.
func (s *AdvancedSummary) Observe(v int64) { s.ObserveBy(0, v) }

// seenStep is how many observations of one lane are added to the number of all at
// once when the sample is full. That the newest ones of each lane are not in it
// gives them a slightly better chance, which is nothing among many.
const seenStep = 64

// ObserveBy adds one in the lane of whoever has that number.
func (s *AdvancedSummary) ObserveBy(who uint64, v int64) {
	count := s.observe(who, v)
	sample := s.sample.Load()
	if sample == nil {
		s.sample.CompareAndSwap(nil, new([reservoirSize]atomic.Int64))
		sample = s.sample.Load()
	}
	// The n-th observation takes a place with probability size/n, which keeps
	// every observation equally likely to be in the sample.
	n := s.seen.Load()
	if n < reservoirSize {
		if n = s.seen.Add(1); n <= reservoirSize {
			sample[n-1].Store(v)
			return
		}
	} else if count%seenStep == 0 {
		n = s.seen.Add(seenStep)
	}
	if r := rand.Int64N(n); r < reservoirSize {
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
