package bench

import (
	"sync/atomic"
	"time"
)

// Slice is a part of the time measured, as long as Options.Timeline.
type Slice struct {
	// AtMillis is when it began, in milliseconds of Unix time.
	AtMillis   int64 `json:"at_ms"`
	Operations int64 `json:"operations"`
	// GapMicros is the longest time without an answer on any connection that
	// ended in this slice.
	GapMicros int64 `json:"gap_us"`
}

// timeline counts answers by slices of time, for all connections together.
type timeline struct {
	begin  time.Time
	width  time.Duration
	slices []timeSlice
	last   atomic.Int64 // nanoseconds since begin of the newest answer
}

type timeSlice struct {
	operations atomic.Int64
	gap        atomic.Int64 // nanoseconds
}

// newTimeline returns nil when none is wanted.
func newTimeline(o Options, win window) *timeline {
	if o.Timeline <= 0 {
		return nil
	}
	// Answers may be late by as much as a plan may.
	slices := int((o.Duration+overrun)/o.Timeline) + 1
	return &timeline{begin: win.start, width: o.Timeline, slices: make([]timeSlice, slices)}
}

// add counts answers that came at the same time.
func (t *timeline) add(now time.Time, operations int64) {
	at := now.Sub(t.begin)
	i := int(at / t.width)
	if at < 0 || i >= len(t.slices) {
		return
	}
	s := &t.slices[i]
	s.operations.Add(operations)
	gap := int64(at) - t.last.Swap(int64(at))
	for old := s.gap.Load(); gap > old && !s.gap.CompareAndSwap(old, gap); old = s.gap.Load() {
	}
}

// report returns the slices up to the last answer.
func (t *timeline) report() (all []Slice) {
	if t == nil {
		return nil
	}
	for i := range int(time.Duration(t.last.Load())/t.width) + 1 {
		s := &t.slices[i]
		all = append(all, Slice{
			AtMillis: t.begin.Add(time.Duration(i) * t.width).UnixMilli(), Operations: s.operations.Load(),
			GapMicros: time.Duration(s.gap.Load()).Microseconds(),
		})
	}
	return all
}
