package shell

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
	"github.com/zooraft/zooraft/test/zkcli"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// update records what the real zkCli.sh says to the real server.
var update = flag.Bool("update", false, "record the texts of the real zkCli.sh in testdata/zkcli")

var scripts = []string{"acls", "nodes", "oneshot", "quota", "session", "watches"}

func recorded(base string) string { return filepath.Join("testdata", "zkcli", base+".json") }

func readRecorded(t *testing.T, base string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(recorded(base))
	if err != nil {
		t.Fatal(err)
	}
	var texts map[string]string
	if err := json.Unmarshal(text, &texts); err != nil {
		t.Fatal(err)
	}
	return texts
}

// The record is what the other tests here compare with, so it must be the real
// shell's. Each session of a script starts a Java: all scripts are played only
// with -update or with ZOORAFT_SHELL_LONG=true, one always.
func TestTheRecordedTextsAreTheRealShells(t *testing.T) {
	toolchain.Need(t, "java", "mvn")
	for _, base := range scripts {
		if base != "nodes" && !*update && os.Getenv("ZOORAFT_SHELL_LONG") != "true" {
			continue
		}
		t.Run(base, func(t *testing.T) {
			server := peer.StartApache(t, serverOptions())
			texts := play(t, zkCli, server.Address, readScript(t, base))
			if !*update {
				sameTexts(t, readRecorded(t, base), texts)
				return
			}
			text, err := json.MarshalIndent(texts, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(recorded(base), append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestEveryCommandOfZkCliAnswersAsItDoesFromOurServer(t *testing.T) {
	for _, base := range scripts {
		t.Run(base, func(t *testing.T) {
			server := peer.StartZooraft(t, serverOptions())
			sameTexts(t, readRecorded(t, base), play(t, zooraftShell, server.Address, readScript(t, base)))
		})
	}
}

func TestEveryCommandOfZkCliAnswersAsItDoesFromApachesServer(t *testing.T) {
	toolchain.Need(t, "java", "mvn")
	for _, base := range scripts {
		t.Run(base, func(t *testing.T) {
			server := peer.StartApache(t, serverOptions())
			sameTexts(t, readRecorded(t, base), play(t, zooraftShell, server.Address, readScript(t, base)))
		})
	}
}

// meant lists the exchanges in which ours answers otherwise on purpose, with
// what its text must hold. docs/shell.md says the same to users.
var meant = map[string]struct{ why, holds string }{
	"33 a> setAcl -R /tree digest:bob:b0bXHjA0xMF0tnLt0hMDl3wtrjo=:r,world:anyone:cda": {
		"ours begins at the leaves, so that a list which forbids reading does not stop it half way", zkcli.Marker},
	"34 a> getAcl /tree/a/b":     {"the same", "'digest,'bob:b0bXHjA0xMF0tnLt0hMDl3wtrjo="},
	"63 a> addauth nosuch x":     {"ours waits for the answer and says that it was refused", "AuthFailed"},
	"78 a> deleteall /":          {"ours says what refused", "Failed to delete some node(s) in the subtree!\n"},
	"79 a> deleteall /zookeeper": {"the same", "Failed to delete some node(s) in the subtree!\n"},
	"10 $ delete -v x /one":      {"zkCli dies of a Java exception", "-v argument must be a whole number"},
	"7 a> help":                  {"zkCli has no help", "Commands of zkCli.sh:"},
	"18 $ help":                  {"zkCli has no help", "Commands of zkCli.sh:"},
	"8 $ ls /":                   {"zkCli leaves its session to expire, ours closes it", "[one, zookeeper]"},
	"15 $ -timeout 5000 ls /":    {"the same", "[zookeeper]"},
	"16 $ -r ls /":               {"the same", "[zookeeper]"},
	"12 $ stat /one":             {"closed sessions take zxids", "dataVersion = 1\n"},
}

// sameTexts compares exchange by exchange, but for the differences that are
// meant.
func sameTexts(t *testing.T, want, have map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if m, ok := meant[name]; ok && want[name] != have[name] {
			if !strings.Contains(have[name], m.holds) {
				t.Errorf("%s\n%s, but it says:\n%s", name, m.why, have[name])
			}
			continue
		}
		if want[name] != have[name] {
			t.Errorf("%s\nzkCli:\n%s\nours:\n%s", name, want[name], have[name])
		}
	}
}
