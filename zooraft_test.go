package zooraft_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"github.com/zooraft/zooraft"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func connect(t *testing.T, s *zooraft.Server) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.Addresses().Client.String()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func start(t *testing.T, ctx context.Context, c *zooraft.Config, opts ...zooraft.Option) *zooraft.Server {
	t.Helper()
	s, err := zooraft.Start(ctx, c, append([]zooraft.Option{zooraft.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatAnEmbeddedServerConfirmedIsThereWhenItStartsAgain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c := zooraft.DefaultConfig(filepath.Join(t.TempDir(), "data"))
	s := start(t, context.Background(), c)
	conn := connect(t, s)
	if _, err := conn.Create("/a", []byte("1"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, context.Background(), c)
	conn = connect(t, s)
	if data, _, err := conn.Get("/a"); err != nil || string(data) != "1" {
		t.Errorf("got %q, %v", data, err)
	}
	conn.Close()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheContextStopsTheServer(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(context.Background())
	c := zooraft.DefaultConfig(t.TempDir())
	s := start(t, ctx, c)
	cancel()
	<-s.Stopped()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	// Its directory is free again.
	if err := start(t, context.Background(), c).Stop(); err != nil {
		t.Error(err)
	}
	if _, err := zooraft.Start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("started with a context that had ended: %v", err)
	}
}

func TestAStartThatCannotBeSaysWhy(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	first := zooraft.DefaultConfig(t.TempDir())
	s := start(t, context.Background(), first)
	taken := zooraft.DefaultConfig(t.TempDir())
	if _, err := fmt.Sscanf(s.Addresses().Client.String(), "127.0.0.1:%d", &taken.Listen.Port); err != nil {
		t.Fatal(err)
	}
	wrong := zooraft.DefaultConfig(t.TempDir())
	wrong.Session.TickTime = -1
	inMemory := zooraft.DefaultConfig(t.TempDir())
	inMemory.Storage.LogStore = "memory" // only for tests, see zktest
	for name, row := range map[string]struct {
		config *zooraft.Config
		want   error
	}{
		"the directory is another server's":     {first, zooraft.ErrData},
		"the port is taken":                     {taken, zooraft.ErrListen},
		"a value is out of range":               {wrong, zooraft.ErrConfig},
		"data in memory are not for production": {inMemory, zooraft.ErrConfig},
	} {
		if _, err := zooraft.Start(context.Background(), row.config); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// lines is a log that several goroutines write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAZooCfgIsReadAndTheLoggerIsTheOneHandedIn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	text := "tickTime=500\nclientPort=0\ndataDir=" + filepath.ToSlash(filepath.Join(dir, "data")) + "\nnot.a.key=1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := zooraft.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Session.TickTime != 500*time.Millisecond {
		t.Errorf("tick %s", c.Session.TickTime)
	}
	if !strings.Contains(strings.Join(warnings, "\n"), "not.a.key") {
		t.Errorf("no warning of the unknown key in %q", warnings)
	}
	var log lines
	s := start(t, context.Background(), c, zooraft.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	conn := connect(t, s)
	if _, _, err := conn.Exists("/"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	conn.Close()
	if _, _, err := zooraft.LoadConfig(filepath.Join(dir, "missing.cfg")); !errors.Is(err, zooraft.ErrConfig) {
		t.Errorf("a missing file: %v", err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for !strings.Contains(log.String(), "server_stopping") {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not tell of the stop:\n%s", log.String())
		}
		<-time.After(time.Millisecond)
	}
}

// Whoever embeds a server has a registry already, and wants the numbers there.
func TestMetricsAreInTheRegistererThatWasHandedInUntilTheServerStops(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	first := start(t, context.Background(), zooraft.DefaultConfig(t.TempDir()), zooraft.WithMetrics(registry))
	conn := connect(t, first)
	if _, err := conn.Create("/app", []byte("1"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`(?m)^# TYPE znode_count gauge$`,
		`(?m)^znode_count [5-9]$`,
		`(?m)^# TYPE connection_request_count counter$`,
		`(?m)^connection_request_count [1-9]`,
		`(?m)^updatelatency\{quantile="0.99"\} `,
		`(?m)^updatelatency_count [1-9]`,
		`(?m)^write_per_namespace_count\{key="app"\} 1$`,
	} {
		if w.Code != http.StatusOK || !regexp.MustCompile(line).MatchString(w.Body.String()) {
			t.Errorf("%d, nothing matches %s in\n%s", w.Code, line, w.Body)
		}
	}
	if n := strings.Count(w.Body.String(), "# TYPE "); n < 130 {
		t.Errorf("only %d metrics", n)
	}

	// A second server needs names of its own, and a start that fails leaves nothing.
	c := zooraft.DefaultConfig(t.TempDir())
	if _, err := zooraft.Start(context.Background(), c, zooraft.WithMetrics(registry)); !errors.Is(err, zooraft.ErrMetrics) {
		t.Fatalf("the same names twice: %v", err)
	}
	second := start(t, context.Background(), c,
		zooraft.WithMetrics(prometheus.WrapRegistererWith(prometheus.Labels{"server": "2"}, prometheus.WrapRegistererWithPrefix("second_", registry))))
	for _, s := range []*zooraft.Server{first, second} {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("after both have stopped there are %d metrics (%v)", len(families), err)
	}
}

// What an operator asks by the admin channel is to be had on the program's own
// port too.
func TestTheAdminHandlerAnswersOnTheProgramsOwnPort(t *testing.T) {
	s := start(t, context.Background(), zooraft.DefaultConfig(t.TempDir()))
	w := httptest.NewRecorder()
	s.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"ready": true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestThePortFileHoldsThePortWhenStartReturns(t *testing.T) {
	c := zooraft.DefaultConfig(t.TempDir())
	c.Listen.PortFile = filepath.Join(t.TempDir(), "port")
	s := start(t, context.Background(), c)
	text, err := os.ReadFile(c.Listen.PortFile)
	if err != nil || "127.0.0.1:"+strings.TrimSpace(string(text)) != s.Addresses().Client.String() {
		t.Errorf("%q, %v; the address is %s", text, err, s.Addresses().Client)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	c.Listen.PortFile = filepath.Join(t.TempDir(), "no", "such", "directory")
	if _, err := zooraft.Start(context.Background(), c); err == nil {
		t.Fatal("started without the port file that was asked for")
	}
	c.Listen.PortFile = ""
	if err := start(t, context.Background(), c).Stop(); err != nil {
		t.Errorf("the start that failed has left something: %v", err)
	}
}

// The smallest program with a server of its own.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "zooraft-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	srv, err := zooraft.Start(context.Background(), zooraft.DefaultConfig(dir),
		zooraft.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	if err := srv.WaitReady(context.Background()); err != nil {
		panic(err)
	}
	// Connect any ZooKeeper client to srv.Addresses().Client.
	fmt.Println(srv.Stop())
	// Output: <nil>
}
