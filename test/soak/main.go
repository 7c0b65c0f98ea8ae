// Command soak runs for as long as it is told what shows itself only sometimes:
// the rooms' tests in another order (rooms), a snapshot of a gigabyte (snapshot), a
// server that lags behind a large tree over slow links (lagging), the cases that have
// a larger form (cases), clients through failovers (clients), writes of every length
// around the code's bounds (lengths), random faults with three, five and seven servers
// by turns, on both log stores (faults), and full load (load). It prints the seed of
// each part as it begins, and a line of results as a table's row when it ends, which
// tells the number of servers. The first failure ends it.
//
//	go run ./test/soak -time 1h
//	go run ./test/soak -time 10m -only lengths,faults
//
// FAULTS_SEED repeats the random faults of a run, and the rooms' order.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/test/toolchain"
)

const (
	// round is how long each random run's faults last; its checks take another
	// half a minute.
	round, checks = 150 * time.Second, 30 * time.Second
	// whole is the shortest time that leaves room for the parts whose length
	// cannot be chosen.
	whole = 30 * time.Minute
	// loadShare is the part of the time that is left for the full load.
	loadShare = 0.25
)

// part is a kind of test.
type part struct {
	name string
	run  func(s *soak, until time.Time) error
}

var parts = []part{
	{"rooms", (*soak).rooms},
	{"snapshot", (*soak).snapshot},
	{"lagging", (*soak).lagging},
	{"cases", (*soak).cases},
	{"clients", (*soak).clients},
	{"lengths", (*soak).lengths},
	{"faults", (*soak).faults},
	{"load", (*soak).load},
}

// names are those of all parts.
func names() (all []string) {
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// soak is one run.
type soak struct {
	ctx  context.Context
	seed uint64
	log  io.Writer // everything that the tests print
}

func main() {
	length := flag.Duration("time", time.Hour, "how long all of it takes")
	only := flag.String("only", "", "comma-separated parts to run: "+strings.Join(names(), ", ")+"; empty runs all")
	flag.Parse()
	if err := run(*length, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(length time.Duration, only string) error {
	if err := os.Chdir(toolchain.Root()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := os.MkdirAll("build", 0o755); err != nil {
		return err
	}
	log, err := os.Create("build/soak.log")
	if err != nil {
		return err
	}
	defer log.Close()
	s := &soak{ctx: ctx, seed: rand.Uint64N(1 << 32), log: log}
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		if s.seed, err = strconv.ParseUint(text, 10, 63); err != nil {
			return fmt.Errorf("FAULTS_SEED: %w", err)
		}
	}
	chosen := choose(only, length)
	fmt.Printf("%v of soak, repeat with FAULTS_SEED=%d; what the tests print is in build/soak.log\n", length, s.seed)
	end := time.Now().Add(length)
	for _, p := range chosen {
		until := end
		if left := time.Until(end); p.name == "faults" && slices.ContainsFunc(chosen, func(p part) bool { return p.name == "load" }) {
			until = end.Add(-time.Duration(loadShare * float64(left)))
		}
		if err := p.run(s, until); err != nil {
			return err
		}
	}
	return nil
}

// choose picks parts by name, or all for which there is time.
func choose(only string, length time.Duration) (chosen []part) {
	names := strings.Split(only, ",")
	for _, p := range parts {
		fixed := p.name != "faults" && p.name != "load"
		if only == "" && (!fixed || length >= whole) || slices.Contains(names, p.name) {
			chosen = append(chosen, p)
		} else if only == "" {
			fmt.Printf("%s: left out, there is time for it from %v on\n", p.name, whole)
		}
	}
	return chosen
}

// test runs go test and returns what it printed. A failure is shown whole.
func (s *soak) test(name string, env []string, args ...string) (string, error) {
	fmt.Printf("%s %s: %s go test %s\n", time.Now().Format(time.TimeOnly), name, strings.Join(env, " "), strings.Join(args, " "))
	begun := time.Now()
	cmd := exec.CommandContext(s.ctx, "go", append([]string{"test", "-count=1", "-timeout=3h"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, s.log)
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	if err != nil {
		fmt.Printf("%s\n%s: FAILED after %.0f s, load average %s: %s go test %s\n", out.String(), name, time.Since(begun).Seconds(), loadAverage(),
			strings.Join(env, " "), strings.Join(args, " "))
		return out.String(), fmt.Errorf("%s: %w", name, err)
	}
	return out.String(), nil
}

// row prints a result as reliability.md's tables have it.
func row(columns ...string) { fmt.Printf("| %s |\n", strings.Join(columns, " | ")) }

// loadAverage is the machine's over a minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

func (s *soak) rooms(time.Time) error {
	list, err := exec.CommandContext(s.ctx, "go", "list", "./...").Output()
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(string(list)), func(p string) bool { return strings.Contains(p, "/test/") })
	return s.simple("rooms", nil, append([]string{"-race", fmt.Sprintf("-shuffle=%d", s.seed)}, packages...)...)
}

func (s *soak) snapshot(time.Time) error {
	return s.simple("snapshot", []string{"FAULTS_SNAPSHOT_MB=1024"}, "-v", "-run=Limits", "./test/faults")
}

func (s *soak) lagging(time.Time) error {
	return s.simple("lagging", []string{"FAULTS_LAG_MB=500"}, "-v", "-run=IsSentASnapshotSlowly", "./test/faults")
}

func (s *soak) cases(time.Time) error {
	return s.simple("cases", []string{"CASES_LARGE=1"}, "-v", "-run=TestCasesThatConcern|ClocksThatAreOff|SyncThenRead", "./test/faults")
}

func (s *soak) clients(time.Time) error {
	return s.simple("clients", nil, "-v", "-run=TestThroughFailover", "./test/clients", "-failovers", "10")
}

func (s *soak) lengths(time.Time) error {
	return s.simple("lengths", nil, "-run=TestWritesOfEveryLength", "./test/crash", "-lengths.dense")
}

func (s *soak) simple(name string, env []string, args ...string) error {
	begun := time.Now()
	_, err := s.test(name, env, args...)
	if err == nil {
		row(name, fmt.Sprintf("%.0f s", time.Since(begun).Seconds()), "load average "+loadAverage(), "passed")
	}
	return err
}

// faults runs one random run after the other, each with a seed of its own.
func (s *soak) faults(until time.Time) error {
	for n := 0; ; n++ {
		length := min(round, time.Until(until)-checks)
		if length < checks {
			return nil
		}
		store, servers := []string{"wal", "bolt"}[n%2], 3+2*(n/2%3)
		seed := s.seed + uint64(n/2) // its parity picks how members change: each size has both by turns
		out, err := s.test(fmt.Sprintf("random faults, %d servers, %s, seed %d", servers, store, seed), []string{
			fmt.Sprintf("FAULTS_SEED=%d", seed), "FAULTS_STORE=" + store, fmt.Sprintf("FAULTS_SERVERS=%d", servers),
			fmt.Sprintf("FAULTS_SECONDS=%.0f", length.Seconds())}, "-v", "-run=Random", "./test/faults")
		if err != nil {
			return err
		}
		row(fmt.Sprintf("%s, %d servers, seed %d, %s s", store, servers, seed, found(out, `seed \d+, (\d+) s:`)), found(out, `(\d+) faults`),
			found(out, `(\d+) changes of the members`), found(out, `(\d+) register operations`), found(out, `(\d+) pipelined creates acknowledged`),
			loadAverage(), "every check passed")
	}
}

func (s *soak) load(until time.Time) error {
	seconds := time.Until(until).Seconds()
	if seconds < 10 {
		return nil
	}
	out, err := s.test("full load", []string{fmt.Sprintf("FAULTS_LOAD_SECONDS=%.0f", seconds)}, "-v", "-run=FullLoad", "./test/faults")
	if err == nil {
		row("full load", found(out, `(\d+ s: .* led)`), "load average "+loadAverage(), "no election")
	}
	return err
}

// found is the first group of an expression's first match, "0" if there is none.
func found(text, expression string) string {
	if match := regexp.MustCompile(expression).FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return "0"
}
