package peer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Ensemble is a number of servers of one kind that form an ensemble. Server i
// of the list has the number i+1.
type Ensemble struct {
	Servers []*Server
	// Members are the addresses of the servers' lines: host, quorum port and
	// election port. The ports are five digits long.
	Members []string
}

// ensembleDefaults are patient with a busy machine: both kinds of server drop
// clients and leaders that have been silent for syncLimit × tickTime.
var ensembleDefaults = map[string]string{"initLimit": "100", "syncLimit": "50"}

// StartApacheEnsemble starts n real servers and returns when all of them
// serve. opts holds for each of them; its DataDir must be empty.
func StartApacheEnsemble(tb testing.TB, n int, opts Options) *Ensemble {
	tb.Helper()
	return startEnsemble(tb, n, opts, StartApache)
}

// StartZooraftEnsemble starts n zooraft servers and returns when all of them
// serve. opts holds for each of them; its DataDir must be empty.
func StartZooraftEnsemble(tb testing.TB, n int, opts Options) *Ensemble {
	tb.Helper()
	return startEnsemble(tb, n, opts, StartZooraft)
}

// formingTries is how often an ensemble is started before the test fails:
// ports are taken by somebody else now and then.
const formingTries = 3

func startEnsemble(tb testing.TB, n int, opts Options, start func(testing.TB, Options) *Server) *Ensemble {
	tb.Helper()
	for try := 1; ; try++ {
		e := launchEnsemble(tb, n, opts, start)
		err := e.AwaitReady(2 * ReadyTimeout)
		if err == nil {
			return e
		}
		taken := slices.ContainsFunc(e.Servers, func(s *Server) bool { return portTaken(s.Log()) })
		for _, s := range e.Servers {
			s.Kill(tb)
		}
		if !taken || try == formingTries {
			for _, s := range e.Servers {
				tb.Logf("%s:\n%s", s.Kind, tail(s.Log(), 4000))
			}
			tb.Fatalf("peer: the ensemble did not form: %v", err)
		}
	}
}

func launchEnsemble(tb testing.TB, n int, opts Options, start func(testing.TB, Options) *Server) *Ensemble {
	tb.Helper()
	opts.Config = withDefaults(opts.Config)
	opts.Lines = slices.Clone(opts.Lines)
	e := &Ensemble{}
	for id := 1; id <= n; id++ {
		e.Members = append(e.Members, fmt.Sprintf("127.0.0.1:%d:%d", FreePort(tb), FreePort(tb)))
		opts.Lines = append(opts.Lines, fmt.Sprintf("server.%d=%s", id, e.Members[id-1]))
	}
	opts.NoWait = true
	for id := 1; id <= n; id++ {
		o := opts
		o.DataDir = filepath.Join(tb.TempDir(), "data")
		if err := os.MkdirAll(o.DataDir, 0o755); err != nil {
			tb.Fatalf("peer: %v", err)
		}
		if err := os.WriteFile(filepath.Join(o.DataDir, "myid"), []byte(strconv.Itoa(id)+"\n"), 0o644); err != nil {
			tb.Fatalf("peer: %v", err)
		}
		e.Servers = append(e.Servers, start(tb, o))
	}
	return e
}

func withDefaults(config map[string]string) map[string]string {
	all := maps.Clone(ensembleDefaults)
	maps.Copy(all, config)
	return all
}

// AwaitReady waits until every server serves as leader, follower or observer.
func (e *Ensemble) AwaitReady(timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for _, s := range e.Servers {
		if err := s.AwaitReady(max(time.Until(deadline), time.Second)); err != nil {
			return err
		}
	}
	return nil
}

// Leader returns the index of the server that says it leads, and -1 while none
// does.
func (e *Ensemble) Leader() int {
	return slices.IndexFunc(e.Servers, func(s *Server) bool {
		text, err := Word(s.Address, "srvr")
		return err == nil && strings.Contains(text, "Mode: leader")
	})
}

// Restart ends all servers, by SIGKILL or SIGTERM, and starts them on the same
// data and ports.
func (e *Ensemble) Restart(tb testing.TB, kill bool) {
	tb.Helper()
	for _, s := range e.Servers {
		if kill {
			s.Kill(tb)
		} else {
			s.Stop(tb)
		}
	}
	for _, s := range e.Servers {
		s.Start(tb)
	}
	if err := e.AwaitReady(2 * ReadyTimeout); err != nil {
		tb.Fatalf("peer: the ensemble did not form again: %v", err)
	}
}
