package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/test/toolchain"
)

const module = "github.com/zooraft/zooraft"

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// tally follows the events of one `go test`.
type tally struct {
	r *result
	// output holds what a package (test "") or a test has printed, until it is
	// known whether anybody needs to read it.
	output map[[2]string]*strings.Builder
	// told holds what the tests of each talking package have printed.
	told map[string]*strings.Builder
}

// talking are the packages whose passing tests print what a reader of the run
// should see: seeds to replay, how often each difference was masked, what
// became of other people's tests.
var talking = []string{"test/oracle", "test/clients", "test/crash"}

// denied is what a test came to that this machine denies what it needs.
const denied = "denied"

// goTest runs `go test -json` with env added to the environment and records
// each test by "folder.Name".
func goTest(r *result, env []string, args ...string) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = cmd.Stdout
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.fail("go test: %v", err)
		return
	}
	readErr := follow(r, out)
	if err := cmd.Wait(); err != nil && len(r.failures) == 0 {
		r.fail("go test %s: %v", strings.Join(args, " "), err)
	}
	r.spent(cmd.ProcessState)
	if readErr != nil {
		r.fail("reading the output of go test: %v", readErr)
	}
}

func follow(r *result, out io.Reader) error {
	t := tally{r: r, output: map[[2]string]*strings.Builder{}, told: map[string]*strings.Builder{}}
	if r.tests == nil {
		r.tests = map[string]string{}
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				t.add(e)
			} else {
				r.say(line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) add(e event) {
	key := [2]string{e.Package, e.Test}
	folder := strings.TrimPrefix(strings.TrimPrefix(e.Package, module), "/")
	switch e.Action {
	case "build-output":
		t.r.say(e.Output)
	case "output":
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
		t.listen(folder, e)
	case "pass", "fail", "skip":
		t.end(key, folder, e)
		delete(t.output, key)
	}
}

// listen keeps what a test of a talking package prints, without the lines that
// are the test tool's own and the reasons of skips, which are listed at the end.
func (t *tally) listen(folder string, e event) {
	own := strings.TrimLeft(e.Output, " ")
	if e.Test == "" || !slices.Contains(talking, folder) || strings.HasPrefix(own, "=== ") || strings.HasPrefix(own, "--- ") ||
		strings.Contains(own, toolchain.SkipPrefix) || strings.Contains(own, toolchain.DenialPrefix) {
		return
	}
	if t.told[folder] == nil {
		t.told[folder] = &strings.Builder{}
	}
	t.told[folder].WriteString(e.Output)
}

// sayPassed prints what the tests of a package had to tell, and the test tool's
// verdict: "ok", the package and its time.
func (t *tally) sayPassed(folder, text string) {
	if told := t.told[folder]; told != nil {
		t.r.say(told.String())
	}
	if line := lastLine(text); strings.HasPrefix(line, "ok ") {
		t.r.say(line + "\n")
	}
}

// sayUnfinished prints what the tests that had no end have printed, as when the
// program dies of a panic or hangs: which they are, and where every goroutine is.
func (t *tally) sayUnfinished(pkg, folder string) {
	for key, printed := range t.output {
		if key[0] != pkg || key[1] == "" {
			continue
		}
		name := folder + "." + key[1]
		t.r.tests[name] = "fail"
		t.r.fail("%s: no end", name)
		t.r.say(name + " had no end\n" + toolchain.Tail(printed.String(), 400) + "\n")
	}
}

func (t *tally) end(key [2]string, folder string, e event) {
	text := ""
	if b := t.output[key]; b != nil {
		text = b.String()
	}
	if e.Test == "" {
		switch e.Action {
		case "pass":
			t.sayPassed(folder, text)
		case "fail":
			t.sayUnfinished(e.Package, folder)
			t.r.say(toolchain.Tail(text, 60) + "\n")
			t.r.fail("package %s", folder)
		}
		return
	}
	name := folder + "." + e.Test
	t.r.tests[name] = e.Action
	switch e.Action {
	case "pass":
		t.r.passed++
	case "fail":
		for _, report := range races(text) {
			t.r.say(report + "\n")
		}
		t.r.say(ends(text, 200) + "\n")
		t.r.fail("%s%s", name, reason(text))
	case "skip":
		reason := "no reason given"
		for _, line := range strings.Split(text, "\n") {
			if _, after, ok := strings.Cut(line, toolchain.SkipPrefix); ok {
				reason = toolchain.SkipPrefix + after
			}
			if _, after, ok := strings.Cut(line, toolchain.DenialPrefix); ok {
				reason = toolchain.DenialPrefix + after
				t.r.tests[name] = denied
			}
		}
		t.r.skip("%s: %s", name, reason)
	}
}

// ends returns the first and the last lines of a long text, n together: what a
// failing test says first is often what differs, and last where it ended.
func ends(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if left := len(lines) - n; left > 0 {
		lines = slices.Concat(lines[:n/2], []string{fmt.Sprintf("… %d lines left out …", left)}, lines[len(lines)-n/2:])
	}
	return strings.Join(lines, "\n")
}
