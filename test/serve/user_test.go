package serve

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// ordinary is a user who may not write everywhere, as in the container image.
const ordinary = 1000

// startAsUser runs `zooraft serve` as an ordinary user, even if the tests run
// as root.
func startAsUser(t *testing.T, binary string, args ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{"serve"}, args...)...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = "/", p, p
	if os.Getuid() == 0 {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	p.run()
	return p
}

// Who may not write somewhere is told what and where, with the exit code that
// belongs to it: 3 for the data, 1 for everything else. What such a start
// leaves behind is not taken for data afterwards.
func TestAStartThatMayNotWriteSaysWhere(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // the user must get through
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(peer.ZooraftBinary(t, false))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "zooraft")
	if err := os.WriteFile(binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	own, closed := filepath.Join(dir, "own"), filepath.Join(dir, "closed")
	for _, d := range []string{own, closed} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Chown(own, ordinary, ordinary); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	logClosed := write(t, filepath.Join(dir, "log.cfg"), fmt.Sprintf("dataDir=%s/a\ndataLogDir=%s\nclientPort=0\n", own, closed))
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"dataDir", []string{"0", closed}, 3, []string{closed, "permission denied", "must be able to write"}},
		{"dataLogDir", []string{logClosed}, 3, []string{closed, "permission denied", "must be able to write"}},
		{"port file", []string{"0", own + "/b", "--port-file", closed + "/port"}, 1, []string{closed + "/port", "permission denied"}},
		{"port", []string{"--listen", taken.Addr().String(), "--data-dir", own + "/c"}, 1, []string{"client port cannot be opened", "in use"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startAsUser(t, binary, c.args...)
			text := p.exit(c.code)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
	// The data of an Apache server come into the directory of the failed start.
	version2 := filepath.Join(own, "a", "version-2")
	if err := os.Mkdir(version2, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(version2, "snapshot.1f"), "x")
	if err := os.Chmod(closed, 0o777); err != nil {
		t.Fatal(err)
	}
	if text := startAsUser(t, binary, logClosed).exit(3); !strings.Contains(text, "snapshot.1f") {
		t.Errorf("what is refused is not named:\n%s", text)
	}
}
