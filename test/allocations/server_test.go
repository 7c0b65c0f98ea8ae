package allocations

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/zooraft/zooraft"
	"github.com/zooraft/zooraft/internal/bench"
)

// A whole request, from one socket to the other, log included. The client of
// bench allocates nothing for one; what it and the server's timers do beside is
// spread over many.
func TestAWholeRequestAllocatesNoMoreThanItDid(t *testing.T) {
	s, err := zooraft.Start(t.Context(), zooraft.DefaultConfig(filepath.Join(t.TempDir(), "data")), zooraft.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := bench.DefaultOptions(s.Addresses().Client.String())
	o.WarmUp, o.Duration, o.Connections, o.Outstanding, o.ValueSize, o.Nodes, o.Keep = 0, 10*time.Minute, 4, 16, 1024, 100, true
	for _, test := range []struct {
		workload string
		most     float64
	}{{"read", 3}, {"write", 12}} {
		o.Workloads = []string{test.workload}
		run := func(requests int64) uint64 {
			o.Requests = requests
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			results, err := bench.Run(t.Context(), o)
			runtime.ReadMemStats(&after)
			if err != nil || results[0].Operations != requests {
				t.Fatalf("%s: %v, %+v", test.workload, err, results)
			}
			return after.Mallocs - before.Mallocs
		}
		run(1000)
		// The difference leaves out what a run costs by itself.
		const few, many = 2000, 22000
		got := float64(int64(run(many))-int64(run(few))) / (many - few)
		if got > test.most {
			t.Errorf("%s: %.2f allocations for a request, %v before", test.workload, got, test.most)
		} else {
			t.Logf("%s: %.2f allocations for a request, of %v", test.workload, got, test.most)
		}
	}
}
