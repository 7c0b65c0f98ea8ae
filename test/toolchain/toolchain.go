// Package toolchain owns how tests reach programs that are not Go: whether a
// JDK, Maven, Node, Python or a C compiler is there, and where what they fetch
// is kept (the folder build of the repository, never the system). It may not
// know ZooKeeper or any suite. It is the only place of the tests that skips.
package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// SkipPrefix starts the message of every skip for a missing program. The run
// driver lists the lines that contain it.
const SkipPrefix = "waiting for toolchain: "

// DenialPrefix starts the message of every skip for something that this machine
// denies, whatever is installed. The run driver lists these lines, too, and lets
// them pass in CI.
const DenialPrefix = "denied by this machine: "

// Skipped suites of this process, by test name, with a prefix and what they lack.
var (
	skippedMu sync.Mutex
	skipped   = map[string][2]string{}
)

// Need skips the calling suite if one of the named programs is not on PATH and
// records it for the list that Main prints. With CI=true in the environment a
// missing program fails the test instead: CI never skips a client.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s%s (CI=true allows no skip)", SkipPrefix, strings.Join(missing, ", "))
	}
	skip(t, SkipPrefix, strings.Join(missing, ", "))
}

// Denied skips the calling test because this machine denies it what is named,
// such as network namespaces. Nothing that could be installed helps, so a CI
// without the right may skip as well; able says that this process has it: then
// the test fails with CI=true.
func Denied(t testing.TB, what string, able bool) {
	t.Helper()
	if able && os.Getenv("CI") == "true" {
		t.Fatalf("%s%s (CI=true allows no skip of what this process has the right to)", DenialPrefix, what)
	}
	skip(t, DenialPrefix, what)
}

func skip(t testing.TB, prefix, what string) {
	t.Helper()
	skippedMu.Lock()
	skipped[t.Name()] = [2]string{prefix, what}
	skippedMu.Unlock()
	t.Skip(prefix + what)
}

// Capability is one of Linux's, by its number in capabilities(7).
type Capability uint

// Those that tests need; root has them unless a container takes them away.
const (
	NetAdmin  Capability = 12
	SysChroot Capability = 18
	SysAdmin  Capability = 21
)

// Holds tells whether this process has the capabilities.
func Holds(capabilities ...Capability) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(status), "CapEff:")
	var held uint64
	if _, err := fmt.Sscanf(rest, "%x", &held); err != nil || !found {
		return false
	}
	for _, c := range capabilities {
		if held>>c&1 == 0 {
			return false
		}
	}
	return true
}

// Main runs a package's tests, then prints which suites were skipped and for
// want of which programs, and returns the exit code. Call it from TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	PrintSkipped(os.Stdout)
	return code
}

// PrintSkipped writes one line for each suite that was skipped, or nothing.
func PrintSkipped(w io.Writer) {
	skippedMu.Lock()
	defer skippedMu.Unlock()
	var names []string
	for name := range skipped {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(w, "%s%s: %s\n", skipped[name][0], name, skipped[name][1])
	}
}

// Root is the repository's top folder.
func Root() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("toolchain: no caller information in this binary")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Build returns the folder build/elem... of the repository and makes it.
func Build(t testing.TB, elem ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{Root(), "build"}, elem...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make build folder: %v", err)
	}
	return dir
}

// Run runs a program in dir with env added to the environment and returns its
// standard output and standard error together. A failure ends the test with the
// last of what the program said.
func Run(t testing.TB, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, Tail(string(out), 60))
	}
	return string(out)
}

// Output runs a program and returns what it printed on both streams, whatever
// its exit code.
func Output(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", program, err)
	}
	return string(out)
}

// Tail returns the last n lines of text.
func Tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// Once makes sure that the folder dir holds what fill makes from the files
// named in inputs, and remembers it by a hash of their contents, so that a
// second run and a second package find it done. Test packages run as separate
// processes; a file lock keeps two from filling one folder. The folder is
// emptied before fill, so a run cut short leaves nothing behind.
func Once(t testing.TB, dir string, inputs []string, fill func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatalf("make build folder: %v", err)
	}
	defer Lock(t, dir+".lock")()
	hash := sha256.New()
	for _, input := range inputs {
		content, err := os.ReadFile(input)
		if err != nil {
			t.Fatalf("read an input of %s: %v", dir, err)
		}
		fmt.Fprintf(hash, "%s %d\n", filepath.Base(input), len(content))
		hash.Write(content)
	}
	want := hex.EncodeToString(hash.Sum(nil))
	stamp := dir + ".stamp"
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatalf("empty %s: %v", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make %s: %v", dir, err)
	}
	fill()
	if err := os.WriteFile(stamp, []byte(want), 0o644); err != nil {
		t.Fatalf("write %s: %v", stamp, err)
	}
}

// Lock takes an exclusive lock on the file path, waiting for other processes,
// and returns what gives it back.
func Lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatalf("open lock: %v", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("lock %s: %v", path, err)
	}
	return func() { file.Close() }
}
