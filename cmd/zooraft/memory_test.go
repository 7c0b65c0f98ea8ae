package main

import (
	"runtime"
	"testing"
	"time"
)

func TestTheCollectorHasRoomAndIdleMemoryGoesBack(t *testing.T) {
	const mib = 1 << 20
	busy := func(n int) []memorySample {
		var s []memorySample
		for i := range n {
			s = append(s, memorySample{allocated: uint64(100+100*i) * mib, live: 300 * mib, held: 600 * mib})
		}
		return s
	}
	idle := func(s []memorySample, n int, live, held uint64) []memorySample {
		for range n {
			last := s[len(s)-1]
			s = append(s, memorySample{allocated: last.allocated + mib, live: live * mib, held: held * mib})
		}
		return s
	}
	tests := []struct {
		name    string
		samples []memorySample
		percent int // after the last sample
		returns int
	}{
		{"a small heap may grow by 64 MiB", idle(busy(1), 1, 16, 40), 400, 0},
		{"one of almost nothing by eight times its size", []memorySample{{live: 10}}, percentMax, 0},
		{"a large one by its own size", busy(1), 100, 0},
		{"a huge one by 1 GiB", []memorySample{{live: 4096 * mib}}, 25, 0},
		{"nothing goes back under load", busy(10), 100, 0},
		{"nor before it has been quiet for three looks", idle(busy(4), 2, 300, 600), 100, 0},
		{"then it does", idle(busy(4), 3, 300, 600), 100, 1},
		{"but not for nothing", idle(busy(4), 20, 300, 320), 100, 0},
		{"and not again at once", idle(idle(busy(4), 3, 300, 600), 20, 300, 600), 100, 1},
		{"but once something has been allocated", idle(idle(busy(4), 3, 300, 600), 30, 300, 600), 100, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p memoryPolicy
			returns := 0
			for _, s := range test.samples {
				if _, back := p.look(s); back {
					returns++
				}
			}
			if p.percent != test.percent || returns != test.returns {
				t.Errorf("GOGC=%d with %d returns, want %d with %d", p.percent, returns, test.percent, test.returns)
			}
		})
	}
}

func TestTheRuntimeTellsWhatThePolicyAsks(t *testing.T) {
	if s := sampleMemory(); s.allocated == 0 || s.live == 0 || s.held == 0 {
		t.Errorf("the runtime says %+v", s)
	}
}

// While a snapshot is loaded, what is live grows manifold between two looks.
func TestEachCollectionIsTold(t *testing.T) {
	collected := make(chan struct{}, 1)
	afterCollection(t.Context(), collected)
	for n := range 3 {
		runtime.GC()
		select {
		case <-collected:
		case <-time.After(30 * time.Second):
			t.Fatalf("collection %d is not told", n)
		}
	}
}
