package clients

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestKazoo(t *testing.T) {
	toolchain.Need(t, "python3", "java", "mvn")
	venv := kazooVenv(t)
	compare(t, suite{
		name: "kazoo",
		run: func(t *testing.T, g target, names []string) map[string]Result {
			return runKazoo(t, g, venv, 1, names)
		},
		settle: func(t *testing.T, g target, tests map[string]Result) { settleKazoo(t, g, venv, tests) },
	})
}

// kazooVenv installs kazoo from its source distribution, with its test suite
// and what that imports, into a virtual environment of the build folder.
func kazooVenv(t *testing.T) string {
	t.Helper()
	source := filepath.Join(toolchain.Root(), "test", "clients", "kazoo")
	tools, wanted := filepath.Join(source, "build-requirements.txt"), filepath.Join(source, "requirements.txt")
	dir := filepath.Join(toolchain.Build(t, "kazoo"), "venv")
	toolchain.Once(t, dir, []string{tools, wanted}, func() {
		toolchain.Run(t, source, nil, "python3", "-m", "venv", dir)
		python := filepath.Join(dir, "bin", "python")
		toolchain.Run(t, source, nil, python, "-m", "pip", "install", "-q", "-r", tools)
		toolchain.Run(t, source, nil, python, "-m", "pip", "install", "-q", "--no-deps",
			"--no-build-isolation", "--no-binary=kazoo", "-r", wanted)
	})
	return dir
}

// kazooNeed knows the tests of SASL and of TLS by the suite's own names.
func kazooNeed(test string) (need string, waits bool) {
	switch {
	case strings.Contains(test, "SASL"):
		return NeedsSASL, true
	case strings.Contains(test, "TestSSL"):
		return NeedsTLS, true
	}
	return "", false
}

// runKazoo runs the suite through pytest. kazoo starts java itself and finds
// the stand-in first on PATH.
func runKazoo(t *testing.T, g target, venv string, servers int, names []string) map[string]Result {
	t.Helper()
	launcher, env := standin(t, g)
	verdicts := filepath.Join(g.folder, fmt.Sprintf("kazoo-%d-%d.xml", servers, len(names)))
	args := []string{"-m", "pytest", "-q", "--timeout", "120", "-p", "no:cacheprovider",
		"--pyargs", "kazoo.tests", "--junitxml", verdicts}
	if names == nil {
		// pytest matches -k without regard to case: "SSL" alone would also take
		// the tests of client options that need no server with TLS.
		args = append(args, "-k", "not SASL and not TestSSL")
	} else {
		args = append(args, "-k", strings.Join(pytestNames(names), " or "))
	}
	cmd := exec.Command(filepath.Join(venv, "bin", "python"), args...)
	cmd.Dir = g.folder
	cmd.Env = append(withoutCI(), env...)
	cmd.Env = append(cmd.Env,
		"PATH="+launcher+string(os.PathListSeparator)+os.Getenv("PATH"),
		"TMPDIR="+g.folder,
		"ZOOKEEPER_VERSION="+peer.ApacheVersion,
		"ZOOKEEPER_CLASSPATH=the stand-in knows",
		fmt.Sprintf("ZOOKEEPER_CLUSTER_SIZE=%d", servers),
		fmt.Sprintf("ZOOKEEPER_PORT_OFFSET=%d", kazooPorts(t, servers)))
	out, runErr := cmd.CombinedOutput()
	os.WriteFile(verdicts+".log", out, 0o644)
	tests, err := readJUnit(verdicts)
	if err != nil {
		t.Fatalf("kazoo left no verdicts: %v, %v\n%s", runErr, err, toolchain.Tail(string(out), 40))
	}
	if names == nil {
		collected := toolchain.Run(t, g.folder, nil, filepath.Join(venv, "bin", "python"), "-m", "pytest",
			"-q", "-p", "no:cacheprovider", "--pyargs", "kazoo.tests", "--co", "-k", "SASL or TestSSL")
		for _, test := range collectedTests(collected) {
			if need, waits := kazooNeed(test); waits {
				tests[test] = Result{Status: Waiting, Detail: need}
			}
		}
	}
	return tests
}

// settleKazoo runs what failed on one real server on three of them: what then
// passes needs several servers and waits. The suite itself does not mark these.
func settleKazoo(t *testing.T, g target, venv string, tests map[string]Result) {
	t.Helper()
	report := Report{Tests: tests}
	failed := report.names(Failed)
	if len(failed) == 0 {
		return
	}
	for name, result := range runKazoo(t, g, venv, 3, failed) {
		if _, known := tests[name]; known && result.Status == Passed {
			tests[name] = Result{Status: Waiting, Detail: NeedsServers}
		}
	}
}

// withoutCI is the environment less CI, on which kazoo checks its own build.
func withoutCI() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CI=") {
			env = append(env, variable)
		}
	}
	return env
}

// kazooPorts finds a base such that kazoo's five ports for each server, ten
// apart, are free.
func kazooPorts(t *testing.T, servers int) int {
	t.Helper()
	for range 100 {
		base := 12000 + 100*rand.IntN(180)
		free := true
		for port := base; port < base+10*servers; port++ {
			listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				free = false
				break
			}
			listener.Close()
		}
		if free {
			return base
		}
	}
	t.Fatal("no free range of ports")
	return 0
}

// pytestNames turns names as JUnit gives them, module.Class::test, into
// expressions for pytest's -k.
func pytestNames(names []string) []string {
	var expressions []string
	for _, name := range names {
		class, test, _ := strings.Cut(name, "::")
		parts := strings.Split(class, ".")
		expressions = append(expressions, fmt.Sprintf("(%s and %s)", parts[len(parts)-1], test))
	}
	return expressions
}

// collectedTest is a line of pytest --co -q.
var collectedTest = regexp.MustCompile(`(?m)^\S*?(test_\w+)\.py::(\w+)::(\S+)$`)

func collectedTests(output string) []string {
	var tests []string
	for _, match := range collectedTest.FindAllStringSubmatch(output, -1) {
		tests = append(tests, match[1]+"."+match[2]+"::"+match[3])
	}
	return tests
}

// readJUnit reads the verdicts that pytest and JUnit write as XML.
func readJUnit(path string) (map[string]Result, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	type verdict struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var file struct {
		Cases []struct {
			Class   string   `xml:"classname,attr"`
			Name    string   `xml:"name,attr"`
			Failure *verdict `xml:"failure"`
			Error   *verdict `xml:"error"`
			Skipped *verdict `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	tests := map[string]Result{}
	for _, c := range file.Cases {
		result := Result{}
		switch {
		case c.Failure != nil:
			result = Result{Status: Failed, Detail: toolchain.Tail(c.Failure.Message+"\n"+c.Failure.Text, 14)}
		case c.Error != nil:
			result = Result{Status: Failed, Detail: toolchain.Tail(c.Error.Message+"\n"+c.Error.Text, 14)}
		case c.Skipped != nil:
			result = Result{Status: Skipped, Detail: c.Skipped.Message}
		}
		tests[c.Class+"::"+c.Name] = result
	}
	return tests, nil
}
