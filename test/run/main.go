// Command run runs everything that proves zooraft: vet, staticcheck, the rooms
// under the race detector, every suite below test, and the check that each
// demand in test/cases.md has tests that ran. It prints the time of each part
// and, at the end, every suite that was skipped for want of a program.
//
//	go run ./test/run                 everything
//	go run ./test/run -only rooms     one part; -list names them
//
// Go alone is enough to run it. With CI=true in the environment nothing may be
// skipped but what the machine denies and this process has no right to.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// part is one step of the run.
type part struct {
	name string
	run  func(*result)
}

// result is what a part came to.
type result struct {
	took     time.Duration // by the clock
	cpu      time.Duration // of all processors, the programs that it started included
	passed   int
	failures []string // one line each
	skips    []string // what was skipped, and for want of what
	tests    map[string]string
	log      strings.Builder // what to print when the part is done
}

// say adds to what is printed when the part is done.
func (r *result) say(text string) { r.log.WriteString(text) }

// spent adds the processor time of a program that has ended.
func (r *result) spent(p *os.ProcessState) {
	if p != nil {
		r.cpu += p.UserTime() + p.SystemTime()
	}
}

func (r *result) fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *result) skip(format string, args ...any) {
	r.skips = append(r.skips, fmt.Sprintf(format, args...))
}

func main() {
	only := flag.String("only", "", "comma-separated parts to run; empty runs all")
	lanes := flag.Int("lanes", min(2, runtime.NumCPU()), "parts that run at the same time")
	list := flag.Bool("list", false, "list the parts and exit")
	flag.Parse()
	if err := os.Chdir(toolchain.Root()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	all, err := parts()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	chosen, err := choose(all, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if *list {
		for _, p := range chosen {
			fmt.Println(p.name)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(runParts(ctx, chosen, max(1, *lanes), len(chosen) == len(all), os.Getenv("CI") == "true"))
}

// choose picks parts by name.
func choose(all []part, only string) ([]part, error) {
	if only == "" {
		return all, nil
	}
	var chosen []part
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no part is named %q; -list names them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// parts finds the suites in the repository, so that a new one cannot be
// forgotten here.
func parts() ([]part, error) {
	all := []part{
		{"vet", func(r *result) { command(r, "go", "vet", "./...") }},
		{"rooms", rooms},
		{"staticcheck", staticcheck},
	}
	entries, err := os.ReadDir("test")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !hasTests(filepath.Join("test", entry.Name())) {
			continue
		}
		all = append(all, part{entry.Name(), func(r *result) { suite(r, entry.Name()) }})
	}
	for _, folder := range bothStores {
		all = append(all, part{folder + "+bolt", func(r *result) { suite(r, folder, peer.LogStoreVariable+"=bolt") }})
	}
	all = append(all, part{"cases+race", func(r *result) {
		if raceDetector(r) {
			suite(r, "cases", peer.RaceVariable+"=true")
		}
	}})
	// The longest ones first, or the last lane waits for them alone.
	slices.SortStableFunc(all, func(a, b part) int { return rank(a) - rank(b) })
	return all, nil
}

// rank orders the parts: vet before all, as nothing else works when it fails.
func rank(p part) int {
	return slices.Index([]string{"", "oracle+bolt", "oracle", "rooms", "clients", "vet"}, p.name) * -1
}

// bothStores are the suites that run a second time on the other log store.
// test/clients, test/crash and test/faults pick the stores themselves.
var bothStores = []string{"admin", "cases", "oracle", "recipes", "serve"}

// suite runs the tests of a folder below test. Its results are never taken from
// Go's cache, which does not see the programs that they build and start.
func suite(r *result, folder string, env ...string) {
	goTest(r, env, "-count=1", "-timeout=35m", "./test/"+folder+"/...")
}

func hasTests(folder string) bool {
	found := false
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		found = found || strings.HasSuffix(path, "_test.go")
		return err
	})
	return found && err == nil
}

// raceDetector tells whether the race detector works: it needs a C compiler.
func raceDetector(r *result) bool {
	_, err := exec.LookPath("gcc")
	if err != nil {
		r.skip("%sthe race detector: gcc", toolchain.SkipPrefix)
	}
	return err == nil
}

// rooms tests everything that ships, under the race detector where that works.
func rooms(r *result) {
	args := []string{"-timeout=20m"}
	if raceDetector(r) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		r.fail("go list: %v", err)
		return
	}
	for _, pkg := range strings.Fields(string(out)) {
		if !strings.HasPrefix(pkg, module+"/test/") {
			args = append(args, pkg)
		}
	}
	goTest(r, nil, args...)
	if slices.Contains(args, "-race") {
		goTest(r, nil, "-run="+unraced, "./internal/consensus")
	}
}

// unraced are the tests in files with the build tag !race, which say why.
const unraced = "^TestServersExchangeTheirAddresses$"

// staticcheckVersion is pinned so that a new check never breaks an old commit.
const staticcheckVersion = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"

func staticcheck(r *result) {
	bin, err := filepath.Abs(filepath.Join("build", "bin"))
	if err != nil {
		r.fail("%v", err)
		return
	}
	install := exec.Command("go", "install", staticcheckVersion)
	install.Env = append(os.Environ(), "GOBIN="+bin)
	out, err := install.CombinedOutput()
	r.spent(install.ProcessState)
	if err != nil {
		r.skip("%sstaticcheck: %s cannot be fetched: %v: %s", toolchain.SkipPrefix, staticcheckVersion, err, lastLine(string(out)))
		return
	}
	command(r, filepath.Join(bin, "staticcheck"), "./...")
}

func command(r *result, program string, args ...string) {
	cmd := exec.Command(program, args...)
	out, err := cmd.CombinedOutput()
	r.spent(cmd.ProcessState)
	if err != nil {
		r.say(string(out))
		r.fail("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
		return
	}
	r.passed++
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
