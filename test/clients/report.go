package clients

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
)

// Status is what became of one test of a suite on one server.
type Status int

const (
	// Passed at the first or a later try.
	Passed Status = iota
	// Failed at every try.
	Failed
	// Skipped by the suite itself, for example for want of an optional library.
	Skipped
	// Waiting for an issue that has not been built yet; Detail says which need.
	Waiting
)

// Needs that make a test wait: the subjects of later issues.
const (
	NeedsSASL = "SASL"
	NeedsTLS  = "TLS"
)

// Result is one test's outcome.
type Result struct {
	Status Status
	// Detail is the failure's text, or the need a test waits for.
	Detail string
	// SecondTry says that the first try failed.
	SecondTry bool
}

// Report is one suite's run on one server. Server is a target's label.
type Report struct {
	Suite, Server string
	Tests         map[string]Result
	Elapsed       time.Duration
}

// count returns the number of tests with a status.
func (r *Report) count(status Status) int {
	n := 0
	for _, result := range r.Tests {
		if result.Status == status {
			n++
		}
	}
	return n
}

// ran is the number of tests that reached a verdict.
func (r *Report) ran() int { return r.count(Passed) + r.count(Failed) }

// laterTries names the tests that passed, but not at the first try.
func (r *Report) laterTries() []string {
	var names []string
	for _, name := range r.names(Passed) {
		if r.Tests[name].SecondTry {
			names = append(names, name)
		}
	}
	return names
}

// names returns the tests with a status, sorted.
func (r *Report) names(status Status) []string {
	var names []string
	for name, result := range r.Tests {
		if result.Status == status {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// differences lists in words where ours falls short of apache.
func differences(apache, ours *Report) []string {
	var found []string
	if apache.ran() == 0 {
		found = append(found, "no test ran on apache")
	}
	for name, want := range apache.Tests {
		have, there := ours.Tests[name]
		switch {
		case want.Status == Passed && !there:
			found = append(found, fmt.Sprintf("%s: passed on apache, did not run on %s", name, ours.Server))
		case want.Status == Passed && have.Status != Passed:
			found = append(found, fmt.Sprintf("%s: passed on apache, on %s: %s", name, ours.Server, have.Detail))
		}
	}
	sort.Strings(found)
	if ours.ran() < apache.ran() {
		found = append(found, fmt.Sprintf("%d tests ran on apache and only %d on %s",
			apache.ran(), ours.ran(), ours.Server))
	}
	return found
}

// writeTable writes one line for each report, then what waits, what fails, and
// what passed at a later try.
func writeTable(w io.Writer, reports []*Report) {
	sort.SliceStable(reports, func(i, j int) bool {
		a, b := reports[i], reports[j]
		return a.Suite < b.Suite || a.Suite == b.Suite && a.Server < b.Server
	})
	const row = "%-24s %-12s %5v %6v %6v %7v %7v %10v %7v\n"
	fmt.Fprintf(w, row, "suite", "server", "run", "passed", "failed", "waiting", "skipped", "later try", "seconds")
	for _, r := range reports {
		fmt.Fprintf(w, row, r.Suite, r.Server, r.ran(), r.count(Passed), r.count(Failed),
			r.count(Waiting), r.count(Skipped), len(r.laterTries()), int(r.Elapsed.Seconds()+0.5))
	}
	for _, r := range reports {
		waiting := map[string]int{}
		for _, name := range r.names(Waiting) {
			waiting[r.Tests[name].Detail]++
		}
		var needs []string
		for need, n := range waiting {
			needs = append(needs, fmt.Sprintf("%d for %s", n, need))
		}
		sort.Strings(needs)
		if len(needs) > 0 && r.Server == "apache" {
			fmt.Fprintf(w, "%s: waiting %s\n", r.Suite, strings.Join(needs, ", "))
		}
		if failed := r.names(Failed); len(failed) > 0 {
			fmt.Fprintf(w, "%s: failing on %s: %s\n", r.Suite, r.Server, strings.Join(failed, ", "))
		}
		if later := r.laterTries(); len(later) > 0 {
			fmt.Fprintf(w, "%s: at a later try on %s: %s\n", r.Suite, r.Server, strings.Join(later, ", "))
		}
	}
}
