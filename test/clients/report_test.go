package clients

import (
	"strings"
	"testing"
)

func TestADifferenceIsFoundWhereOursFallsShort(t *testing.T) {
	report := func(server string, tests map[string]Result) *Report {
		return &Report{Suite: "planted", Server: server, Tests: tests}
	}
	passed, failed, skipped := Result{}, Result{Status: Failed, Detail: "planted"}, Result{Status: Skipped}
	waiting := Result{Status: Waiting, Detail: NeedsSASL}
	for _, row := range []struct {
		name         string
		apache, ours map[string]Result
		want         []string
	}{
		{"both pass", map[string]Result{"a": passed}, map[string]Result{"a": passed}, nil},
		{"both fail", map[string]Result{"a": passed, "b": failed}, map[string]Result{"a": passed, "b": failed}, nil},
		{"ours passes more", map[string]Result{"a": passed, "b": failed}, map[string]Result{"a": passed, "b": passed}, nil},
		{"ours fails", map[string]Result{"a": passed}, map[string]Result{"a": failed}, []string{"a: passed on apache"}},
		{"ours skips", map[string]Result{"a": passed}, map[string]Result{"a": skipped}, []string{"a: passed", "only 0"}},
		{"ours lacks it", map[string]Result{"a": passed, "b": passed}, map[string]Result{"a": passed}, []string{"b: passed on apache, did not run", "only 1"}},
		{"ours lacks one that fails", map[string]Result{"a": passed, "b": failed}, map[string]Result{"a": passed}, []string{"only 1"}},
		{"nothing ran", map[string]Result{"a": waiting}, map[string]Result{"a": waiting}, []string{"no test ran"}},
		{"ours alone may not wait", map[string]Result{"a": passed, "b": passed}, map[string]Result{"a": passed, "b": waiting}, []string{"b: passed", "only 1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			apache, ours := report("apache", row.apache), report("zooraft", row.ours)
			got := differences(apache, ours)
			if len(got) != len(row.want) {
				t.Fatalf("got %q, want %q", got, row.want)
			}
			for i := range got {
				if !strings.Contains(got[i], row.want[i]) {
					t.Errorf("got %q, want %q", got[i], row.want[i])
				}
			}
		})
	}
}

func TestTheTableCountsEveryStatus(t *testing.T) {
	var out strings.Builder
	writeTable(&out, []*Report{{Suite: "planted", Server: "apache", Tests: map[string]Result{
		"a": {}, "b": {SecondTry: true}, "c": {Status: Failed}, "d": {Status: Waiting, Detail: NeedsTLS}, "e": {Status: Skipped},
	}}})
	for _, want := range []string{
		"planted                  apache           3      2      1       1       1          1       0",
		"planted: waiting 1 for TLS",
		"planted: failing on apache: c",
		"planted: at a later try on apache: b",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, out.String())
		}
	}
}

// What fails on ours alone counts, however often it is tried; what fails on the
// real server too, now and then, is tried until it passes.
func TestWhatFailsOnApacheTooIsTriedLonger(t *testing.T) {
	for _, row := range []struct {
		name   string
		apache Status // at the tries of alsoOnApache
		passes int    // the try at which ours passes then
		want   Status
	}{
		{"a race that both lose", Failed, raceTries, Passed},
		{"a race that ours always loses", Failed, raceTries + 1, Failed},
		{"ours alone", Passed, 1, Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			tries := 0
			s := suite{name: "planted", run: func(_ *testing.T, g target, names []string) map[string]Result {
				if g.server == "apache" {
					return map[string]Result{"a": {Status: row.apache}}
				}
				if tries++; tries == row.passes {
					return map[string]Result{"a": {}}
				}
				return map[string]Result{"a": {Status: Failed}}
			}}
			apache := &Report{Tests: map[string]Result{"a": {}}}
			ours := &Report{Tests: map[string]Result{"a": {Status: Failed}}}
			alsoOnApache(t, s, apache, ours, targets[1])
			if got := ours.Tests["a"].Status; got != row.want {
				t.Errorf("status %v, want %v", got, row.want)
			}
		})
	}
}
