package allocations

import (
	"runtime/metrics"
	"testing"
	"time"

	"github.com/zooraft/zooraft/zktest"
)

// scheduled is how often goroutines of this process have been run.
func scheduled() (n uint64) {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	for _, count := range s[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}

// What an idle process costs is how often it wakes up. Three servers without
// clients ran goroutines some 230 times a second when each thing was looked for
// by a timer of its own.
func TestAnIdleEnsembleWakesUpNoOftenerThanItDid(t *testing.T) {
	const most = 100.0 // a second
	ens := zktest.NewEnsemble(t, 3, zktest.TickTime(2*time.Second), zktest.ElectionTimeout(2*time.Second))
	if _, err := ens.AwaitLeader(); err != nil {
		t.Fatal(err)
	}
	pause := func(d time.Duration) { <-time.After(d) }
	pause(2 * time.Second) // what a start has to do is done
	const measured = 6 * time.Second
	begin, before := time.Now(), scheduled()
	pause(measured)
	got := float64(scheduled()-before) / time.Since(begin).Seconds()
	if got > most {
		t.Errorf("goroutines ran %.0f times a second, at most %.0f before", got, most)
	} else {
		t.Logf("goroutines ran %.0f times a second, of %.0f", got, most)
	}
}
