package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openChannel(t *testing.T, a *Admin, dir string) *Channel {
	t.Helper()
	c, err := a.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, err := os.Lstat(c.Path()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there after Close: %v", err)
		}
	})
	return c
}

// get asks the channel and returns status and body.
func get(t *testing.T, dir, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, SocketPath(dir))
		},
	}}
	response, err := client.Get("http://zooraft" + path)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return response.StatusCode, string(body)
}

func TestTheChannelAnswersHealthWordsAndMetrics(t *testing.T) {
	server := busyServer()
	server.health = Health{Live: true, Ready: true, Mode: ModeStandalone, Address: "127.0.0.1:2181", Zxid: 10}
	// Nothing is whitelisted: the channel is the operator's own.
	dir := t.TempDir()
	a := newTestAdmin(server)
	a.config.Allows = func(string) bool { return false }
	openChannel(t, a, dir)

	for _, c := range []struct {
		path   string
		status int
		body   string // a part of it
	}{
		{"/health", 200, `"ready": true`},
		{"/health/live", 200, `"zxid": 10`},
		{"/words", 200, `"wchs"`},
		{"/words/ruok", 200, "imok"},
		{"/words/stat", 200, "Clients:\n /127.0.0.1:53650[1]"},
		{"/words/stmk?mask=0x20", 200, "32"},
		{"/words/gtmk", 200, "32"},
		{"/words/stmk", 400, "?mask=NUMBER"},
		{"/words/abcd", 404, "no such word"},
		{"/metrics.json", 200, `"znode_count": 9`},
		{"/watches", 200, `{"session":"0x100000cb10f0000","kind":"recursive","path":"/a"}` + "\n"},
		{"/paths/busy?for=1ms", 200, `"reads": 3`},
		{"/paths/busy?for=1h", 400, "a time up to 30s"},
		{"/paths/busy?for=x", 400, "a time up to 30s"},
		{"/nothing", 404, ""},
	} {
		status, body := get(t, dir, c.path)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("GET %s: %d %.300s; want %d with %q", c.path, status, body, c.status, c.body)
		}
	}
	_, body := get(t, dir, "/metrics.json")
	var numbers map[string]any
	if err := json.Unmarshal([]byte(body), &numbers); err != nil {
		t.Fatal(err)
	}
	if numbers["avg_latency"] != 7.0 || numbers["server_state"] != ModeStandalone || numbers["p999_readlatency"] != 0.0 {
		t.Errorf("metrics.json: %v %v %v", numbers["avg_latency"], numbers["server_state"], numbers["p999_readlatency"])
	}
}

func TestHealthTellsLiveFromReady(t *testing.T) {
	dir := t.TempDir()
	server := &fakeServer{stopped: true}
	openChannel(t, newTestAdmin(server), dir)
	for _, c := range []struct {
		health      Health
		ready, live int
	}{
		{Health{Live: true, Ready: true}, 200, 200},
		{Health{Live: true, Reason: "A snapshot is being loaded."}, 503, 200},
		{Health{Reason: "The disk is broken."}, 503, 503},
	} {
		server.health = c.health
		ready, body := get(t, dir, "/health")
		live, _ := get(t, dir, "/health/live")
		if ready != c.ready || live != c.live || !strings.Contains(body, c.health.Reason) {
			t.Errorf("%+v: ready %d, live %d, %s", c.health, ready, live, body)
		}
		got, err := FetchHealth(t.Context(), dir)
		if err != nil || got != c.health {
			t.Errorf("fetched %+v, %v; want %+v", got, err, c.health)
		}
	}
}

func TestNobodyOnTheSocketIsUnreachable(t *testing.T) {
	dir := t.TempDir()
	if _, err := FetchHealth(t.Context(), dir); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a socket: %v", err)
	}
	leaveDeadSocket(t, dir)
	if _, err := FetchHealth(t.Context(), dir); !errors.Is(err, ErrUnreachable) {
		t.Errorf("with a dead socket: %v", err)
	}
}

// leaveDeadSocket leaves the socket of a process that was killed.
func leaveDeadSocket(t *testing.T, dir string) {
	t.Helper()
	l, err := net.Listen("unix", SocketPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheSocketIsForItsOwnerOnlyAndReplacesADeadOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "zooraft") // made by Open
	openChannel(t, newTestAdmin(&fakeServer{}), dir)
	info, err := os.Lstat(SocketPath(dir))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket's mode is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the new directory's mode is %v, %v", info.Mode(), err)
	}

	dead := t.TempDir()
	leaveDeadSocket(t, dead)
	openChannel(t, newTestAdmin(&fakeServer{health: Health{Live: true}}), dead)
	if status, _ := get(t, dead, "/health/live"); status != 200 {
		t.Errorf("after a dead socket: %d", status)
	}
}

func TestAFileInTheSocketsPlaceIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(SocketPath(dir), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := newTestAdmin(&fakeServer{}).Open(dir); !errors.Is(err, ErrSocketPath) {
		t.Errorf("opening over a file: %v", err)
	}
	if text, err := os.ReadFile(SocketPath(dir)); err != nil || string(text) != "mine" {
		t.Errorf("the file is now %q, %v", text, err)
	}
}

func TestASocketOnWhichSomebodyListensIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	openChannel(t, newTestAdmin(&fakeServer{health: Health{Live: true}}), dir)
	if _, err := newTestAdmin(&fakeServer{}).Open(dir); !errors.Is(err, ErrSocketPath) {
		t.Errorf("opening a second time: %v", err)
	}
	if status, _ := get(t, dir, "/health/live"); status != 200 {
		t.Errorf("the first one answers %d", status)
	}
}

func TestADataDirectoryDeeperThanASocketAddressWorks(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		deep := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
		if _, err := newTestAdmin(&fakeServer{}).Open(deep); !errors.Is(err, ErrSocketPath) {
			t.Errorf("without /proc: %v", err)
		}
		return
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 120), strings.Repeat("e", 120))
	openChannel(t, newTestAdmin(&fakeServer{health: Health{Live: true, Ready: true}}), deep)
	if h, err := FetchHealth(t.Context(), deep); err != nil || !h.Ready {
		t.Errorf("health over a long path: %+v, %v", h, err)
	}
}
