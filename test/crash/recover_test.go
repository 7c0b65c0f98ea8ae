package crash

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// recovering are the system calls that change what a directory holds, or make
// sure of it. Each is counted for itself, and in each thread, so the recovery is
// killed at the n-th of each, whatever the order of the threads.
var recovering = []string{"write", "fsync", "fdatasync", "renameat", "unlinkat"}

// recoverNodes is how many nodes the members have before their majority is lost.
const recoverNodes = 40

// A recovery is killed at each of its steps in turn. What is left can be
// recovered again, with all that the server had, and takes writes.
func TestARecoveryKilledAtAnyStepCanBeRunAgain(t *testing.T) {
	toolchain.Need(t, "strace", "cp")
	eachLogStore(t, func(t *testing.T, config map[string]string) {
		config["tickTime"], config["initLimit"], config["syncLimit"] = "500", "20", "20"
		e := peer.StartZooraftEnsemble(t, 3, peer.Options{Config: config, Args: []string{"--allow-unprotected"}})
		c := dial(t, e.Servers[0])
		for i := range recoverNodes {
			if _, err := c.Create(context.Background(), fmt.Sprintf("/n%d", i), nil, proto.CreatePersistent); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range e.Servers {
			s.Stop(t)
		}
		var lines []string
		for i, m := range e.Members {
			lines = append(lines, fmt.Sprintf("server.%d=%s", i+1, m))
		}
		var left []string
		for _, call := range recovering {
			for killed, n := true, 1; killed; n++ {
				dir := filepath.Join(t.TempDir(), "data")
				// Segments of the log are large and mostly empty.
				if out, err := exec.Command("cp", "-r", "--sparse=always", e.Servers[0].DataDir, dir).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				at := fmt.Sprintf("%s %d", call, n)
				killed = recoverUntil(t, e.Servers[0], dir, call, n)
				checkRecovered(t, dir, at)
				left = append(left, dir)
			}
		}
		if killed := len(left) - len(recovering); killed < 10 {
			t.Errorf("the recovery was killed %d times only", killed)
		}
		var servers []*peer.Server
		for i, dir := range left {
			if i%4 != 0 {
				continue // a start takes long
			}
			own := map[string]string{"peerListenAddress": net.JoinHostPort("127.0.0.1", strconv.Itoa(peer.FreePort(t)))}
			for k, v := range config {
				own[k] = v
			}
			servers = append(servers, peer.StartZooraft(t, peer.Options{Config: own, Lines: lines, DataDir: dir, NoWait: true, Args: []string{"--allow-unprotected"}}))
		}
		for i, s := range servers {
			checkServes(t, s, i)
			s.Kill(t)
		}
	})
}

// ofDirectory is a server's configuration with another directory.
func ofDirectory(t *testing.T, s *peer.Server, dir string) (file string) {
	t.Helper()
	text, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	file = dir + ".cfg"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), s.DataDir, dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// recoverUntil kills a recovery as it makes the n-th such call, and tells whether
// it got that far.
func recoverUntil(t *testing.T, s *peer.Server, dir, call string, n int) (killed bool) {
	t.Helper()
	cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call,
		"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n),
		peer.ZooraftBinary(t, false), "recover", ofDirectory(t, s, dir), "--accept-data-loss")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && !exit.Exited() || strings.Contains(err.Error(), "137"):
		return true
	}
	t.Fatalf("%s %d: %v\n%s", call, n, err, out)
	return false
}

var entriesUpTo = regexp.MustCompile(`has entries up to (\d+)`)

// checkRecovered looks at what a killed recovery has left, and runs it again.
func checkRecovered(t *testing.T, dir, step string) {
	t.Helper()
	run := func(args ...string) (string, int) {
		cmd := exec.Command(peer.ZooraftBinary(t, false), append([]string{"recover", dir + ".cfg"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := run()
	members := strings.Count(out, ", participant")
	if code != 1 || !entriesUpTo.MatchString(out) || members != 3 && members != 1 {
		t.Errorf("after a kill at %s it finds, with exit code %d:\n%s", step, code, out)
	}
	if out, code := run("--accept-data-loss"); code != 0 || !strings.Contains(out, "is the only member now") {
		t.Errorf("after a kill at %s, run again, exit code %d:\n%s", step, code, out)
	}
}

// checkServes looks for all that was written, and writes.
func checkServes(t *testing.T, s *peer.Server, i int) {
	t.Helper()
	s.WaitReady(t)
	c := dial(t, s)
	for n := range recoverNodes {
		if _, err := c.Exists(context.Background(), fmt.Sprintf("/n%d", n), false); err != nil {
			t.Errorf("directory %d has no /n%d: %v", i, n, err)
		}
	}
	if _, err := c.Create(context.Background(), "/after", nil, proto.CreatePersistent); err != nil {
		t.Errorf("directory %d: %v", i, err)
	}
}
