package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/zkcli"
)

// patience bounds what is waited for; it is only met by a hang.
const patience = zkcli.Patience

// readScript reads a script of this suite's own, because the record goes with it.
func readScript(t *testing.T, base string) []zkcli.Exchange {
	t.Helper()
	script, err := zkcli.ReadScript(filepath.Join("testdata", "zkcli", base+".script"))
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// program starts a shell with arguments after -server ADDRESS.
type program func(t testing.TB, address string, args ...string) *exec.Cmd

// zooraftShell is ours.
func zooraftShell(t testing.TB, address string, args ...string) *exec.Cmd {
	cmd := exec.Command(peer.ZooraftBinary(t, false), append([]string{"shell", "-server", address}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	return cmd
}

// zkCli is the real one.
func zkCli(t testing.TB, address string, args ...string) *exec.Cmd {
	return zkcli.Command(t, t.TempDir(), address, args...)
}

// serverOptions are those of the scripts in test/clients: no session expires that a
// shell with one command has left behind.
func serverOptions() peer.Options {
	return peer.Options{Config: map[string]string{"minSessionTimeout": "1000000", "maxSessionTimeout": "1000000"}, Defines: map[string]string{
		"zookeeper.extendedTypesEnabled":                     "true",
		"zookeeper.enforceQuota":                             "true",
		"zookeeper.DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
		"zookeeper.DigestAuthenticationProvider.enabled":     "true",
		"zookeeper.4lw.commands.whitelist":                   "*",
	}}
}

// play plays a script with a shell and returns the masked text of each exchange,
// and the events of each session under its name.
func play(t *testing.T, start program, address string, script []zkcli.Exchange) map[string]string {
	t.Helper()
	texts := map[string]string{}
	sessions := map[string]*zkcli.Conversation{}
	for _, e := range script {
		command := strings.ReplaceAll(e.Command, "ADDRESS", address)
		if e.Session == "" {
			texts[e.Name] = mask(oneShot(t, start, address, command), address)
			continue
		}
		s := sessions[e.Session]
		if s == nil {
			s = zkcli.Begin(t, start(t, address, "-waitforconnection"))
			sessions[e.Session] = s
		}
		text, err := s.Exchange(command)
		if err != nil {
			t.Errorf("%s: the shell broke off: %v", e.Name, err)
		}
		texts[e.Name] = mask(text, address)
	}
	for name, s := range sessions {
		if _, err := s.Close(); err != nil { // its exit code is that of its last command
			t.Errorf("session %s: %v", name, err)
		}
		texts["events of session "+name] = mask(strings.Join(notOfTheConnection(s.Events), "\n"), address)
	}
	return texts
}

func oneShot(t *testing.T, start program, address, command string) string {
	t.Helper()
	cmd := start(t, address, strings.Fields(command)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, _ := zkcli.SplitEvents(string(out))
	return fmt.Sprintf("%s\nfailed: %v", strings.TrimSpace(text), exit != nil)
}

// masks take out what zkCli prints and ours does not on purpose: banner, the help
// below an unknown command, Java's names of exceptions.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^(Connecting to .*|Welcome to ZooKeeper!|JLine support is disabled)\n`), ""},
	{regexp.MustCompile(`(?m)^ZooKeeper -server host:port .*\n(\t.*\n)*`), ""},
	{regexp.MustCompile(`org\.apache\.commons\.cli\.\w+: `), ""},
	{regexp.MustCompile(`(?m)^ZooKeeper CLI version: .*$`), "ZooKeeper CLI version: ITS OWN"},
}

func mask(text, address string) string {
	text = zkcli.Mask(text+"\n", address)
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return strings.TrimSpace(text)
}

// notOfTheConnection leaves out the events of the connection: ours prints none
// where a program reads.
func notOfTheConnection(events []string) (rest []string) {
	for _, event := range events {
		if !strings.Contains(event, "type:None") {
			rest = append(rest, event)
		}
	}
	return rest
}
