package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// execute runs a command line and returns what it printed and its exit code.
func execute(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return out.String(), errs.String(), code
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigCheckExitsAsServeWould(t *testing.T) {
	t.Setenv("SERVER_JVMFLAGS", "")
	t.Setenv("JVMFLAGS", "")
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	tests := []struct {
		name, text string
		args       []string
		code       int
		stdout     string
		stderr     string
	}{
		{"a good file", "dataDir=DIR/new\nclientPort=0\n", []string{file, "-Djute.maxbuffer=0x800"}, 0, "jute.maxbuffer = 2048", ""},
		{"a bad value", "dataDir=DIR/new\nclientPort=0\ntickTime=x\n", []string{file}, 2, "would not start", "zoo.cfg:3: tickTime"},
		{"a file that is not there", "", []string{file + ".none"}, 2, "would not start", "no such file"},
		{"TLS", "dataDir=DIR/new\nsecureClientPort=2281\nclientPort=0\n", []string{file}, 2, "", "zoo.cfg:2: secureClientPort"},
		{"TLS that is waived", "dataDir=DIR/new\nsecureClientPort=2281\nclientPort=0\n", []string{file, "--allow-unprotected"}, 0,
			"is ignored because of --allow-unprotected", ""},
		{"foreign data", "dataDir=DIR/apache\nclientPort=0\n", []string{file}, 3, "", "snapshot.1f, of zxid 0x1f"},
		{"positional arguments", "", []string{"0", filepath.Join(dir, "new"), "500"}, 0, "tickTime = 500", ""},
		{"too many arguments", "", []string{"1", "2", "3", "4", "5"}, 2, "", "at most 4"},
		{"an unknown flag", "", []string{"--no-such-flag"}, 2, "", "unknown flag"},
	}
	write(t, filepath.Join(dir, "apache", "version-2", "snapshot.1f"), "")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			write(t, file, strings.ReplaceAll(test.text, "DIR", dir))
			stdout, stderr, code := execute(t, append([]string{"config", "check"}, test.args...)...)
			if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || code == 0 && stderr != "" {
				t.Errorf("exit code %d, want %d\n%s\n%s", code, test.code, stdout, stderr)
			}
			if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
				t.Error("the check made a directory")
			}
		})
	}
}

func TestAWrongCommandLineIsExitCode2(t *testing.T) {
	for _, args := range [][]string{{"no-such-command"}, {"version", "extra"}, {"version", "--no-such-flag"}, {"config", "no-such"}} {
		if _, stderr, code := execute(t, args...); code != 2 || !strings.HasPrefix(stderr, "zooraft: ") {
			t.Errorf("%q: exit code %d, %q", args, code, stderr)
		}
	}
}

func TestVersionIsOneLine(t *testing.T) {
	stdout, stderr, code := execute(t, "version")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "zooraft ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}
