package tree

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// BenchmarkCollectionsUnderWrites measures for how long collections stop the
// program while another goroutine writes, with trees of 10^4 to 5×10^6 nodes of 100
// bytes (the largest takes 2 GB). An iteration is one collection:
//
//	go test ./internal/tree -run '^$' -bench CollectionsUnderWrites -benchtime 100x
//
// It is no test: on a busy machine a pause is as long as a thread waits for its
// processor, and the median says more than the largest. That pauses do not grow with
// the tree is to be seen in the rows beside each other.
func BenchmarkCollectionsUnderWrites(b *testing.B) {
	for _, nodes := range []int{10_000, 100_000, 1_000_000, 5_000_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			t := benchTree(b, nodes)
			sets := make([][]byte, 1<<16)
			for i := range sets {
				sets[i] = (&proto.SetDataRequest{Path: benchPath(rand.IntN(nodes)), Data: benchData, Version: -1}).Append(nil)
			}
			begun := time.Now()
			quit, ended := make(chan struct{}), make(chan int)
			go func() {
				writes, changes := 0, make([]Change, 0, 8)
				for ; ; writes++ {
					select {
					case <-quit:
						ended <- writes
						return
					default:
						t.Apply(Txn{Zxid: proto.Zxid(writes + 2), TimeMillis: 1}, proto.OpSetData, sets[writes&(len(sets)-1)], changes)
					}
				}
			}()
			runtime.GC() // what is left of building the tree
			before := pauses()
			for b.Loop() {
				runtime.GC()
			}
			after := pauses()
			close(quit)
			b.ReportMetric(float64(<-ended)/time.Since(begun).Seconds(), "writes/s")
			all := between(before, after)
			b.ReportMetric(float64(len(all))/float64(b.N), "pauses/op")
			b.ReportMetric(1e6*sum(all)/float64(b.N), "paused-µs/op")
			b.ReportMetric(1e6*all[len(all)/2], "median-pause-µs")
			b.ReportMetric(1e6*all[len(all)-1], "largest-pause-µs")
			runtime.KeepAlive(t)
		})
	}
}

// pauses are the times in which the runtime has stopped the program to collect, from
// when it began to stop it.
func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// between are the seconds of each pause that there has been, in order; of each, which
// is told by its bucket, the middle of that.
func between(before, after *metrics.Float64Histogram) (all []float64) {
	for i, n := range after.Counts {
		for range n - before.Counts[i] {
			all = append(all, (max(after.Buckets[i], 0)+after.Buckets[i+1])/2)
		}
	}
	return all
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}
