package faults

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

// The measuring of failovers measures one: the figures themselves are `make
// failover`'s.
func TestBenchFailoverMeasuresTheTimeWithoutWrites(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(peer.ZooraftBinary(t, false), "bench", "failover",
		"--kills", "2", "--connections", "3", "--rest", "500ms", "--json", "--dir", t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bench failover: %v\n%s", err, err.(*exec.ExitError).Stderr)
	}
	var results []bench.FailoverResult
	if err := json.Unmarshal(out, &results); err != nil || len(results) != 1 {
		t.Fatalf("printed %s: %v", out, err)
	}
	r := results[0]
	if len(r.GapMillis) != 2 || len(r.WorstMillis) != 2 || r.Writes == 0 {
		t.Errorf("two kills gave %+v", r)
	}
	if c := r.Client; c.CPUSeconds <= 0 || c.Seconds < 2 || c.Share <= 0 || c.Share > 1 {
		t.Errorf("two kills with half a second before and after each cost the client %+v", c)
	}
	for i := range r.GapMillis {
		if r.GapMillis[i] <= 0 || r.GapMillis[i] > r.WorstMillis[i] {
			t.Errorf("kill %d: all clients waited %v ms, the worst one %v ms", i+1, r.GapMillis[i], r.WorstMillis[i])
		}
	}
}
