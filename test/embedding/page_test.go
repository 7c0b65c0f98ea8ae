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
	_, election, found := strings.Cut(text("zktest", "election_test.go"), "// campaign is")
	if !found || !strings.Contains(text("docs", "testing.md"), "// campaign is"+election+"```\n") {
		t.Error("docs/testing.md does not show the election of zktest/election_test.go as it is")
	}
}
