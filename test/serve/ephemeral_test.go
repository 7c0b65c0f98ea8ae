package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// portFile reads the lines of a port file that is there.
func portFile(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ports"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func askControl(t *testing.T, port, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Zooraft-Control", "1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// What a test in any language starts: both ports are to be learnt from the file,
// and nothing is written but that.
func TestAnEphemeralServerTellsItsPortsAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, nil, "--ephemeral", "--port-file", "ports", "--control-port", "0")
	line := p.announced()
	ports := portFile(t, dir)
	if len(ports) != 2 || !strings.Contains(line, "127.0.0.1:"+ports[0]) || !strings.Contains(line, "http://127.0.0.1:"+ports[1]) {
		t.Fatalf("the port file has %q, the server says %q", ports, line)
	}
	c := dial(t, net.JoinHostPort("127.0.0.1", ports[0]))
	if _, err := c.Create(context.Background(), "/a", nil, 0); err != nil {
		t.Fatal(err)
	}
	if status, text := askControl(t, ports[1], "POST", "/wait", `{"node": "/a"}`); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if status, text := askControl(t, ports[1], "GET", "/health", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.exit(0)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v (%v)", files, err)
	}
}

func TestAnEphemeralEnsembleIsOneProcess(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, nil, "--ephemeral", "--servers", "3", "--port-file", "ports", "--control-port", "0")
	p.announced()
	ports := portFile(t, dir)
	clients := strings.Split(ports[0], ",")
	if len(ports) != 2 || len(clients) != 3 {
		t.Fatalf("the port file has %q", ports)
	}
	for _, port := range clients {
		dial(t, net.JoinHostPort("127.0.0.1", port))
	}
	if status, text := askControl(t, ports[1], "GET", "/leader", ""); status != http.StatusOK || !strings.Contains(text, "leader") {
		t.Errorf("%d %s", status, text)
	}
}

// Nobody gets a control port that he has not asked for, and only a server for
// tests has one.
func TestTheControlPortIsOffUnlessAskedFor(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, nil, "--ephemeral", "--port-file", "ports")
	if line := p.announced(); strings.Contains(line, "control") {
		t.Errorf("it says %q", line)
	}
	if ports := portFile(t, dir); len(ports) != 1 {
		t.Errorf("the port file has %q", ports)
	}
	for _, args := range [][]string{
		{"--control-port", "0"},
		{"--servers", "3"},
		{"--manual-clock"},
		{"--until-stdin-ends"},
		{"--ephemeral", "zoo.cfg"},
		{"--ephemeral", "-Djute.maxbuffer=1"},
		{"--ephemeral", "--data-dir", "data"},
		{"--ephemeral", "--servers", "0"},
		{"--ephemeral", "--servers", "3", "--listen", "127.0.0.1:0"},
		{"--ephemeral", "--control-port", "65536"},
	} {
		if text := start(t, dir, nil, args...).exit(2); !strings.Contains(text, "zooraft: ") {
			t.Errorf("%q: %s", args, text)
		}
	}
}

// A test that is killed cannot clean up. Its server goes with it.
func TestAnEphemeralServerEndsWithItsParentsPipe(t *testing.T) {
	cmd := exec.Command(peer.ZooraftBinary(t, false), "serve", "--ephemeral", "--listen", "127.0.0.1:0", "--until-stdin-ends")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	line := make([]byte, 16)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "zooraft listens " {
		t.Fatalf("%q, %v", line, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
