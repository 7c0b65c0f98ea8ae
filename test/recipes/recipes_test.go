package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// programs returns the classes with a main method, of which there are seven.
func programs(t *testing.T, source string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "*.java"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "static void main(") {
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".java"))
		}
	}
	if len(names) < 7 {
		t.Fatalf("only these programs: %v", names)
	}
	return names
}

// patience bounds a program that hangs; each takes a few seconds.
const patience = 5 * time.Minute

func TestEveryTutorialWorksOnBothServers(t *testing.T) {
	toolchain.Need(t, "java", "javac", "mvn")
	jars := peer.ApacheClasspath(t)
	source := filepath.Join(toolchain.Root(), "test", "recipes", "java")
	classes := toolchain.CompileJava(t, "recipes", source, jars)
	names := programs(t, source)
	logback := filepath.Join(t.TempDir(), "logback.xml")
	if err := os.WriteFile(logback, []byte(`<configuration><root level="OFF"/></configuration>`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, server := range []struct {
		name  string
		start func(testing.TB, peer.Options) *peer.Server
	}{
		{"apache", peer.StartApache},
		{"zooraft", peer.StartZooraft},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			for _, program := range names {
				t.Run(program, func(t *testing.T) {
					running := server.start(t, peer.Options{Defines: map[string]string{"zookeeper.extendedTypesEnabled": "true"}})
					cmd := exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m",
						"-Dlogback.configurationFile="+logback,
						"-cp", classes+string(filepath.ListSeparator)+jars, program, running.Address)
					stop := time.AfterFunc(patience, func() { cmd.Process.Kill() })
					defer stop.Stop()
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("%s on %s: %v\n%s", program, server.name, err, toolchain.Tail(string(out), 20))
					}
				})
			}
		})
	}
}
