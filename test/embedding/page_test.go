package embedding

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// What a user copies from the pages is what CI has run.
func TestThePagesShowTheFilesAsTheyAre(t *testing.T) {
	text := func(path ...string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(append([]string{toolchain.Root()}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	page := text("docs", "testing-other-languages.md")
	for _, file := range []string{
		"java/src/test/java/example/ZooraftExtension.java", "java/src/test/java/example/LeaderElectionTest.java",
		"java/src/test/java/example/QueueTest.java", "python/conftest.py", "python/test_example.py",
		"node/zooraft.js", "node/zooraft.test.js",
	} {
		if !strings.Contains(page, "\n"+text("test", "embedding", file)+"```\n") {
			t.Errorf("docs/testing-other-languages.md does not show %s as it is", file)
		}
	}
	committed := flat(text("test", "embedding", "gopage_test.go") + text("page_test.go"))
	blocks := strings.Split(text("docs", "testing.md"), "```go\n")
	if len(blocks) < 5 {
		t.Errorf("docs/testing.md has %d pieces of Go", len(blocks)-1)
	}
	for _, block := range blocks[1:] {
		code, _, _ := strings.Cut(block, "```")
		if strings.HasPrefix(code, "package ") { // the whole file, judged below
			continue
		}
		if !strings.Contains(committed, flat(code)) {
			t.Errorf("docs/testing.md shows Go that no test compiles:\n%s", code)
		}
	}
	_, election, found := strings.Cut(text("zktest", "election_test.go"), "// campaign is")
	if !found || !strings.Contains(text("docs", "testing.md"), "// campaign is"+election+"```\n") {
		t.Error("docs/testing.md does not show the election of zktest/election_test.go as it is")
	}
}

// flat is a text without the indents of its lines.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
