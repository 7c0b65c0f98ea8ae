package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// Changes that succeed: the other tests have one server, which refuses all.
func TestReconfigChangesTheMembersOfAnEnsemble(t *testing.T) {
	e := peer.StartZooraftEnsemble(t, 3, peer.Options{
		Config: map[string]string{"reconfigEnabled": "true", "skipACL": "yes"},
	})
	address := e.Servers[0].Address
	members := func(text string) (ids string) {
		for _, line := range strings.Split(text, "\n") {
			if rest, ok := strings.CutPrefix(line, "server."); ok {
				ids += rest[:1]
			}
		}
		return ids
	}
	const committed = "Committed new configuration:\n"
	out := must(t, address, "", "reconfig", "-remove", "3")
	text, ok := strings.CutPrefix(out, committed)
	if !ok || members(text) != "12" {
		t.Errorf("-remove 3 answers %q", out)
	}
	if shown := must(t, address, "", "config"); shown != text {
		t.Errorf("config shows %q after %q", shown, text)
	}

	third := "server.3=" + e.Members[2] + ":participant;" + e.Servers[2].Address
	answer := lines(t, must(t, address, "", "--json", "reconfig", "-add", third))
	if len(answer) != 1 || len(answer[0]["servers"].(map[string]any)) != 3 {
		t.Fatalf("-add answers %v", answer)
	}
	version := answer[0]["version"].(string)
	if r := run(t, address, "", "reconfig", "-v", "1", "-remove", "3"); r.code != 6 || r.out != "" {
		t.Errorf("with an old version: exit code %d, %q", r.code, r.out)
	}
	if out := must(t, address, "", "reconfig", "-s", "-v", version, "-remove", "3"); members(out) != "12" ||
		!strings.Contains(out, "\ncZxid = ") {
		t.Errorf("with the version that is: %q", out)
	}

	file := filepath.Join(t.TempDir(), "members")
	all := "tickTime=2000\nserver.1=" + e.Members[0] + ";" + e.Servers[0].Address +
		"\nserver.2=" + e.Members[1] + ";" + e.Servers[1].Address + "\n" + third + "\n"
	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, address, "", "reconfig", "-file", file); members(out) != "123" {
		t.Errorf("-file answers %q", out)
	}
	// It was a member twice, with the same client port.
	must(t, e.Servers[2].Address, "", "--wait=60s", "sync", "/")
	if log := e.Servers[2].Log(); strings.Contains(log, "cannot be opened") {
		t.Errorf("server 3 opens the port that it has:\n%s", log)
	}
}
