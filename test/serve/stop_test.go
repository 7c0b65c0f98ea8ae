package serve

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/test/peer"
)

// A server that is stopped while it reads or replays a long log ends by itself,
// with exit code 0 and not only when all is read; nothing is lost by it.
func TestAStopWhileTheLogIsReplayedLosesNothing(t *testing.T) {
	s := peer.StartZooraft(t, peer.Options{Config: map[string]string{"snapCount": "100000000"}})
	fill := exec.Command(peer.ZooraftBinary(t, false), "bench", "fill", "--addr", s.Address, "--nodes", "60000", "--value-size", "500", "--keep")
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("fill: %v\n%s", err, out)
	}
	want := nodeCount(t, s)
	s.Kill(t)
	reasons := map[string]bool{}
	for _, at := range []string{"the data are being loaded", "the log is being replayed"} {
		begun := len(s.Log())
		s.Launch(t)
		reason := ""
		for reason != at {
			select {
			case <-s.Done():
				t.Fatalf("the server ended:\n%s", s.Log()[begun:])
			case <-time.After(time.Millisecond):
			}
			h, err := admin.FetchHealth(context.Background(), filepath.Join(s.DataDir, "zooraft"))
			if err == nil && h.Ready {
				break
			}
			if err == nil {
				reason = h.Reason
			}
		}
		if code := s.Stop(t); code != 0 {
			t.Fatalf("a stop while %q gave exit code %d:\n%s", reason, code, s.Log()[begun:])
		}
		if !strings.Contains(s.Log()[begun:], "zooraft listens on") {
			reasons[reason] = true
		}
	}
	if len(reasons) == 0 {
		t.Error("none of the stops came while the log was read or replayed")
	}
	t.Logf("stopped while %v", reasons)
	s.Start(t)
	if got := nodeCount(t, s); got != want {
		t.Errorf("%s, there were %s", got, want)
	}
}

// nodeCount is the line of srvr.
func nodeCount(t *testing.T, s *peer.Server) string {
	t.Helper()
	text, err := peer.Word(s.Address, "srvr")
	if err != nil {
		t.Fatal(err)
	}
	_, count, _ := strings.Cut(text, "Node count: ")
	return "Node count: " + strings.TrimSpace(count)
}
