package embedding

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// program names the server's program to the examples.
func program(t testing.TB) []string {
	t.Helper()
	return []string{"ZOORAFT=" + peer.ZooraftBinary(t, false)}
}

func source(language string) string {
	return filepath.Join(toolchain.Root(), "test", "embedding", language)
}

// passed wants a runner to say that so many tests have passed: one that found
// none would be content too.
func passed(t *testing.T, output, pattern string, want int) {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(output)
	if m == nil {
		t.Fatalf("the runner does not say how many tests passed:\n%s", toolchain.Tail(output, 60))
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n < want {
		t.Fatalf("%s tests passed, want %d:\n%s", m[1], want, toolchain.Tail(output, 60))
	}
}

func TestTheJUnitExtensionWithCurator(t *testing.T) {
	toolchain.Need(t, "java", "javac", "mvn")
	dir := source("java")
	jars := toolchain.ClassPath(t, filepath.Join(dir, "pom.xml"))
	classes := toolchain.CompileJava(t, "embedding", filepath.Join(dir, "src"), jars)
	output := toolchain.Run(t, t.TempDir(), program(t), "java",
		"-cp", classes+string(filepath.ListSeparator)+jars, "org.junit.platform.console.ConsoleLauncher",
		"execute", "--scan-classpath", classes, "--disable-banner")
	passed(t, output, `(\d+) tests successful`, 3)
}

func TestThePytestFixtureWithKazoo(t *testing.T) {
	toolchain.Need(t, "python3")
	dir := source("python")
	wanted := filepath.Join(dir, "requirements.txt")
	venv := filepath.Join(toolchain.Build(t, "embedding"), "venv")
	toolchain.Once(t, venv, []string{wanted}, func() {
		toolchain.Run(t, dir, nil, "python3", "-m", "venv", venv)
		toolchain.Run(t, dir, nil, filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "-q", "--no-deps", "-r", wanted)
	})
	output := toolchain.Run(t, dir, append(program(t), "PYTHONDONTWRITEBYTECODE=1"),
		filepath.Join(venv, "bin", "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", dir)
	passed(t, output, `(\d+) passed`, 6)
}

func TestTheNodeModule(t *testing.T) {
	toolchain.Need(t, "node", "npm")
	from := source("node")
	dir := filepath.Join(toolchain.Build(t, "embedding"), "node")
	lock := filepath.Join(from, "package-lock.json")
	toolchain.Once(t, dir, []string{lock}, func() {
		copyFiles(t, from, dir, "package.json", "package-lock.json")
		toolchain.Run(t, dir, nil, "npm", "ci", "--no-audit", "--no-fund")
	})
	copyFiles(t, from, dir, "zooraft.js", "zooraft.test.js")
	output := toolchain.Run(t, dir, program(t), "node", "--test", "--test-reporter=tap")
	passed(t, output, `# pass (\d+)`, 4)
}

// copyFiles copies files into a folder of the build.
func copyFiles(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
