package main

import (
	"context"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// The driver must not lose a failure or a skip: both decide its exit code.
func TestEventsOfGoTestAreCounted(t *testing.T) {
	var r result
	err := follow(&r, strings.NewReader(strings.Join([]string{
		`{"Action":"pass","Package":"github.com/zooraft/zooraft/internal/a","Test":"TestGood"}`,
		`{"Action":"pass","Package":"github.com/zooraft/zooraft/internal/a","Test":"TestGood/sub_test"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/internal/a","Test":"TestBad","Output":"because\n"}`,
		`{"Action":"fail","Package":"github.com/zooraft/zooraft/internal/a","Test":"TestBad"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/b","Test":"TestLater","Output":"    x.go:1: waiting for toolchain: java\n"}`,
		`{"Action":"skip","Package":"github.com/zooraft/zooraft/test/b","Test":"TestLater"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/b","Test":"TestNets","Output":"    x.go:1: denied by this machine: nets\n"}`,
		`{"Action":"skip","Package":"github.com/zooraft/zooraft/test/b","Test":"TestNets"}`,
		`{"Action":"fail","Package":"github.com/zooraft/zooraft/internal/a"}`,
		`{"Action":"skip","Package":"github.com/zooraft/zooraft/test/empty"}`,
		`no event`,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if r.passed != 2 || !reflect.DeepEqual(r.failures, []string{"internal/a.TestBad", "package internal/a"}) {
		t.Errorf("%d passed, failures %q", r.passed, r.failures)
	}
	if !reflect.DeepEqual(r.skips, []string{"test/b.TestLater: waiting for toolchain: java", "test/b.TestNets: denied by this machine: nets"}) {
		t.Errorf("skips %q", r.skips)
	}
	if r.tests["internal/a.TestGood/sub_test"] != "pass" || r.tests["test/b.TestLater"] != "skip" || r.tests["test/b.TestNets"] != denied {
		t.Errorf("tests %v", r.tests)
	}
}

// The line of a failure says why it failed.
func TestAFailureSaysItsReason(t *testing.T) {
	race := strings.Join([]string{
		"=== RUN   TestX", "==================", "WARNING: DATA RACE", "Write at 0x00c0 by goroutine 7:",
		"  example.org/a/b.(*T).Set()", "      /somewhere/a/b/t.go:12 +0x8c", "",
		"Previous read at 0x00c0 by goroutine 9:", "  example.org/a/b.(*T).Get()", "      /somewhere/a/b/t.go:20 +0x1",
		"==================", "    testing.go:1712: race detected during execution of test", "--- FAIL: TestX",
	}, "\n")
	for text, want := range map[string]string{
		"=== RUN   TestX\nlevel=INFO msg=\"x_test.go:1: \"\n    x_test.go:75: 3 children\n    x_test.go:76: more\n": ": x_test.go:75: 3 children | x_test.go:76: more",
		"    x_test.go:1: a\n    x_test.go:2: b\n    x_test.go:3: c\n    x_test.go:4: d\n":                          ": x_test.go:1: a | x_test.go:3: c | x_test.go:4: d",
		race:      ": data race of example.org/a/b.(*T).Set() t.go:12 and example.org/a/b.(*T).Get() t.go:20",
		"because": "",
	} {
		if got := reason(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := races(race + race + race + race); len(got) != racesMax || !strings.Contains(got[0], "by goroutine 9") {
		t.Errorf("%d reports: %q", len(got), got)
	}
}

// A program that dies takes the end of its tests with it.
func TestATestWithoutAnEndIsNamedWithWhatItPrinted(t *testing.T) {
	var r result
	err := follow(&r, strings.NewReader(strings.Join([]string{
		`{"Action":"output","Package":"github.com/zooraft/zooraft/zktest","Test":"TestHangs","Output":"goroutine 7 [select]:\n"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/zktest","Output":"FAIL\n"}`,
		`{"Action":"fail","Package":"github.com/zooraft/zooraft/zktest"}`,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.failures, []string{"zktest.TestHangs: no end", "package zktest"}) || r.tests["zktest.TestHangs"] != "fail" {
		t.Errorf("failures %q, tests %v", r.failures, r.tests)
	}
	if !strings.Contains(r.log.String(), "goroutine 7") {
		t.Errorf("what it printed is not shown: %q", r.log.String())
	}
}

func TestTheExitCodeTellsFailuresAndInCISkips(t *testing.T) {
	good := part{"good", func(r *result) { r.passed++ }}
	bad := part{"bad", func(r *result) { r.fail("x") }}
	skips := part{"skips", func(r *result) { r.skip("x") }}
	refused := part{"refused", func(r *result) { r.skip("x: %snets", toolchain.DenialPrefix) }}
	for name, tc := range map[string]struct {
		parts []part
		ci    bool
		want  int
	}{
		"all good":                       {[]part{good}, true, 0},
		"a failure":                      {[]part{bad, good}, false, 1},
		"a skip":                         {[]part{skips, good}, false, 0},
		"a skip under CI":                {[]part{skips, good}, true, 1},
		"what a machine denies under CI": {[]part{refused, good}, true, 0},
		"that and a skip under CI":       {[]part{refused, skips}, true, 1},
	} {
		if got := runParts(t.Context(), tc.parts, 2, false, tc.ci); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.want)
		}
	}
}

func TestAnInterruptedRunFailsAndNamesWhatDidNotRun(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	first := part{"first", func(r *result) { r.passed++; interrupt() }}
	second := part{"second", func(*result) { <-ctx.Done() }}
	var ran atomic.Int32
	last := part{"last", func(*result) { ran.Add(1) }}
	if got := runParts(ctx, []part{first, second, last, last, last}, 2, false, false); got != 1 {
		t.Errorf("exit code %d", got)
	}
	// A lane that became free just then may have taken one more.
	if ran.Load() > 1 {
		t.Errorf("%d parts began after the interrupt", ran.Load())
	}
}

// What a talking suite prints is for the reader of the run, and so is the test
// tool's own verdict on each package.
func TestTheRunPrintsWhatTalkingSuitesTellAndTheVerdictOnEachPackage(t *testing.T) {
	var r result
	err := follow(&r, strings.NewReader(strings.Join([]string{
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/oracle","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/oracle","Test":"TestA","Output":"seeds 1 to 2\n"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/oracle","Test":"TestA","Output":"    --- PASS: TestA/x (0.00s)\n"}`,
		`{"Action":"pass","Package":"github.com/zooraft/zooraft/test/oracle","Test":"TestA"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/oracle","Output":"PASS\n"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/oracle","Output":"ok  \tgithub.com/zooraft/zooraft/test/oracle\t1.5s\n"}`,
		`{"Action":"pass","Package":"github.com/zooraft/zooraft/test/oracle"}`,
		`{"Action":"output","Package":"github.com/zooraft/zooraft/test/cases","Test":"TestB","Output":"chatter\n"}`,
		`{"Action":"pass","Package":"github.com/zooraft/zooraft/test/cases","Test":"TestB"}`,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := "seeds 1 to 2\nok  \tgithub.com/zooraft/zooraft/test/oracle\t1.5s\n"
	if got := r.log.String(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestARowWhoseTestDidNotRunIsAFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("test", 0o755); err != nil {
		t.Fatal(err)
	}
	page := "| case 1 | x | `a.TestRan`, `a.TestRan/with blanks`, `a.TestSkipped`, `a.TestFailed`, `a.TestAbsent`, `a.TestDenied` |\n"
	if err := os.WriteFile("test/cases.md", []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	var r result
	checkCases(&r, map[string]string{"a.TestRan": "pass", "a.TestRan/with_blanks": "pass", "a.TestSkipped": "skip", "a.TestFailed": "fail", "a.TestDenied": denied})
	if r.passed != 2 || len(r.skips) != 2 || strings.Contains(r.skips[0], toolchain.DenialPrefix) || !strings.Contains(r.skips[1], toolchain.DenialPrefix) || len(r.failures) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestEverySuiteOfTheRepositoryIsAPart(t *testing.T) {
	t.Chdir(toolchain.Root())
	all, err := parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vet", "staticcheck", "rooms", "graph", "ledger", "snapshot"} {
		if _, err := choose(all, name); err != nil {
			t.Error(err)
		}
	}
	if _, err := choose(all, "nothing"); err == nil {
		t.Error("an unknown part was accepted")
	}
}

func TestALongFailureIsShownFromBothEnds(t *testing.T) {
	if got, want := ends("1\n2\n3\n4\n5\n6\n", 4), "1\n2\n… 2 lines left out …\n5\n6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ends("1\n2\n", 4); got != "1\n2" {
		t.Errorf("%q", got)
	}
}
