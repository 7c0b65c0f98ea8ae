package session

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random history of this seed")

const tick = 2 * time.Second

// Apache rounds deadlines up to the next tick, and so do we: with a tick of
// 2 s a session of 4 s is due more than 4 s and at most 6 s after it was last
// heard, whenever in a tick that was.
func TestASessionIsDueBetweenItsTimeoutAndOneTickMore(t *testing.T) {
	for at := 10 * time.Second; at <= 14*time.Second; at += 100 * time.Millisecond {
		tracker := NewTracker(tick)
		tracker.Track(1, 4*time.Second, 1, 0)
		tracker.Touch(1, at)
		due := at
		for len(tracker.Due(due)) == 0 {
			due += time.Millisecond
		}
		if after := due - at; after <= 4*time.Second || after > 6*time.Second || due%tick != 0 {
			t.Errorf("heard at %v, due at %v: %v later", at, due, after)
		}
	}
}

func TestTrackerSteps(t *testing.T) {
	type steps = []func(*Tracker) string
	due := func(at time.Duration) func(*Tracker) string {
		return func(tr *Tracker) string { return fmt.Sprint(tr.Due(at)) }
	}
	track := func(id proto.SessionID, timeout time.Duration, generation uint64, at time.Duration) func(*Tracker) string {
		return func(tr *Tracker) string { tr.Track(id, timeout, generation, at); return "" }
	}
	touch := func(id proto.SessionID, at time.Duration) func(*Tracker) string {
		return func(tr *Tracker) string { tr.Touch(id, at); return "" }
	}
	remove := func(id proto.SessionID) func(*Tracker) string {
		return func(tr *Tracker) string { tr.Remove(id); return "" }
	}
	const s = time.Second
	for _, c := range []struct {
		name  string
		steps steps
		want  []string
	}{
		{"a due session is named again a tick later, until it is removed",
			steps{track(1, 4*s, 1, 0), due(5 * s), due(6 * s), due(6 * s), due(7 * s), due(8 * s), remove(1), due(100 * s)},
			[]string{"[]", "[{0x1 1}]", "[]", "[]", "[{0x1 1}]", "[]"}},
		{"a touch after it was named gives it its whole timeout",
			steps{track(1, 4*s, 1, 0), due(6 * s), touch(1, 6*s), due(10 * s), due(12 * s)},
			[]string{"[{0x1 1}]", "[]", "[{0x1 1}]"}},
		{"a touch that comes late is not taken back by an earlier one",
			steps{track(1, 4*s, 1, 0), touch(1, 5*s), touch(1, 1*s), due(9 * s), due(10 * s)},
			[]string{"[]", "[{0x1 1}]"}},
		{"a touch of one that is not tracked does nothing",
			steps{touch(1, 1*s), remove(1), due(100 * s)}, []string{"[]"}},
		{"a renewal restarts the clock and raises the generation",
			steps{track(1, 4*s, 1, 0), track(1, 4*s, 2, 5*s), due(6 * s), due(10 * s)}, []string{"[]", "[{0x1 2}]"}},
		{"a renewal may shorten the timeout",
			steps{track(1, 40*s, 1, 0), track(1, 4*s, 2, 0), due(6 * s)}, []string{"[{0x1 2}]"}},
		{"those that are due come in the order of their ids",
			steps{track(3, 4*s, 1, 0), track(1, 2*s, 1, 0), track(2, 4*s, 7, 0), track(4, 90*s, 1, 0), due(20 * s)},
			[]string{"[{0x1 1} {0x2 7} {0x3 1}]"}},
	} {
		tracker := NewTracker(tick)
		var got []string
		for _, step := range c.steps {
			if line := step(tracker); line != "" {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Case 31: a new leader knows nothing of what was heard before, and gives every
// session its whole timeout.
func TestReseedingGivesEverySessionItsWholeTimeout(t *testing.T) {
	tracker := NewTracker(tick)
	tracker.Track(1, 4*time.Second, 1, 0)
	tracker.Track(9, 4*time.Second, 1, 0) // closed meanwhile
	now := 100 * time.Second
	tracker.Reseed([]Session{{ID: 1, TimeoutMillis: 4000, Generation: 3}, {ID: 2, TimeoutMillis: 10000, Generation: 1}}, now)
	for _, c := range []struct {
		at   time.Duration
		want string
	}{{now + 4*time.Second, "[]"}, {now + 6*time.Second, "[{0x1 3}]"}, {now + 12*time.Second, "[{0x1 3} {0x2 1}]"}} {
		if got := fmt.Sprint(tracker.Due(c.at)); got != c.want {
			t.Errorf("at %v due %s, want %s", c.at, got, c.want)
		}
	}
}

func TestBucketsListEverySessionOnce(t *testing.T) {
	tracker := NewTracker(tick)
	for id := range proto.SessionID(10) {
		tracker.Track(id, time.Duration(id)*time.Second, 1, time.Second)
	}
	tracker.Remove(3)
	var ids []proto.SessionID
	for deadline, bucket := range tracker.Buckets() {
		if deadline%tick != 0 || len(bucket) == 0 {
			t.Errorf("bucket %v has %v", deadline, bucket)
		}
		ids = append(ids, bucket...)
	}
	slices.Sort(ids)
	if want := []proto.SessionID{0, 1, 2, 4, 5, 6, 7, 8, 9}; !slices.Equal(ids, want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
}

// twin is a Tracker without buckets: it counts ticks.
type twin map[proto.SessionID]*twinRow

type twinRow struct {
	timeout    time.Duration
	generation uint64
	due        time.Duration
}

// after is the first tick later than at.
func after(at time.Duration) time.Duration {
	d := tick
	for d <= at {
		d += tick
	}
	return d
}

func (w twin) due(now time.Duration) []Due {
	var out []Due
	for id, r := range w {
		if r.due <= now {
			out = append(out, Due{id, r.generation})
			r.due = after(now)
		}
	}
	slices.SortFunc(out, func(a, b Due) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func TestTheTrackerDoesWhatItsTwinDoes(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	first := uint64(time.Now().UnixNano())
	for i := range uint64(50) {
		seeds = append(seeds, first+i)
	}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	t.Logf("seeds 1, 2, 3 and 50 from %d; replay one with -seed", first)
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		tracker, w := NewTracker(tick), twin{}
		now := time.Duration(0)
		for step := range 400 {
			id := proto.SessionID(r.IntN(12))
			at := max(now-time.Duration(r.IntN(3000))*time.Millisecond, 0)
			timeout := time.Duration(r.IntN(20_000)) * time.Millisecond
			switch r.IntN(6) {
			case 0:
				tracker.Track(id, timeout, uint64(step), now)
				w[id] = &twinRow{timeout, uint64(step), after(now + timeout)}
			case 1, 2:
				tracker.Touch(id, at)
				if row := w[id]; row != nil {
					row.due = max(row.due, after(at+row.timeout))
				}
			case 3:
				tracker.Remove(id)
				delete(w, id)
			case 4:
				now += time.Duration(r.IntN(2500)) * time.Millisecond
			case 5:
				if got, want := tracker.Due(now), w.due(now); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, at %v: due %v, want %v", seed, step, now, got, want)
				}
			}
		}
		n := 0
		for _, b := range tracker.Buckets() {
			n += len(b)
		}
		if n != len(w) {
			t.Errorf("seed %d: %d sessions in buckets, want %d", seed, n, len(w))
		}
	}
}

// For the race detector: everything may be called side by side.
func TestTheTrackerMayBeUsedByManyGoroutines(t *testing.T) {
	tracker := NewTracker(time.Millisecond)
	var running sync.WaitGroup
	for g := range 4 {
		running.Add(1)
		go func() {
			defer running.Done()
			for i := range 500 {
				id := proto.SessionID(i % 17)
				at := time.Duration(i) * time.Millisecond
				tracker.Track(id, time.Millisecond, uint64(g), at)
				tracker.Touch(id, at+time.Second)
				tracker.Due(at)
				tracker.Buckets()
				tracker.Remove(id)
			}
		}()
	}
	running.Wait()
	if due := tracker.Due(time.Hour); len(due) != 0 {
		t.Errorf("left over: %v", due)
	}
}

func BenchmarkTouch(b *testing.B) {
	tracker := NewTracker(tick)
	for id := range proto.SessionID(10_000) {
		tracker.Track(id, 10*time.Second, 1, 0)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tracker.Touch(proto.SessionID(i%10_000), time.Duration(i)*time.Microsecond)
	}
}
