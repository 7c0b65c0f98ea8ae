package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zooraft/zooraft/test/ledger"
	"github.com/zooraft/zooraft/test/toolchain"
)

// runParts runs the parts, so many at the same time as there are lanes, prints
// the table, and returns the exit code: 0 when nothing failed and, in CI,
// nothing was skipped but what the machine denies. What a part has to say is printed when it is done. When
// ctx is done no further part begins, and the table says which did not run.
func runParts(ctx context.Context, chosen []part, lanes int, whole, ci bool) int {
	results := make([]*result, len(chosen))
	next := make(chan int)
	var printing sync.Mutex // also guards results and tests
	tests := map[string]string{}
	var running sync.WaitGroup
	for range min(lanes, len(chosen)) {
		running.Go(func() {
			for i := range next {
				r := &result{}
				fmt.Printf("== %s begins\n", chosen[i].name)
				begun := time.Now()
				chosen[i].run(r)
				r.took = time.Since(begun)
				printing.Lock()
				results[i] = r
				merge(tests, r.tests)
				fmt.Print(r.log.String())
				fmt.Printf("== %s: %d passed, %d failed, %d skipped in %s\n",
					chosen[i].name, r.passed, len(r.failures), len(r.skips), seconds(r.took))
				printing.Unlock()
			}
		})
	}
	begun := time.Now()
	for i := range chosen {
		if ctx.Err() != nil {
			break
		}
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	took := time.Since(begun)
	for i, r := range results {
		if r == nil {
			results[i] = &result{}
			results[i].fail("did not run: interrupted")
		}
	}
	if whole {
		r := &result{}
		checkCases(r, tests)
		chosen = append(slices.Clone(chosen), part{name: "cases.md"})
		results = append(results, r)
	}
	return report(chosen, results, took, ci)
}

// merge adds what a part's tests came to. A suite may run several times: what
// failed once has failed.
func merge(all, part map[string]string) {
	for name, how := range part {
		if all[name] != "fail" {
			all[name] = how
		}
	}
}

// checkCases compares test/cases.md with what ran.
func checkCases(r *result, ran map[string]string) {
	page, err := os.ReadFile(filepath.Join("test", "cases.md"))
	if err != nil {
		r.fail("%v", err)
		return
	}
	rows, err := ledger.Parse(page)
	if err != nil {
		r.fail("%v", err)
		return
	}
	for _, row := range rows {
		for _, name := range row.Tests {
			// The test tool writes blanks in a sub-test's name as underscores.
			switch ran[strings.ReplaceAll(name.String(), " ", "_")] {
			case "pass":
				r.passed++
			case "fail":
				r.fail("%s: %s failed", row.ID, name)
			case "skip":
				r.skip("%s: %s was skipped", row.ID, name)
			case denied:
				r.skip("%s%s: %s was skipped", toolchain.DenialPrefix, row.ID, name)
			default:
				r.fail("%s: %s did not run", row.ID, name)
			}
		}
	}
}

func report(chosen []part, results []*result, took time.Duration, ci bool) int {
	fmt.Printf("\n%-14s %9s %9s %8s %8s %8s\n", "part", "time", "cpu", "passed", "failed", "skipped")
	var cpu time.Duration
	passed, failed, skipped, unexcused := 0, 0, 0, 0
	for i, p := range chosen {
		r := results[i]
		fmt.Printf("%-14s %9s %9s %8d %8d %8d\n", p.name, seconds(r.took), seconds(r.cpu), r.passed, len(r.failures), len(r.skips))
		cpu += r.cpu
		if p.run != nil { // the rows of cases.md name tests that are counted already
			passed += r.passed
		}
		failed += len(r.failures)
		skipped += len(r.skips)
	}
	fmt.Printf("%-14s %9s %9s\n", "all", seconds(took), seconds(cpu))
	for i, p := range chosen {
		for _, line := range results[i].failures {
			fmt.Printf("FAILED   %s: %s\n", p.name, line)
		}
	}
	for i, p := range chosen {
		for _, line := range results[i].skips {
			fmt.Printf("SKIPPED  %s: %s\n", p.name, line)
			if !strings.Contains(line, toolchain.DenialPrefix) {
				unexcused++
			}
		}
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	switch {
	case failed > 0:
		return 1
	case unexcused > 0 && ci:
		fmt.Println("CI=true allows no skip but for what the machine denies.")
		return 1
	}
	return 0
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
