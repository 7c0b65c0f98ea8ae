package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
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
}

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
	if readErr != nil {
		r.fail("reading the output of go test: %v", readErr)
	}
}

func follow(r *result, out io.Reader) error {
	t := tally{r: r, output: map[[2]string]*strings.Builder{}}
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
	case "pass", "fail", "skip":
		t.end(key, folder, e)
		delete(t.output, key)
	}
}

func (t *tally) end(key [2]string, folder string, e event) {
	text := ""
	if b := t.output[key]; b != nil {
		text = b.String()
	}
	if e.Test == "" {
		if e.Action == "fail" {
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
		t.r.say(toolchain.Tail(text, 200) + "\n")
		t.r.fail("%s", name)
	case "skip":
		reason := "no reason given"
		for _, line := range strings.Split(text, "\n") {
			if _, after, ok := strings.Cut(line, toolchain.SkipPrefix); ok {
				reason = toolchain.SkipPrefix + after
			}
		}
		t.r.skip("%s: %s", name, reason)
	}
}
