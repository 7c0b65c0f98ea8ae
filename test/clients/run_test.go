package clients

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// only runs the suites on one server, without a comparison: for looking at a
// suite, not for a verdict.
var only = flag.String("only", "", "run on this server alone (apache, zooraft or zooraft+bolt) and compare nothing")

var (
	reportsMu sync.Mutex
	reports   []*Report
)

// TestMain prints the table of all suites and keeps it, with the list of the
// suites that lacked a program, as build/results/clients.txt: go test shows
// nothing of a package that passes.
func TestMain(m *testing.M) {
	flag.Parse()
	// The suites mostly wait, so more of them may run than there are processors.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	var table bytes.Buffer
	if len(reports) > 0 {
		writeTable(&table, reports)
	}
	toolchain.PrintSkipped(&table)
	os.Stdout.Write(table.Bytes())
	dir := filepath.Join(toolchain.Root(), "build", "results")
	if err := os.MkdirAll(dir, 0o755); err == nil {
		err = os.WriteFile(filepath.Join(dir, "clients.txt"), table.Bytes(), 0o644)
		if err != nil {
			code = 1
		}
	}
	os.Exit(code)
}

// inTurn is held by the suite whose turn it is. Curator's takes as long as all
// others together and runs beside them.
var inTurn sync.Mutex

// takeTurn makes the calling test wait for its turn, and hold it until its end.
func takeTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	inTurn.Lock()
	t.Cleanup(inTurn.Unlock)
}

// target is a server under test, for suites that start it in their own way.
type target struct {
	// server is apache or zooraft, and store, of zooraft's, its log store.
	server, store string
	// folder is the suite's own for this target, emptied before the run.
	folder string
}

// targets are compared with the first of them. zooraft runs with each of its
// log stores.
var targets = []target{{server: "apache"}, {server: "zooraft", store: "wal"}, {server: "zooraft", store: "bolt"}}

// label names the target in reports.
func (g target) label() string {
	if g.store == "bolt" {
		return g.server + "+bolt"
	}
	return g.server
}

// in is the target with the suite's folder.
func (g target) in(s suite) target {
	g.folder = filepath.Join(toolchain.Root(), "build", "run", "clients", s.name+"-"+g.label())
	return g
}

// start starts the target as a process of the test.
func (g target) start(t testing.TB, options peer.Options) *peer.Server {
	t.Helper()
	if g.server == "apache" {
		return peer.StartApache(t, options)
	}
	config := map[string]string{"raftLogStore": g.store}
	maps.Copy(config, options.Config)
	options.Config = config
	return peer.StartZooraft(t, options)
}

// suite is one client's tests. run runs the named tests, or all when names is
// nil, and returns a result for each.
type suite struct {
	name string
	run  func(t *testing.T, g target, names []string) map[string]Result
	// ensemble, when set, runs the named tests on three servers, for a suite
	// whose run starts one and which does not mark the tests that need more.
	ensemble func(t *testing.T, g target, names []string) map[string]Result
	// verdict, when set, judges a target's results after all have run, for a
	// suite whose only verdict is that the servers' texts are equal.
	verdict func(label string, ours map[string]Result)
	// races, when set, matches tests whose own threads race, so that they fail
	// on a right server too. They get raceTries more.
	races func(name string) bool
}

// compare runs the suite on all targets at the same time and fails the test for
// each difference.
func compare(t *testing.T, s suite) {
	t.Helper()
	var chosen []target
	for _, g := range targets {
		if *only == "" || *only == g.label() {
			chosen = append(chosen, g)
		}
	}
	got := map[string][]*Report{}
	var mu sync.Mutex
	t.Run("run", func(t *testing.T) {
		for _, g := range chosen {
			t.Run(g.label(), func(t *testing.T) {
				t.Parallel()
				report := runOn(t, s, g)
				mu.Lock()
				defer mu.Unlock()
				got[g.label()] = report
			})
		}
	})
	for _, g := range chosen {
		if got[g.label()] == nil {
			t.Fatalf("%s did not run to its end on %s", s.name, g.label())
		}
	}
	reportsMu.Lock()
	for _, of := range got {
		reports = append(reports, of...)
	}
	reportsMu.Unlock()
	if *only != "" {
		for _, report := range got[*only] {
			for _, name := range report.names(Failed) {
				t.Logf("%s: %s", name, report.Tests[name].Detail)
			}
		}
		return
	}
	apache := got[targets[0].label()]
	for _, g := range targets[1:] {
		ours := got[g.label()]
		if s.verdict != nil {
			secondLook(t, s, apache[0], ours[0], g)
		}
		alsoOnApache(t, s, apache[0], ours[0], g)
		for i := range apache {
			if i > 0 { // what failed on one real server may pass on one of ours
				merge(ours[i].Tests, passing(ours[0], apache[i]))
			}
			for _, difference := range differences(apache[i], ours[i]) {
				t.Errorf("%s: %s", apache[i].Suite, difference)
			}
		}
	}
}

// alsoOnApache gives the tests that failed on ours, but not on the real server, to
// the real server again. What fails there too, on some try, races with itself:
// its failures say nothing of a server, and it gets raceTries more on ours.
func alsoOnApache(t *testing.T, s suite, apache, ours *Report, g target) {
	t.Helper()
	failed := slices.DeleteFunc(ours.names(Failed), func(name string) bool {
		there, ran := apache.Tests[name]
		return !ran || there.Status != Passed
	})
	if len(failed) == 0 || len(failed) > mayRace {
		return
	}
	racing := map[string]bool{}
	for range maxTries {
		for name, there := range s.run(t, targets[0].in(s), failed) {
			racing[name] = racing[name] || there.Status == Failed
		}
	}
	for range raceTries {
		again(t, ours, g.in(s), s.run, func(name string) bool { return racing[name] })
	}
}

// passing are the results of the tests in named that passed.
func passing(report, named *Report) map[string]Result {
	passed := map[string]Result{}
	for name := range named.Tests {
		if result, ran := report.Tests[name]; ran && result.Status == Passed {
			passed[name] = result
		}
	}
	return passed
}

// secondLook asks for verdicts on a target, and for the failed ones again after
// it and the real server have run those once more.
func secondLook(t *testing.T, s suite, apache, ours *Report, g target) {
	t.Helper()
	s.verdict(g.label(), ours.Tests)
	failed := ours.names(Failed)
	if len(failed) == 0 {
		return
	}
	for report, on := range map[*Report]target{apache: targets[0], ours: g} {
		on.folder = t.TempDir()
		again := s.run(t, on, failed)
		for _, name := range failed {
			if _, ran := again[name]; ran {
				report.Tests[name] = again[name]
			}
		}
	}
	s.verdict(g.label(), ours.Tests)
	for _, name := range failed {
		result := ours.Tests[name]
		result.SecondTry = true
		ours.Tests[name] = result
	}
}

// maxTries is how often a failing test is run on one target before it counts as
// failed. Curator's tests, and checks that rest on its caches, fail now and then
// on the real server too: one was seen to fail in one of two runs there. The
// table says how many passed only at a later try.
const maxTries = 4

// raceTries is how often a test that races with itself is run once more. One that
// is lost every other time fails all its tries once in a million runs; one that
// fails for a reason fails them all.
const raceTries = 16

// mayRace is how many tests may be found to race in one run: when more fail, the
// reason is another, and to try them all again takes long.
const mayRace = 5

// runOn runs the suite on one target, and again what failed. With a suite that
// has tests for several servers among its others, what fails on one server is then
// run on three, and has a report of its own when it passes there.
func runOn(t *testing.T, s suite, g target) []*Report {
	t.Helper()
	g = g.in(s)
	if err := os.RemoveAll(g.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(g.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	alone := &Report{Suite: s.name, Server: g.label(), Tests: s.run(t, g, nil)}
	var ensemble *Report
	for range maxTries - 1 {
		again(t, alone, g, s.run, all)
	}
	for range raceTries {
		again(t, alone, g, s.run, s.races)
	}
	if s.ensemble != nil {
		ensemble = onThree(t, s, g, alone)
	}
	alone.Elapsed = time.Since(begin)
	if ensemble == nil {
		return []*Report{alone}
	}
	alone.Elapsed -= ensemble.Elapsed
	return []*Report{alone, ensemble}
}

// all matches every test.
func all(string) bool { return true }

// again runs once more what failed and matches.
func again(t *testing.T, report *Report, g target, run func(*testing.T, target, []string) map[string]Result, which func(name string) bool) {
	t.Helper()
	failed := slices.DeleteFunc(report.names(Failed), func(name string) bool { return which == nil || !which(name) })
	if len(failed) == 0 {
		return
	}
	for name, later := range run(t, g, failed) {
		if first, known := report.Tests[name]; known && first.Status == Failed {
			later.SecondTry = true
			report.Tests[name] = later
		}
	}
}

// onThree runs on three servers what failed on one, and moves what passes into
// a report of its own.
func onThree(t *testing.T, s suite, g target, alone *Report) *Report {
	t.Helper()
	begin := time.Now()
	ensemble := &Report{Suite: s.name + ", 3 servers", Server: g.label(), Tests: map[string]Result{}}
	if failed := alone.names(Failed); len(failed) > 0 {
		ensemble.Tests = onlyNamed(s.ensemble(t, g, failed), failed)
		for range maxTries - 1 {
			again(t, ensemble, g, s.ensemble, all)
		}
	}
	for name, result := range ensemble.Tests {
		if result.Status == Passed {
			delete(alone.Tests, name)
		} else {
			delete(ensemble.Tests, name)
		}
	}
	ensemble.Elapsed = time.Since(begin)
	return ensemble
}

// quietLogback keeps Java programs from logging at debug level, which is
// logback's default.
const quietLogback = `<configuration>
  <appender name="ERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{ISO8601} %p %t %c: %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="ERR"/></root>
</configuration>
`

// standin builds the stand-in launcher and returns the folder that holds it
// under the names java and zkServer.sh, with the environment it reads.
func standin(t *testing.T, g target) (folder string, env []string) {
	t.Helper()
	folder = toolchain.Build(t, "run", "standin-"+filepath.Base(g.folder))
	toolchain.Run(t, toolchain.Root(), nil, "go", "build", "-o", filepath.Join(folder, "java"), "./test/clients/standin")
	os.Remove(filepath.Join(folder, "zkServer.sh"))
	if err := os.Symlink("java", filepath.Join(folder, "zkServer.sh")); err != nil {
		t.Fatal(err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		t.Fatal(err)
	}
	logback := filepath.Join(folder, "logback.xml")
	if err := os.WriteFile(logback, []byte(quietLogback), 0o644); err != nil {
		t.Fatal(err)
	}
	env = []string{
		"STANDIN_LOGBACK=" + logback,
		"STANDIN_SERVER=" + g.server,
		"STANDIN_JAVA=" + java,
		"STANDIN_CLASSPATH=" + peer.ApacheClasspath(t),
	}
	if g.server == "zooraft" {
		env = append(env, "STANDIN_ZOORAFT="+peer.ZooraftBinary(t, false), "STANDIN_LOG_STORE="+g.store)
	}
	return folder, env
}
