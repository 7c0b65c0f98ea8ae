package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// gozkVersion is pinned with its hash in gozk/go.sum.
const gozkVersion = "github.com/go-zookeeper/zk@v1.0.4"

func TestGoClient(t *testing.T) {
	takeTurn(t)
	toolchain.Need(t, "java", "mvn")
	source := gozkSource(t)
	program := filepath.Join(filepath.Dir(source), "gozk.test")
	toolchain.Run(t, source, nil, "go", "test", "-c", "-o", program, ".")
	compare(t, suite{name: "gozk", run: func(t *testing.T, g target, names []string) map[string]Result {
		return runGozk(t, g, source, program, names)
	}})
}

// gozkSource returns a copy of the client's source with its tests, fetched
// through the module proxy.
func gozkSource(t *testing.T) string {
	t.Helper()
	module := filepath.Join(toolchain.Root(), "test", "clients", "gozk")
	dir := filepath.Join(toolchain.Build(t, "gozk"), "source")
	inputs := []string{filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")}
	toolchain.Once(t, dir, inputs, func() {
		var fetched struct{ Dir string }
		reply := toolchain.Run(t, module, nil, "go", "mod", "download", "-json", gozkVersion)
		if err := json.Unmarshal([]byte(reply), &fetched); err != nil {
			t.Fatalf("go mod download: %v in %s", err, reply)
		}
		if err := os.CopyFS(dir, os.DirFS(fetched.Dir)); err != nil {
			t.Fatal(err)
		}
	})
	return dir
}

// runGozk runs the compiled suite and reads its verdicts.
func runGozk(t *testing.T, g target, source, program string, names []string) map[string]Result {
	t.Helper()
	folder, env := standin(t, g)
	args := []string{"tool", "test2json", program, "-test.v=test2json", "-test.timeout=10m"}
	if names != nil {
		args = append(args, "-test.run=^("+strings.Join(topLevel(names), "|")+")$")
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "ZOOKEEPER_BIN_PATH="+folder, "STANDIN_OLD_DATE=1", "TMPDIR="+g.folder)
	out, runErr := cmd.Output()
	os.WriteFile(filepath.Join(g.folder, "gozk.json"), out, 0o644)
	tests := readTestJSON(out)
	if runErr != nil && len(tests) == 0 {
		t.Fatalf("the suite did not run: %v", runErr)
	}
	return tests
}

// topLevel returns the tests that the named tests and subtests belong to.
func topLevel(names []string) []string {
	var tops []string
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		tops = append(tops, regexp.QuoteMeta(top))
	}
	return tops
}

// readTestJSON reads the events of test2json. A test without an end, in a
// suite that was cut off, has failed.
func readTestJSON(out []byte) map[string]Result {
	tests := map[string]Result{}
	output := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		switch event.Action {
		case "run":
			tests[event.Test] = Result{Status: Failed, Detail: "it did not end"}
		case "output":
			output[event.Test] = keepTail(output[event.Test] + event.Output)
		case "pass":
			tests[event.Test] = Result{}
		case "skip":
			tests[event.Test] = Result{Status: Skipped}
		case "fail":
			tests[event.Test] = Result{Status: Failed, Detail: toolchain.Tail(output[event.Test], 12)}
		}
	}
	return tests
}

// keepTail bounds a test's kept output to 8 KiB, its end: some suites log much.
func keepTail(output string) string {
	return output[max(0, len(output)-8<<10):]
}
