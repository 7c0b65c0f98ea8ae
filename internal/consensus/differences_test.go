package consensus

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestServerLinesOfTwoFilesAreCompared(t *testing.T) {
	own := []Peer{{1, "0.0.0.0:2888", true}, {2, "b:2888", true}, {3, "c:2888", true}}
	for _, c := range []struct {
		name  string
		other []Peer
		want  string
	}{
		{"the same", own, ""},
		{"each listens everywhere by its own line", []Peer{{1, "a:2888", true}, {2, ":2888", true}, {3, "c:2888", true}}, ""},
		{"another address", []Peer{{1, "a:2888", true}, {2, "x:2888", true}, {3, "c:2888", true}}, "server.2 is x:2888 there and b:2888 here"},
		{"another role", []Peer{{1, "a:2888", true}, {2, "b:2888", false}, {3, "c:2888", true}}, "server.2 is b:2888 as observer there and b:2888 here"},
		{"one more and one less", []Peer{{1, "a:2888", true}, {2, "b:2888", true}, {4, "d:2888", true}},
			"server.3 is none there and c:2888 here, server.4 is d:2888 there and none here"},
	} {
		got := difference(own, 2, c.other)
		if c.want != "" {
			c.want = "the server lines of server 2 are others: " + c.want
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestServersWhoseFilesDifferSaySo(t *testing.T) {
	c := newCompany(t, 3)
	c.write(1, 2, 3)
	c.stop(3)
	lines := c.list(1, 2, 3)
	lines[0].Address = strings.Replace(lines[0].Address, "127.0.0.1", "localhost", 1)
	c.start(3, lines)
	eventuallyTrue(t, "both ends say so", func() bool {
		others := c.servers[1].Status().Differs + c.servers[2].Status().Differs
		return strings.Contains(c.servers[3].Status().Differs, "server.1 is 127.0.0.1") && strings.Contains(others, "server.1 is localhost")
	})
	c.stop(3) // its next file may be another one
	eventuallyTrue(t, "nothing is said of a server that is not there", func() bool {
		return c.servers[1].Status().Differs+c.servers[2].Status().Differs == ""
	})
}

// Each server's own line may say 0.0.0.0, as is common in containers.
func TestServersWhoseOwnLinesSayWhereToListenFormAnEnsemble(t *testing.T) {
	c := newCompany(t, 0)
	for id := 1; id <= 3; id++ {
		c.address(id)
	}
	for id := 1; id <= 3; id++ {
		lines := c.list(1, 2, 3)
		lines[id-1].Address = "0.0.0.0" + strings.TrimPrefix(lines[id-1].Address, "127.0.0.1")
		c.start(id, lines)
	}
	c.write(1, 2, 3)
	eventuallyTrue(t, "the membership is settled", func() bool { return c.leader().Membership().Settled })
	for _, p := range c.leader().Membership().Current {
		if isWildcard(p.Address) {
			t.Errorf("server %d is known at %s", p.ID, p.Address)
		}
	}
	for id, s := range c.servers {
		if text := s.Status().Differs; text != "" {
			t.Errorf("server %d: %s", id, text)
		}
	}
}

func TestALineOfTheLibraryIsToldOnceWhileItRepeats(t *testing.T) {
	c := testConfig("")
	out := captureLogs(&c)
	l := newRaftLogger(c.Logger, "raft")
	for range 5 {
		l.Error("failed to heartbeat to", "peer", "a", "error", "refused")
		l.With("x", "y").Log(hclog.Error, "failed to heartbeat to", "peer", "b")
	}
	if n := strings.Count(out.String(), "failed to heartbeat"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out)
	}
}

func TestWhatIsOrdinaryIsNoWarning(t *testing.T) {
	var out strings.Builder
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)), "raft")
	for line := range ordinary {
		l.Warn(line, "peer", "a")
		l.Error(line, "peer", "b")
	}
	if out.Len() != 0 {
		t.Errorf("logged %s", out.String())
	}
	l.Warn("clearing log suffix", "from", 1)
	if !strings.Contains(out.String(), "level=WARN") {
		t.Errorf("logged %q", out.String())
	}
}

// A server that is restarted costs the others no line at ERROR: who is paged for
// one would be paged for every restart.
func TestAConnectionThatEndsIsNoError(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"closed here":   {&net.OpError{Op: "read", Err: net.ErrClosed}, ""},
		"refused there": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "level=WARN"},
		"ended there":   {io.EOF, "level=WARN"},
		"anything else": {errors.New("no space"), "level=ERROR"},
	} {
		var out strings.Builder
		newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)), "raft").Error("failed", "peer", "a", "error", row.err)
		if text := out.String(); row.want == "" && text != "" || !strings.Contains(text, row.want) {
			t.Errorf("%s: logged %q", name, text)
		}
	}
}
