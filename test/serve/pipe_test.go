package serve

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// The log collector behind a pipe dies: the server goes on without one. A
// program in Go ends at the first line it then writes, unless it says otherwise.
func TestAServerOutlivesWhoeverReadsItsLog(t *testing.T) {
	read, logs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(peer.ZooraftBinary(t, false), "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data"))
	p.cmd.Stdout, p.cmd.Stderr = logs, logs
	p.run()
	if err := logs.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	addr, announced := strings.CutPrefix(line, "zooraft listens on ")
	if err != nil || !announced {
		t.Fatalf("said %q, %v", line, err)
	}
	addr, _, _ = strings.Cut(addr, ",")
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	// A frame that is refused is worth a line in the log.
	bad, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if _, err := bad.Write(binary.BigEndian.AppendUint32(nil, 0x7fffffff)); err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Read(make([]byte, 1)); err == nil {
		t.Fatal("an impossible frame was answered")
	}
	// A session that is proposed behind it, and the stop, find the server alive.
	c := dial(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for _, path := range []string{"/a", "/b", "/c"} {
		if _, err := c.Create(ctx, path, nil, proto.CreatePersistent); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.exit(0)
}
