package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/proto"
)

// startServer runs serve in this process and returns its address.
func startServer(t *testing.T) (addr string) {
	t.Helper()
	dir := t.TempDir()
	portFile := filepath.Join(dir, "port")
	options := config.Options{
		Listen: "127.0.0.1:0", DataDir: filepath.Join(dir, "data"), PortFile: portFile,
		Defines: []string{"zookeeper.admin.enableServer=false"},
	}
	ctx, cancel := context.WithCancel(context.Background())
	lines, announced := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := serve(ctx, options, slog.New(slog.DiscardHandler), announced)
		announced.CloseWithError(io.EOF)
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	if n, err := lines.Read(make([]byte, 1000)); err != nil { // the one line, once it serves
		t.Fatalf("serve said nothing: %d bytes, %v", n, err)
	}
	port, err := os.ReadFile(portFile)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(port)))
}

// Each workload makes its requests, counts all of them, meets no error and
// leaves nothing behind.
func TestBenchRunsEveryWorkloadAgainstAServer(t *testing.T) {
	addr := startServer(t)
	flags := []string{"bench", "--addr", addr, "--json", "--requests", "300", "--warm-up", "0s", "--duration", "1m",
		"--connections", "3", "--outstanding", "4", "--watchers", "5", "--nodes", "10", "--rounds", "3", "--value-size", "10"}
	want := map[string]int64{"watches": 5 * 300, "sessions": 5, "ephemerals": 3 * 10, "fill": 10}
	for _, run := range [][]string{
		slices.DeleteFunc(bench.Names(), func(name string) bool { return name == "sessions" }),
		{"sessions", "--duration", "10ms"}, // they are held for that
	} {
		stdout, stderr, code := execute(t, append(flags[:len(flags):len(flags)], run...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		var results []bench.Result
		if err := json.Unmarshal([]byte(stdout), &results); err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			operations, special := want[r.Workload]
			if !special {
				operations = 300
			}
			if r.Workload != run[i] || r.Operations != operations || len(r.Errors) > 0 || r.PerSecond <= 0 || r.Client.Seconds <= 0 ||
				r.Workload != "fill" && (r.Latency.P50 <= 0 || r.Latency.P50 > r.Latency.P999 || r.Latency.P999 > r.Latency.Max) {
				t.Errorf("result %+v", r)
			}
		}
		if i := slices.Index(run, "--duration"); i < 0 && len(results) != len(run) {
			t.Errorf("%d results of %d", len(results), len(run))
		}
	}
	// By the clock: 100 requests of 200 in a second, with what came in each tenth.
	stdout, stderr, code := execute(t, append(flags[:len(flags):len(flags)], "mixed-50", "--rate", "200", "--requests", "0", "--duration", "500ms",
		"--timeline", "100ms")...)
	var results []bench.Result
	if err := json.Unmarshal([]byte(stdout), &results); code != 0 || err != nil || len(results) != 1 {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	sum := int64(0)
	for _, slice := range results[0].Timeline {
		sum += slice.Operations
	}
	if r := results[0]; r.Operations < 97 || r.Operations > 103 || sum != r.Operations {
		t.Errorf("%d requests, %d in the slices of %+v", r.Operations, sum, r)
	}
	c, err := client.Dial(t.Context(), addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	names, _, err := c.Children(t.Context(), "/", false)
	if err != nil || strings.Join(names, " ") != "zookeeper" {
		t.Errorf("left behind: %v, error %v", names, err)
	}
}

func TestAnInterruptedBenchLeavesNothingBehind(t *testing.T) {
	addr := startServer(t)
	c, err := client.Dial(t.Context(), addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	o := bench.DefaultOptions(addr)
	o.Workloads, o.Nodes = []string{"create-delete"}, 10
	started := o.Root + "/c0000-0000" // made by the first request of the load
	if _, err := c.Exists(t.Context(), started, true); client.Code(err) != proto.ErrNoNode {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := bench.Run(ctx, o)
		done <- err
	}()
	<-c.Events()
	interrupt()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	names, _, err := c.Children(t.Context(), "/", false)
	if err != nil || strings.Join(names, " ") != "zookeeper" {
		t.Errorf("left behind: %v, error %v", names, err)
	}
}

func TestBenchRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{{"sleep"}, {"--connections", "0"}, {"--duration", "x"}} {
		if _, stderr, code := execute(t, append([]string{"bench"}, args...)...); code != 2 || stderr == "" {
			t.Errorf("%q: exit code %d, %q", args, code, stderr)
		}
	}
	if _, stderr, code := execute(t, "bench", "read", "--addr", "127.0.0.1:1"); code != 1 || !strings.Contains(stderr, "refused") {
		t.Errorf("no server: exit code %d, %q", code, stderr)
	}
}
