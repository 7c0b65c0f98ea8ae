package consensus

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Who is refused decides how often and, in part, with which words; the log
// holds few lines all the same, none of them long.
func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	c := testConfig("")
	out := captureLogs(&c)
	r := &refusals{}
	for i := range 5000 {
		r.warn(c.Logger, "a:1", "the same")
		r.warn(c.Logger, "a:1", fmt.Sprint(i)+strings.Repeat("x", 60_000))
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != refusalLines || len(out.String()) > refusalLines*1000 {
		t.Errorf("%d lines of %d bytes", len(lines), len(out.String()))
	}
	r.since = r.since.Add(-refusalPause)
	r.warn(c.Logger, "a:1", "the same")
	if text := out.String(); !strings.Contains(text, "count=9980") || strings.Count(text, `reason="the same"`) != 2 {
		t.Errorf("the next window does not say what was left out:\n%s", text[max(0, len(text)-1000):])
	}
}

func TestWhoIsNoServerIsNamedByItsFirstBytes(t *testing.T) {
	client := "\x00\x00\x00\x2d" + strings.Repeat("\x00", 45)
	for _, c := range []struct{ name, bytes, want string }{
		{"a browser", "GET / HTTP/1.1\r\n\r\n", "HTTP"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00", "TLS"},
		{"a ZooKeeper client", client, "ZooKeeper client"},
		{"an old ZooKeeper client", "\x00\x00\x00\x2c" + client[4:48], "ZooKeeper client"},
		{"a follower of Apache's", "\x00\x00\x00\x0b" + strings.Repeat("\x00", 8) + "\x00\x00\x00\x14", "server of Apache ZooKeeper, which"},
		{"an observer of Apache's", "\x00\x00\x00\x10" + strings.Repeat("\x00", 40), "observer of Apache"},
		{"an election of Apache's", "\xff\xff\xff\xff\xff\xff\x00\x00" + strings.Repeat("\x00", 8), "elects a leader"},
		{"a hello that never ends", "\xff\xff\xff\xff\x01\x02\x03\x04", "none of a zooraft server's"},
		{"a Raft of another product", strings.Repeat("\x00", 16), "none of a zooraft server's"},
		{"half a hello", "\x00\x00\x01\x00{", "broke off"},
		{"a port scanner", "", "without a word"},
		{"a word", "ruok", "none of a zooraft server's"},
	} {
		first := &opening{Reader: strings.NewReader(c.bytes)}
		_, err := first.hello()
		if got := noHello(first.bytes, err); err == nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// However many connections say nothing, a server's hello gets its turn, and
// they cost no more than their bound.
func TestSilentConnectionsDoNotKeepServersOut(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { captureLogs(c) })
	leader, others := leaderOf(t, servers)
	var silent []net.Conn
	t.Cleanup(func() {
		for _, c := range silent {
			_ = c.Close()
		}
	})
	for range 2 * pendingHellos {
		c, err := net.Dial("tcp", leader.config.PeerListen)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the oldest silent connection: %v", err)
	}
	leader.port.mu.Lock()
	if n := len(leader.port.pending); n > pendingHellos {
		t.Errorf("%d connections are waited for", n)
	}
	leader.port.mu.Unlock()
	if err := others[0].Close(); err != nil {
		t.Fatal(err)
	}
	others[0].open(t)
	leaderOf(t, servers)
}

// A copy of a member's directory runs beside the original: one of the two
// follows and is not disturbed, the other says why it does not, and ends.
func TestOfTwoProcessesWithTheSameDataOneFollows(t *testing.T) {
	servers := ensemble(t, 3)
	leader, others := leaderOf(t, servers)
	original := others[0]
	if err := original.Close(); err != nil {
		t.Fatal(err)
	}
	c := original.config
	c.DataDir = filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(c.DataDir, os.DirFS(original.config.DataDir)); err != nil {
		t.Fatal(err)
	}
	original.open(t)
	leaderOf(t, servers)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.PeerListener = l
	twin := &testServer{config: c}
	twin.open(t)
	eventuallyTrue(t, "the copy says what is wrong", func() bool { return strings.Contains(twin.Status().NotReady, "another process runs as server") })
	before, term := original.journal.len(), leader.Status().Term
	eventuallyTrue(t, "a proposal is taken", func() bool { return original.Propose(1, []byte("a")) == nil })
	original.journal.await(t, before+1)
	if twin.events.route.Load() {
		t.Error("the copy has a way to the leader, too")
	}
	<-twin.Failed()
	if err := twin.Err(); !errors.Is(err, ErrIdentityMismatch) {
		t.Errorf("the copy ended with %v", err)
	}
	// A machine that is busy may cause an election by itself.
	if n := original.events.lost.Load(); n > 0 && leader.Status().Term == term {
		t.Errorf("the original lost its way to the leader %d times", n)
	}
}

// Builds before the frame that names the process begin with another one.
func TestTheStreamOfAnOlderVersionIsTaken(t *testing.T) {
	here, there := net.Pipe()
	s := newStream(here, 2, 10*time.Second)
	older := newStream(there, 1, 10*time.Second)
	go older.write()
	defer older.close()
	for _, err := range []error{older.send(frameQuery), older.send(frameApplied, u64(7))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	process, asks, err := s.readProcess()
	if process != 0 || asks || err != nil {
		t.Fatalf("process %d, asks %v, %v", process, asks, err)
	}
	var got []string
	_ = s.read(func(kind byte, payload []byte) error {
		if got = append(got, fmt.Sprintf("%c %d", kind, len(payload))); len(got) == 2 {
			return io.EOF
		}
		return nil
	})
	if want := []string{"Q 0", "A 8"}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}
