package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that notes how it ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "a planted suite" }
func (r *recorder) Fatalf(format string, args ...any) {
	r.ended = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Skip(args ...any) {
	r.ended = "skipped: " + fmt.Sprint(args...)
	runtime.Goexit()
}

// endOf runs a call that may end its goroutine and says how it ended.
func endOf(call func(testing.TB)) string {
	r := &recorder{ended: "went on"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(r)
	}()
	<-done
	return r.ended
}

func TestAMissingProgramSkipsASuiteAndFailsItInCI(t *testing.T) {
	for _, row := range []struct{ name, ci, program, want string }{
		{"there", "true", "go", "went on"},
		{"missing", "", "no-such-program-here", "skipped: " + SkipPrefix + "no-such-program-here"},
		{"missing in CI", "true", "no-such-program-here", "failed: " + SkipPrefix + "no-such-program-here"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("CI", row.ci)
			got := endOf(func(tb testing.TB) { Need(tb, row.program) })
			if !strings.HasPrefix(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	skippedMu.Lock()
	delete(skipped, "a planted suite")
	skippedMu.Unlock()
}

func TestWhatAMachineDeniesIsSkippedAndFailsInCIWhereTheRightIsHeld(t *testing.T) {
	for _, row := range []struct {
		name, ci string
		able     bool
		want     string
	}{
		{"without the right", "", false, "skipped: " + DenialPrefix + "bridges"},
		{"with the right", "", true, "skipped: " + DenialPrefix + "bridges"},
		{"without the right in CI", "true", false, "skipped: " + DenialPrefix + "bridges"},
		{"with the right in CI", "true", true, "failed: " + DenialPrefix + "bridges"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("CI", row.ci)
			got := endOf(func(tb testing.TB) { Denied(tb, "bridges", row.able) })
			if !strings.HasPrefix(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
			var said strings.Builder
			PrintSkipped(&said)
			if want := DenialPrefix + "a planted suite: bridges\n"; strings.Contains(said.String(), want) != strings.HasPrefix(row.want, "skipped") {
				t.Errorf("it is listed as %q", &said)
			}
			skippedMu.Lock()
			delete(skipped, "a planted suite")
			skippedMu.Unlock()
		})
	}
	if Holds(63) {
		t.Error("it holds a capability that there is not")
	}
}

func TestAFolderIsFilledOnceForItsInputsAndAgainAfterAFailure(t *testing.T) {
	input := filepath.Join(t.TempDir(), "input")
	dir := filepath.Join(t.TempDir(), "filled")
	write := func(text string) {
		if err := os.WriteFile(input, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fills := 0
	fill := func() {
		fills++
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("the folder still holds %v", left)
		}
		if err := os.WriteFile(filepath.Join(dir, "made"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	Once(t, dir, []string{input}, fill)
	Once(t, dir, []string{input}, fill)
	if fills != 1 {
		t.Errorf("filled %d times from the same input", fills)
	}
	write("two")
	ended := endOf(func(tb testing.TB) {
		Once(tb, dir, []string{input}, func() { fill(); tb.Fatalf("planted") })
	})
	if ended != "failed: planted" || fills != 2 {
		t.Errorf("a new input: %s, filled %d times", ended, fills)
	}
	Once(t, dir, []string{input}, fill)
	if fills != 3 {
		t.Errorf("filled %d times after a failure", fills)
	}
}
