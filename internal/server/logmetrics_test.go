package server

import (
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Case 55: operators see how far back the log reaches, and what it takes to load a
// snapshot; what it takes to send one, test/faults looks at.
func TestMetricsSayHowFarBackTheLogReaches(t *testing.T) {
	shown := func(s *Server, name string) int64 {
		for _, l := range s.registry.Lines() {
			if l.Key == name {
				return l.Value.Int64()
			}
		}
		t.Fatalf("%s is not shown", name)
		return 0
	}
	c := testConfig(t)
	s, err := Start(Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	<-s.Ready()
	connect(t, s, proto.ConnectRequest{})
	if age := shown(s, "oldest_log_entry_age_ms"); age > time.Hour.Milliseconds() {
		t.Errorf("the oldest entry of a new log was made %d ms ago", age)
	}
	if took := shown(s, "snapshot_load_time_ms"); took != -1 {
		t.Errorf("a snapshot was loaded in %d ms, and there is none", took)
	}
	if err := s.node.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, c)
	if took := shown(s, "snapshot_load_time_ms"); took < 0 {
		t.Errorf("the snapshot at the start was loaded in %d ms", took)
	}
	if age := shown(s, "oldest_log_entry_age_ms"); age > time.Hour.Milliseconds() {
		t.Errorf("after a start the oldest entry was made %d ms ago", age)
	}
}
