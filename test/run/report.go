package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/test/ledger"
)

// runParts runs the parts one after the other, prints the table, and returns
// the exit code: 0 when nothing failed and, in CI, nothing was skipped.
func runParts(chosen []part, whole, ci bool) int {
	results := make([]*result, len(chosen))
	tests := map[string]string{}
	for i, p := range chosen {
		fmt.Printf("== %s\n", p.name)
		r := &result{}
		begun := time.Now()
		p.run(r)
		r.took = time.Since(begun)
		results[i] = r
		for name, how := range r.tests {
			// A suite may run twice: what failed once has failed.
			if tests[name] != "fail" {
				tests[name] = how
			}
		}
		fmt.Printf("== %s: %d passed, %d failed, %d skipped in %s\n", p.name, r.passed, len(r.failures), len(r.skips), seconds(r.took))
	}
	if whole {
		r := &result{}
		checkCases(r, tests)
		chosen = append(slices.Clone(chosen), part{name: "cases.md"})
		results = append(results, r)
	}
	return report(chosen, results, ci)
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
			default:
				r.fail("%s: %s did not run", row.ID, name)
			}
		}
	}
}

func report(chosen []part, results []*result, ci bool) int {
	fmt.Printf("\n%-14s %9s %8s %8s %8s\n", "part", "time", "passed", "failed", "skipped")
	var total time.Duration
	failed, skipped := 0, 0
	for i, p := range chosen {
		r := results[i]
		fmt.Printf("%-14s %9s %8d %8d %8d\n", p.name, seconds(r.took), r.passed, len(r.failures), len(r.skips))
		total += r.took
		failed += len(r.failures)
		skipped += len(r.skips)
	}
	fmt.Printf("%-14s %9s\n", "all", seconds(total))
	for i, p := range chosen {
		for _, line := range results[i].failures {
			fmt.Printf("FAILED   %s: %s\n", p.name, line)
		}
	}
	for i, p := range chosen {
		for _, line := range results[i].skips {
			fmt.Printf("SKIPPED  %s: %s\n", p.name, line)
		}
	}
	switch {
	case failed > 0:
		return 1
	case skipped > 0 && ci:
		fmt.Println("CI=true allows no skip.")
		return 1
	}
	return 0
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
