package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Data of the first level open, and a server alone raises the level when it
// starts. The older build then refuses them, from the log as from a snapshot,
// with both numbers; it leaves them to the newer one.
func TestAServerAloneRaisesTheLevelAndAnOlderBuildRefusesItsData(t *testing.T) {
	for name, snapshot := range map[string]bool{"in the log": false, "in a snapshot": true} {
		t.Run(name, func(t *testing.T) {
			older := Options{Config: testConfig(t)}
			newer := older
			newer.Embedding.CommandLevel = 2
			run := func(o Options, path string, level byte) *Server {
				s := startServerWith(t, o)
				awaitLevel(t, s, level)
				create := proto.CreateRequest{Path: path, ACL: proto.OpenACL}
				connect(t, s, proto.ConnectRequest{}).call(proto.OpCreate, create.Append(nil, proto.OpCreate))
				if got := (*report)(s).Health().CommandLevel; got != int(level) {
					t.Errorf("health says level %d, want %d", got, level)
				}
				return s
			}
			stop(t, run(older, "/a", 1))
			s := run(newer, "/b", 2)
			if snapshot {
				if err := s.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
			stop(t, s)
			err := refused(older)
			if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), "it is 2, and 1 is supported at most") {
				t.Errorf("the older build says %v", err)
			}
			s = run(newer, "/c", 2)
			paths := map[string]bool{}
			for _, n := range s.Dump().Nodes {
				paths[n.Path] = true
			}
			if !paths["/a"] || !paths["/b"] || !paths["/c"] {
				t.Errorf("the newer build has %v", paths)
			}
		})
	}
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

func awaitLevel(t *testing.T, s *Server, level byte) {
	t.Helper()
	for end := time.Now().Add(waitLimit); s.state.CommandLevel() != level; {
		if time.Now().After(end) {
			t.Fatalf("the level is %d, want %d", s.state.CommandLevel(), level)
		}
		<-time.After(time.Millisecond)
	}
}

// refused is why a server did not start, or gave up by itself.
func refused(o Options) error {
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := Start(o)
	if err != nil {
		return err
	}
	select {
	case <-s.Failed():
	case <-time.After(waitLimit):
	}
	return errors.Join(s.Err(), s.Stop())
}
