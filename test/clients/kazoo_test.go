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
	"sync"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestKazoo(t *testing.T) {
	takeTurn(t)
	toolchain.Need(t, "python3", "java", "mvn")
	venv := kazooVenv(t)
	compare(t, suite{
		name: "kazoo",
		run: func(t *testing.T, g target, names []string) map[string]Result {
			return runKazoo(t, g, venv, 1, names)
		},
		ensemble: func(t *testing.T, g target, names []string) map[string]Result {
			return runKazoo(t, g, venv, 3, names)
		},
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

// kazooNeed knows the tests that wait by the suite's own names.
func kazooNeed(test string) (need string, waits bool) {
	switch {
	case strings.Contains(test, "SASL"):
		return NeedsSASL, true
	case strings.Contains(test, "TestSSL"):
		return NeedsTLS, true
	}
	return "", false
}

// kazooGreen selects, in pytest's words, the tests of kazoo's handlers for
// green threads. They take as long as a third of the others and run beside them.
const kazooGreen = "(gevent or eventlet)"

// kazooWaits selects what kazooNeed names. pytest matches without regard to
// case: "SSL" alone would also take the tests of client options that need no
// server with TLS.
const kazooWaits = "(SASL or TestSSL)"

// runKazoo runs the suite, or the named tests.
func runKazoo(t *testing.T, g target, venv string, servers int, names []string) map[string]Result {
	t.Helper()
	launcher, env := standin(t, g)
	env = append(env, "PATH="+launcher+string(os.PathListSeparator)+os.Getenv("PATH"))
	if names != nil {
		return pytestKazoo(t, g, venv, env, fmt.Sprintf("again-%d", servers), servers, strings.Join(pytestNames(names), " or "))
	}
	var tests, green map[string]Result
	var both sync.WaitGroup
	both.Go(func() {
		tests = pytestKazoo(t, g, venv, env, "threads", servers, "not "+kazooWaits+" and not "+kazooGreen)
	})
	both.Go(func() { green = pytestKazoo(t, g, venv, env, "green", servers, "not "+kazooWaits+" and "+kazooGreen) })
	both.Wait()
	if tests == nil || green == nil {
		t.FailNow()
	}
	merge(tests, green)
	collected := toolchain.Run(t, g.folder, []string{"ZOOKEEPER_VERSION=" + peer.ApacheVersion},
		filepath.Join(venv, "bin", "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
		"--pyargs", "kazoo.tests", "--co", "-k", kazooWaits)
	for _, test := range collectedTests(collected) {
		if need, waits := kazooNeed(test); waits {
			tests[test] = Result{Status: Waiting, Detail: need}
		}
	}
	return tests
}

// pytestKazoo runs the tests that an expression selects. kazoo starts java
// itself and finds the stand-in first on PATH. Without verdicts it marks the
// test failed and returns nil.
func pytestKazoo(t *testing.T, g target, venv string, env []string, label string, servers int, selection string) map[string]Result {
	verdicts := filepath.Join(g.folder, label+".xml")
	cmd := exec.Command(filepath.Join(venv, "bin", "python"), "-m", "pytest", "-q", "--timeout", "120",
		"-p", "no:cacheprovider", "--pyargs", "kazoo.tests", "--junitxml", verdicts, "-k", selection)
	cmd.Dir = g.folder
	cmd.Env = append(withoutCI(), env...)
	cmd.Env = append(cmd.Env,
		"TMPDIR="+g.folder,
		"ZOOKEEPER_VERSION="+peer.ApacheVersion,
		"ZOOKEEPER_CLASSPATH=the stand-in knows",
		fmt.Sprintf("ZOOKEEPER_CLUSTER_SIZE=%d", servers),
		fmt.Sprintf("ZOOKEEPER_PORT_OFFSET=%d", kazooPorts(t, servers)))
	out, runErr := cmd.CombinedOutput()
	os.WriteFile(verdicts+".log", out, 0o644)
	tests, err := readJUnit(verdicts)
	if err != nil {
		t.Errorf("kazoo left no verdicts: %v, %v\n%s", runErr, err, toolchain.Tail(string(out), 40))
		return nil
	}
	return tests
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

// kazooBases are the port ranges given out in this process.
var kazooBases struct {
	sync.Mutex
	given map[int]bool // guarded by the mutex
}

// kazooPorts finds a base such that kazoo's five ports for each server, ten
// apart, are free. Another process may take one before kazoo does; then the
// tests of a class fail, and their second try has other ports.
func kazooPorts(t *testing.T, servers int) int {
	kazooBases.Lock()
	defer kazooBases.Unlock()
	if kazooBases.given == nil {
		kazooBases.given = map[int]bool{}
	}
	for range 1000 {
		base := 12000 + 100*rand.IntN(180)
		if !kazooBases.given[base] && portsFree(base, 10*servers) {
			kazooBases.given[base] = true
			return base
		}
	}
	t.Error("no free range of ports")
	return 0
}

func portsFree(base, n int) bool {
	for port := base; port < base+n; port++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		listener.Close()
	}
	return true
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
