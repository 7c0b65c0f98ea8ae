package allocations

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zooraft/zooraft"
	"github.com/zooraft/zooraft/internal/bench"
)

// What the log takes for a write that no other shares an entry and a sync with.
// ZooKeeper 3.9.5 takes 69 bytes beside path and data for a setData, whatever
// comes with it: measured with the same requests.
func TestALoneWriteTakesLessOfTheLogThanZooKeepers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := zooraft.Start(t.Context(), zooraft.DefaultConfig(dir), zooraft.WithLogger(slog.New(slog.DiscardHandler)))
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
	const root = "/bench"
	const path = len(root + "/n000000")
	o := bench.DefaultOptions(s.Addresses().Client.String())
	o.WarmUp, o.Duration, o.Connections, o.Outstanding, o.Nodes, o.Keep, o.Root = 0, 10*time.Minute, 1, 1, 10, true, root
	for _, test := range []struct {
		data   int
		most   float64 // bytes of the log for a write
		apache float64
	}{
		{100, 177, 69 + float64(path) + 100},
		{1024, 1097, 69 + float64(path) + 1024},
	} {
		o.ValueSize, o.Workloads = test.data, []string{"write"}
		run := func(requests int64) int {
			o.Requests = requests
			before := logBytes(t, dir)
			if results, err := bench.Run(t.Context(), o); err != nil || results[0].Operations != requests {
				t.Fatalf("%v, %+v", err, results)
			}
			return logBytes(t, dir) - before
		}
		run(10)
		// The difference leaves out a run's own session and nodes.
		const few, many = 100, 1100
		got := float64(run(many)-run(few)) / (many - few)
		if got > test.most || test.most >= test.apache {
			t.Errorf("%d bytes: the log grew by %.2f for a write, by %v before; ZooKeeper's by %v", test.data, got, test.most, test.apache)
		} else {
			t.Logf("%d bytes: the log grew by %.2f for a write, of %v; ZooKeeper's by %v", test.data, got, test.most, test.apache)
		}
	}
}

// logBytes is what stands in the segments of the log, which are preallocated.
func logBytes(t *testing.T, dir string) (total int) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "zooraft", "log-wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, name := range segments {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(bytes.TrimRight(b, "\x00"))
	}
	return total
}
