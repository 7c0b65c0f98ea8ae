package consensus

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkOpenUntilFirstWriteApplied(b *testing.B) {
	var total time.Duration
	for range b.N {
		c := testConfig(b.TempDir())
		c.SegmentBytes = DefaultConfig("").SegmentBytes
		began := time.Now()
		n := start(b, c)
		n.write(b, "first")
		total += time.Since(began)
		_ = n.Close()
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/start")
}

// BenchmarkRestartWithALogToReplay opens a directory with 20,000 entries of one
// command of 100 bytes behind no snapshot.
func BenchmarkRestartWithALogToReplay(b *testing.B) {
	c := testConfig(b.TempDir())
	c.SegmentBytes = DefaultConfig("").SegmentBytes
	c.MaxBatchCommands = 1
	n := start(b, c)
	const entries = 20_000
	command := make([]byte, 100)
	for i := range entries {
		for n.Propose(uint64(i), command) != nil {
			n.journal.await(b, i)
		}
	}
	n.journal.await(b, entries)
	if err := n.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		n := start(b, c)
		n.journal.await(b, entries)
		b.StopTimer()
		_ = n.Close()
		b.StartTimer()
	}
}

// BenchmarkWrites keeps a number of commands of 1 KiB outstanding.
func BenchmarkWrites(b *testing.B) {
	for _, store := range []string{LogStoreWAL, LogStoreBolt} {
		for _, outstanding := range []int{1, 16, 256, 1600} {
			for _, inFlight := range []int{1, 2} {
				for _, group := range []int{16, 256, 1024} {
					if outstanding <= 16 && group != 1024 {
						continue
					}
					b.Run(fmt.Sprintf("%s/out=%d/inflight=%d/group=%d", store, outstanding, inFlight, group), func(b *testing.B) {
						c := testConfig(b.TempDir())
						c.LogStore, c.InFlight, c.MaxBatchCommands = store, inFlight, group
						c.SegmentBytes = DefaultConfig("").SegmentBytes
						benchWrites(b, c, outstanding)
					})
				}
			}
		}
	}
}

// counter is a state machine that only counts.
type counter struct {
	*journal
	applied atomic.Int64
	done    chan int
}

func (c *counter) Apply(_, _ uint64, _ int64, _ uint32, commands [][]byte) error {
	c.applied.Add(int64(len(commands)))
	c.done <- len(commands)
	return nil
}

func benchWrites(b *testing.B, c Config, outstanding int) {
	sm := &counter{journal: newJournal(), done: make(chan int, outstanding)}
	o := newObserver()
	n, err := Open(c, sm, o)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	<-o.leading
	command := make([]byte, kib)
	b.ResetTimer()
	proposed, waiting := 0, 0
	for applied := 0; applied < b.N; {
		for ; waiting < outstanding && proposed < b.N; proposed++ {
			if err := n.Propose(uint64(proposed), command); err != nil {
				b.Fatal(err)
			}
			waiting++
		}
		done := <-sm.done
		applied += done
		waiting -= done
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}
