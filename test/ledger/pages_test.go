package ledger

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/oracle"
	"github.com/zooraft/zooraft/test/toolchain"
)

func page(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{toolchain.Root()}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every difference on purpose has a row, and the oracle masks no other.
func TestTheOracleMasksExactlyTheRowsThatThePageMarks(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (●?)")
	var marked, all []string
	for _, m := range row.FindAllStringSubmatch(page(t, "docs", "compatibility.md"), -1) {
		if slices.Contains(all, m[1]) {
			t.Errorf("row %s comes twice", m[1])
		}
		all = append(all, m[1])
		if m[2] != "" {
			marked = append(marked, m[1])
		}
	}
	var masked []string
	for _, r := range oracle.Rows {
		masked = append(masked, r.Name)
		if !slices.Contains(marked, r.Name) {
			t.Errorf("the oracle masks %s, which the page does not mark", r.Name)
		}
	}
	for _, name := range marked {
		if !slices.Contains(masked, name) {
			t.Errorf("the page marks %s, which the oracle does not mask", name)
		}
	}
}

func TestTheTestsNamedByTheCompatibilityPageExist(t *testing.T) {
	for _, line := range strings.Split(page(t, "docs", "compatibility.md"), "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range names {
			n := Name{Folder: m[1], Test: m[2]}
			if !slices.Contains(testFunctions(t, n.Folder), n.Func()) {
				t.Errorf("%s does not exist: %s", n, line)
			}
		}
	}
}

// A link that leads nowhere is worse than none.
func TestEveryLinkBetweenPagesLeadsSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	root := toolchain.Root()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, top...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(path), m[1], err)
			}
		}
	}
}

// A direct dependency without a reason is one too many.
func TestEveryDirectDependencyHasItsReason(t *testing.T) {
	reasons := page(t, "docs", "dependencies.md")
	for _, line := range strings.Split(page(t, "go.mod"), "\n") {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) != 2 || !strings.Contains(fields[0], ".") || !strings.HasPrefix(fields[1], "v") {
			continue
		}
		if !strings.Contains(reasons, "| "+fields[0]+" |") {
			t.Errorf("docs/dependencies.md says nothing about %s", fields[0])
		}
	}
}

// What a reader is told to run is what CI runs.
func TestCIRunsTheTestCommandOfTheReadme(t *testing.T) {
	readme := page(t, "README.md")
	_, section, found := strings.Cut(readme, "## Test it")
	_, block, opened := strings.Cut(section, "```sh\n")
	command, _, closed := strings.Cut(block, "\n```")
	if !found || !opened || !closed || strings.Contains(command, "\n") {
		t.Fatalf("the README's test section names no single command: %q", command)
	}
	run := page(t, ".ci", "run")
	if !strings.Contains(run, "CI=true timeout") || !strings.Contains(run, command+" ||") {
		t.Errorf(".ci/run does not run %q with CI=true", command)
	}
	if !strings.Contains(page(t, "Makefile"), "$(GO) "+strings.TrimPrefix(command, "go ")+"\n") {
		t.Errorf("make test does not run %q", command)
	}
}

func TestEveryLineOfTheChangelogHasATag(t *testing.T) {
	tagged := regexp.MustCompile(`^- (feature|change|fix|security|speed): [a-z0-9A-Z\x60]`)
	for i, line := range strings.Split(page(t, "CHANGELOG.md"), "\n") {
		if strings.HasPrefix(line, "-") && !tagged.MatchString(line) {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
}
