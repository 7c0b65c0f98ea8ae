package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// eachServer runs a test against ours and against Apache's: the shell must serve
// users of both.
func eachServer(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	t.Run("zooraft", func(t *testing.T) { test(t, peer.StartZooraft(t, serverOptions()).Address) })
	t.Run("apache", func(t *testing.T) {
		toolchain.Need(t, "java", "mvn")
		test(t, peer.StartApache(t, serverOptions()).Address)
	})
}

// result is what a shell left behind.
type result struct {
	out, err string
	code     int
}

// run runs one command of the shell in a home of its own.
func run(t *testing.T, address, stdin string, args ...string) result {
	t.Helper()
	return runIn(t, t.TempDir(), nil, stdin, append([]string{"-server", address}, args...)...)
}

func runIn(t *testing.T, home string, env []string, stdin string, args ...string) result {
	t.Helper()
	cmd := exec.Command(peer.ZooraftBinary(t, false), append([]string{"shell"}, args...)...)
	cmd.Env = append(append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME="), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must is run for a command that has to succeed; it returns its answer.
func must(t *testing.T, address, stdin string, args ...string) string {
	t.Helper()
	r := run(t, address, stdin, args...)
	if r.code != 0 {
		t.Fatalf("%q: exit code %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

func TestEachKindOfFailureHasItsExitCodeAndLeavesStandardOutputEmpty(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		must(t, address, "", "create", "/n", "data")
		must(t, address, "", "create", "/n/child", "data")
		must(t, address, "", "create", "/closed", "data", "world:anyone:a")
		must(t, address, "", "create", "/other", "data")
		for _, row := range []struct {
			name  string
			words string
			code  int
			says  string
		}{
			{"a wrong flag", "get -q /n", 2, "Unrecognized option: -q"},
			{"a missing word", "set /n", 2, "set path data"},
			{"a path that is none", "get n", 2, "Path must start with / character"},
			{"no node", "get /none", 4, "Node does not exist: /none"},
			{"the node exists", "create /n x", 5, "Node already exists: /n"},
			{"the wrong version", "set -v 7 /n x", 6, "version No is not valid : /n"},
			{"not permitted", "get /closed", 7, "Insufficient permission : /closed"},
			{"children", "delete /n", 8, "Node not empty: /n"},
			{"a difference", "diff /n /other", 10, "1 differences in 1 nodes"},
			{"no such command", "gett /n", 127, "Command not found: Command not found gett"},
			{"something else", "setAcl /n nosuch:x:r", 1, "Acl is not valid : /n"},
		} {
			t.Run(row.name, func(t *testing.T) {
				r := run(t, address, "", strings.Fields(row.words)...)
				if r.code != row.code || !strings.Contains(r.err, row.says) {
					t.Errorf("%s: exit code %d and %q, want %d and %q", row.words, r.code, r.err, row.code, row.says)
				}
				if row.code != 10 && r.out != "" {
					t.Errorf("%s: standard output has %q", row.words, r.out)
				}
			})
		}
	})
	t.Run("no server", func(t *testing.T) {
		r := run(t, "127.0.0.1:1", "", "ls", "/")
		if r.code != 3 || r.out != "" || !strings.Contains(r.err, "no server can be reached") {
			t.Errorf("exit code %d, %q and %q, want 3 and a reason", r.code, r.out, r.err)
		}
	})
}

// Scripts read standard output whole: zkCli's banner, logs and events broke
// them.
func TestStandardOutputHasNothingButTheAnswer(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	for _, row := range []struct{ words, want string }{
		{"create /a hello", "Created /a\n"},
		{"get /a", "hello\n"},
		{"ls /", "[a, zookeeper]\n"},
		{"getAllChildrenNumber /", "4\n"},
		{"set /a x", ""},
		{"sync /", "Sync is OK\n"},
		{"delete /a", ""},
	} {
		r := run(t, server.Address, "", strings.Fields(row.words)...)
		if r.out != row.want || r.err != "" || r.code != 0 {
			t.Errorf("%s: %q, %q and exit code %d, want %q", row.words, r.out, r.err, r.code, row.want)
		}
	}
	if r := run(t, "127.0.0.1:1", "", "version"); !regexp.MustCompile(`^ZooKeeper CLI version: zooraft \S+\n$`).MatchString(r.out) {
		t.Errorf("version: %q", r.out)
	}
	r := run(t, server.Address, "create /s 1\nget /s\nls /none\nget /s\n")
	if r.out != "Created /s\n1\n1\n" || r.code != 0 {
		t.Errorf("lines of standard input gave %q and exit code %d", r.out, r.code)
	}
}

func TestDataTravelsByteByByte(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		all := make([]byte, 1024)
		for i := range all {
			all[i] = byte(i)
		}
		home := t.TempDir()
		from, to := filepath.Join(home, "from"), filepath.Join(home, "to")
		if err := os.WriteFile(from, all, 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, address, "", "create", "--file", from, "/binary")
		must(t, address, "", "get", "--file", to, "/binary")
		got, err := os.ReadFile(to)
		if err != nil || !bytes.Equal(got, all) {
			t.Errorf("the file came back with %d bytes, %v", len(got), err)
		}
		reversed := string(all[512:]) + string(all[:512])
		must(t, address, reversed, "set", "/binary", "--file", "-")
		if out := must(t, address, "", "get", "--raw", "/binary"); out != reversed {
			t.Errorf("standard input came back with %d bytes", len(out))
		}
		must(t, address, "", "set", "-b", "/binary", "AAH/")
		if out := must(t, address, "", "get", "-b", "/binary"); out != "AAH/\n" {
			t.Errorf("base64 came back as %q", out)
		}
	})
}

func TestNothingLooksLikeAFlagOfTheProgramInsideACommand(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	must(t, server.Address, "", "create", "--", "/a", "-Dname=value")
	must(t, server.Address, "", "create", "--", "/b", "--json")
	if out := must(t, server.Address, "", "get", "/a"); out != "-Dname=value\n" {
		t.Errorf("/a holds %q", out)
	}
	if out := must(t, server.Address, "", "get", "/b"); out != "--json\n" {
		t.Errorf("/b holds %q", out)
	}
}

// lines reads JSON lines.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var value map[string]any
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			t.Errorf("%q is no JSON object: %v", line, err)
			continue
		}
		all = append(all, value)
	}
	return all
}
