package shell

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/shell"
	"github.com/zooraft/zooraft/test/peer"
)

// jsonCommands has a line for every command; the ones about the shell itself are
// typed into one that reads lines.
var jsonCommands = []string{
	"create /a x", "create -s /a/s- x", "set /a y", "get /a", "stat /a", "sync /a", "ls /a", "ls -R /a",
	"getAllChildrenNumber /", "getEphemerals", "getAcl /a", "setAcl /a world:anyone:cdrwa", "addAcl /a ip:127.0.0.1:r",
	"removeAcl /a ip:127.0.0.1", "addauth digest ann:secret", "whoami", "setquota -n 5 /a", "listquota /a", "delquota /a",
	"config", "version", "addWatch /a", "removewatches /a", "printwatches", "history", "redo 3", "help get", "tree /a",
	"find /a", "cp /a /copy", "diff /a /copy", "mv /copy /moved", "edit /a", "dump /a", "who", "top --count 1 --interval 50ms",
	"delete /a/s-0000000000", "deleteall /a", "close", "connect ADDRESS", "digest ann", "quit",
	// Two that need something else beside: see the test.
	"load /loaded", "watch --count 1 /w", "reconfig -remove 2",
}

func TestEveryCommandAnswersInJSON(t *testing.T) {
	typed := map[string]bool{}
	for _, line := range jsonCommands {
		name, _, _ := strings.Cut(line, " ")
		typed[name] = true
	}
	for _, name := range shell.Names() {
		if !typed[name] {
			t.Errorf("no line here types %s", name)
		}
	}
	eachServer(t, func(t *testing.T, address string) {
		t.Setenv("EDITOR", "true")
		script := strings.ReplaceAll(strings.Join(jsonCommands[:slices.Index(jsonCommands, "quit")], "\n"), "ADDRESS", address)
		// The line after digest is its password.
		r := run(t, address, script+"\nsecret\nquit\n", "--json")
		if r.code != 0 {
			t.Errorf("exit code %d\n%s", r.code, r.err)
		}
		if answers := lines(t, r.out); len(answers) < len(jsonCommands)-5 {
			t.Errorf("only %d answers:\n%s", len(answers), r.out)
		}
		if r.err != "" {
			t.Errorf("standard error has %s", r.err)
		}
		lines(t, must(t, address, `{"path":"/","data":"x"}`+"\n", "--json", "load", "/loaded"))
		must(t, address, "", "create", "/w", "x")
		watcher := startWatch(t, address, "--json", "watch", "--data", "--count", "1", "/w")
		must(t, address, "", "set", "/w", "changed")
		change := lines(t, watcher.wait(t))[0]
		if change["type"] != "NodeDataChanged" || change["path"] != "/w" || change["data"] != "changed" {
			t.Errorf("watch printed %v", change)
		}
		failed := run(t, address, "", "--json", "get", "/none")
		report := lines(t, failed.err)[0]["error"].(map[string]any)
		if report["name"] != "NoNode" || report["path"] != "/none" || report["exit"] != float64(4) || failed.code != 4 {
			t.Errorf("an error was reported as %v", report)
		}
		if r := run(t, address, "", "--json", "reconfig", "-remove", "2"); r.code == 0 || len(lines(t, r.err)) != 1 {
			t.Errorf("reconfig on a lone server: exit code %d, %s", r.code, r.err)
		}
	})
}

// started is a shell that runs beside the test.
type started struct {
	cmd *exec.Cmd
	out *strings.Builder
}

// startWatch starts a shell with the command watch, and returns once the server
// counts the watch.
func startWatch(t *testing.T, address string, args ...string) *started {
	t.Helper()
	before := watches(t, address)
	cmd := exec.Command(peer.ZooraftBinary(t, false), append([]string{"shell", "-server", address}, args...)...)
	s := &started{cmd: cmd, out: &strings.Builder{}}
	cmd.Stdout = s.out
	cmd.Env = append(cmd.Environ(), "HOME="+filepath.Join(t.TempDir()))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	eventually(t, "the watch is set", func() bool { return watches(t, address) > before })
	return s
}

func watches(t *testing.T, address string) int {
	t.Helper()
	text, err := peer.Word(address, "mntr")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range strings.Split(text, "\n") {
		if value, ok := strings.CutPrefix(line, "zk_watch_count\t"); ok {
			for _, digit := range strings.TrimSpace(value) {
				n = 10*n + int(digit-'0')
			}
		}
	}
	return n
}

func (s *started) wait(t *testing.T) string {
	t.Helper()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the shell ended with %v", err)
	}
	return s.out.String()
}
