package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// TestNodePureClient is npm's node-zookeeper-client: its own tests, which need
// no server, and our checks of every call.
func TestNodePureClient(t *testing.T) {
	takeTurn(t)
	modules := nodeModules(t)
	compare(t, suite{name: "node-zookeeper-client", run: func(t *testing.T, g target, names []string) map[string]Result {
		address := nodeServer(t, g)
		own := filepath.Join(modules, "node_modules", "node-zookeeper-client")
		tests := readTAP(t, runTool(t, g, own, nil, "npx", "--no-install", "mocha", "--recursive", "--reporter", "tap", "test"))
		merge(tests, readVerdicts(t, runTool(t, g, modules, nil, "node", "pure.js", address)))
		return onlyNamed(tests, names)
	}})
}

// TestNodeNativeClient is npm's zookeeper, the C client in Node: its own unit
// and integration tests, and our checks of every call.
func TestNodeNativeClient(t *testing.T) {
	takeTurn(t)
	toolchain.Need(t, "node", "npm", "gcc", "make", "python3", "java", "mvn")
	modules := nodeModules(t)
	compare(t, suite{name: "node-zookeeper", run: func(t *testing.T, g target, names []string) map[string]Result {
		address := nodeServer(t, g)
		own := filepath.Join(modules, "node_modules", "zookeeper")
		tests := readTAP(t, runTool(t, g, own, nil, "npx", "--no-install", "ava", "--tap",
			"tests/unit/**/*.js", "tests/integration/*.js", "--", address))
		merge(tests, readVerdicts(t, runTool(t, g, modules, nil, "node", "native.js", address)))
		return onlyNamed(tests, names)
	}})
}

// nodeModules installs both clients and their test tools by the lock file, and
// the checks beside them. Package zookeeper compiles the C client it ships.
func nodeModules(t *testing.T) string {
	t.Helper()
	toolchain.Need(t, "node", "npm", "npx", "java", "mvn")
	source := filepath.Join(toolchain.Root(), "test", "clients", "node")
	dir := filepath.Join(toolchain.Build(t, "clients"), "node")
	lock := filepath.Join(source, "package-lock.json")
	toolchain.Once(t, dir, []string{lock}, func() {
		copyFiles(t, source, dir, "package.json", "package-lock.json")
		toolchain.Run(t, dir, nil, "npm", "ci", "--no-audit", "--no-fund")
	})
	copyFiles(t, source, dir, "check.js", "pure.js", "native.js")
	return dir
}

func copyFiles(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// nodeServer starts a server with TTL nodes and returns its address.
func nodeServer(t *testing.T, g target) string {
	t.Helper()
	return g.start(t, peer.Options{Defines: map[string]string{"zookeeper.extendedTypesEnabled": "true"}}).Address
}

// runTool runs a suite's program and returns what it printed, which is also
// kept in the suite's folder. A failing test makes it exit with an error, so
// the verdicts are read and the exit code is not.
func runTool(t *testing.T, g target, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	log, openErr := os.OpenFile(filepath.Join(g.folder, "output.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if openErr == nil {
		log.Write(out)
		log.Close()
	}
	if err != nil {
		t.Logf("%s on %s: %v", filepath.Base(program), g.label(), err)
	}
	return string(out)
}

func merge(into, from map[string]Result) {
	for name, result := range from {
		into[name] = result
	}
}

// onlyNamed keeps the named results, or all when names is nil.
func onlyNamed(tests map[string]Result, names []string) map[string]Result {
	if names == nil {
		return tests
	}
	kept := map[string]Result{}
	for _, name := range names {
		if result, there := tests[name]; there {
			kept[name] = result
		}
	}
	return kept
}

var (
	verdictLine = regexp.MustCompile(`(?m)^(PASS|FAIL) ([^:\n]+)(?:: (.*))?$`)
	tapLine     = regexp.MustCompile(`(?m)^(not )?ok \d+ -? ?(.+?)( # SKIP.*)?$`)
)

// readVerdicts reads the lines of our own checks: "PASS name" or
// "FAIL name: detail". A name has no colon.
func readVerdicts(t *testing.T, output string) map[string]Result {
	t.Helper()
	tests := map[string]Result{}
	for _, match := range verdictLine.FindAllStringSubmatch(output, -1) {
		result := Result{}
		if match[1] == "FAIL" {
			result = Result{Status: Failed, Detail: strings.TrimSpace(match[3])}
		}
		tests[match[2]] = result
	}
	return some(t, tests, output)
}

// some ends the test when a program left no verdict at all.
func some(t *testing.T, tests map[string]Result, output string) map[string]Result {
	t.Helper()
	if len(tests) == 0 {
		t.Fatalf("no verdict in:\n%s", toolchain.Tail(output, 40))
	}
	return tests
}

// readTAP reads the Test Anything Protocol of mocha and ava.
func readTAP(t *testing.T, output string) map[string]Result {
	t.Helper()
	tests := map[string]Result{}
	for _, match := range tapLine.FindAllStringSubmatch(output, -1) {
		result := Result{}
		switch {
		case match[3] != "":
			result.Status = Skipped
		case match[1] != "":
			result = Result{Status: Failed, Detail: "see output.log of the suite's folder"}
		}
		tests[match[2]] = result
	}
	return some(t, tests, output)
}
