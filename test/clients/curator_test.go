package clients

import (
	"archive/zip"
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

const (
	// curatorWorkers is how many JVMs share Curator's classes. The tests mostly
	// wait for timeouts, so there may be more of them than cores.
	curatorWorkers = 4
	// curatorPatience is how long a class may take before its JVM counts as
	// stuck. Curator's longest, TestLeaderLatch, takes about four on a quiet machine.
	curatorPatience = 12 * time.Minute
)

// TestCurator is the suite that Curator publishes as tests jars of its client,
// framework and recipes, with our checks of what those leave out.
func TestCurator(t *testing.T) {
	t.Parallel()
	toolchain.Need(t, "java", "javac", "mvn")
	source := filepath.Join(toolchain.Root(), "test", "clients", "curator")
	jars := toolchain.ClassPath(t, filepath.Join(source, "pom.xml"))
	classes := toolchain.CompileJava(t, "curator", filepath.Join(source, "src"), jars)
	// Ours first: one class stands in front of Curator's of the same name.
	classPath := classes + string(filepath.ListSeparator) + jars
	names := curatorClasses(t, jars)
	compare(t, suite{name: "curator", races: curatorRace.MatchString, run: func(t *testing.T, g target, only []string) map[string]Result {
		if only == nil {
			return runJUnit(t, g, classPath, names)
		}
		return onlyNamed(runJUnit(t, g, classPath, classesOf(only)), only)
	}})
}

// classesOf turns tests, Class::method or Class::method#2, into what Runner
// reads: Class#method,method, or the class alone when it did not end.
func classesOf(tests []string) []string {
	methods := map[string][]string{}
	whole := map[string]bool{}
	for _, test := range tests {
		class, method, _ := strings.Cut(test, "::")
		method, _, _ = strings.Cut(method, "#")
		whole[class] = whole[class] || strings.HasPrefix(method, "(")
		methods[class] = append(methods[class], method)
	}
	var lines []string
	for class, names := range methods {
		if !whole[class] {
			class += "#" + strings.Join(names, ",")
		}
		lines = append(lines, class)
	}
	return lines
}

// testClass matches the names that Curator's own build takes for tests.
var testClass = regexp.MustCompile(`(^|/)(Test[^/$]*|[^/$]*Test)\.class$`)

// curatorClasses lists the test classes of the tests jars, and our own.
func curatorClasses(t *testing.T, jars string) []string {
	t.Helper()
	names := []string{"zooraft.CuratorChecks"}
	size := map[string]uint64{}
	for _, jar := range filepath.SplitList(jars) {
		if !strings.HasSuffix(jar, "-tests.jar") {
			continue
		}
		archive, err := zip.OpenReader(jar)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.File {
			if testClass.MatchString(file.Name) {
				name := strings.ReplaceAll(strings.TrimSuffix(file.Name, ".class"), "/", ".")
				names = append(names, name)
				size[name] = file.UncompressedSize64
			}
		}
		archive.Close()
	}
	if len(names) < 50 {
		t.Fatalf("only %d test classes in Curator's jars", len(names))
	}
	// Large classes take long more often than small ones, and a long one that
	// begins last makes the whole wait.
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(size[b], size[a]) })
	return names
}

// ownJVM matches the classes that need a JVM for themselves: this one sets
// properties that Apache's classes read when they are loaded, and changes static
// fields of theirs for good.
var ownJVM = regexp.MustCompile(`\.TestReconfiguration(#|$)`)

// curatorRace matches tests that compare in their main thread what Curator's
// event thread is about to set: the latch between them has been used up by the
// first members heard of, when these are in another order than the servers that
// the test named. The faster the answers, the closer the race: with ours one in
// seven is lost, more on a busy machine. And one that wants its main thread to use
// a client that it declared expired before the event thread replaces that client:
// in a JVM that has just begun and on a busy machine it loses every other time,
// on Apache too.
var curatorRace = regexp.MustCompile(`\.TestReconfiguration::test(Add|AddAsync|AddAndRemove|RemoveWithChroot)$` +
	`|\.TestRetryLoop::testRetryForeverWithSessionFailed$`)

// runJUnit hands the classes to a few JVMs, each of which runs one after
// another in its own process group.
func runJUnit(t *testing.T, g target, classPath string, classes []string) map[string]Result {
	t.Helper()
	zooraft := ""
	if g.server == "zooraft" {
		zooraft = peer.ZooraftBinary(t, false)
	}
	queue := make(chan string, len(classes))
	for _, class := range classes {
		queue <- class
	}
	close(queue)
	var mu sync.Mutex
	tests := map[string]Result{}
	var times strings.Builder
	var workers sync.WaitGroup
	for i := range curatorWorkers {
		workers.Go(func() {
			var w *junitWorker
			for class := range queue {
				own := ownJVM.MatchString(class)
				if w != nil && own {
					w.stop()
					w = nil
				}
				if w == nil {
					var err error
					if w, err = startJUnit(g, classPath, zooraft, i); err != nil {
						t.Errorf("start a JVM: %v", err)
						return
					}
				}
				begin := time.Now()
				results, err := w.run(class)
				mu.Lock()
				merge(tests, results)
				fmt.Fprintf(&times, "%7.1f s %.200s\n", time.Since(begin).Seconds(), class)
				mu.Unlock()
				if err != nil {
					t.Logf("%s on %s: %v", class, g.label(), err)
				}
				if err != nil || own {
					w.stop()
					w = nil
				}
			}
			if w != nil {
				w.stop()
			}
		})
	}
	workers.Wait()
	os.WriteFile(filepath.Join(g.folder, "times.txt"), []byte(times.String()), 0o644)
	return tests
}

// junitWorker is one JVM that runs classes.
type junitWorker struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed at the end of its output
}

func startJUnit(g target, classPath, zooraft string, number int) (*junitWorker, error) {
	folder := filepath.Join(g.folder, fmt.Sprint("jvm", number))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	logback := filepath.Join(folder, "logback.xml")
	if err := os.WriteFile(logback, []byte(strings.Replace(quietLogback, "WARN", "OFF", 1)), 0o644); err != nil {
		return nil, err
	}
	args := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx512m",
		"-Djava.io.tmpdir=" + folder, "-Dlogback.configurationFile=" + logback,
		// Curator's own build runs its tests with these.
		"-Dzookeeper.extendedTypesEnabled=true"}
	if zooraft != "" {
		args = append(args, "-Dzooraft.program="+zooraft, "-Dzookeeper.raftLogStore="+g.store)
	}
	cmd := exec.Command("java", append(args, "-cp", classPath, "zooraft.Runner")...)
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.OpenFile(filepath.Join(folder, "stderr.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &junitWorker{cmd: cmd, stdin: stdin, lines: make(chan string)}
	go func() {
		defer close(w.lines)
		scanner := bufio.NewScanner(stdout)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			w.lines <- scanner.Text()
		}
	}()
	return w, nil
}

// run runs one class, or the methods that the line names. An error says that the JVM must be replaced; the class
// then has a failed result of its own.
func (w *junitWorker) run(line string) (map[string]Result, error) {
	class, _, _ := strings.Cut(line, "#")
	tests := map[string]Result{}
	broken := func(reason string) (map[string]Result, error) {
		tests[class+"::(the class)"] = Result{Status: Failed, Detail: reason}
		return tests, fmt.Errorf("%s", reason)
	}
	if _, err := io.WriteString(w.stdin, line+"\n"); err != nil {
		return broken(err.Error())
	}
	late := time.After(curatorPatience)
	for {
		select {
		case line, open := <-w.lines:
			if !open {
				return broken("the JVM ended")
			}
			if line == "end" {
				return tests, nil
			}
			fields := strings.SplitN(line, "\t", 4)
			if len(fields) == 4 {
				tests[fields[1]+"::"+fields[2]] = junitResult(fields[0], fields[3])
			}
		case <-late:
			return broken(fmt.Sprintf("no end after %v", curatorPatience))
		}
	}
}

// junitResult turns a status of Runner into a result.
func junitResult(status, detail string) Result {
	switch status {
	case "passed":
		return Result{}
	case "waiting":
		return Result{Status: Waiting, Detail: strings.TrimPrefix(detail, "waits for ")}
	case "skipped":
		return Result{Status: Skipped, Detail: detail}
	}
	return Result{Status: Failed, Detail: detail}
}

// stop ends the JVM and every server that it left running.
func (w *junitWorker) stop() {
	w.stdin.Close()
	ended := make(chan struct{})
	go func() {
		for range w.lines {
		}
		w.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
	}
	syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL)
	<-ended
}
