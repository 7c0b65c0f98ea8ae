package clients

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
	"github.com/zooraft/zooraft/test/zkcli"
)

// TestZkCli types every command of the shell of Apache ZooKeeper 3.9.5 into
// both servers. There is no verdict in the shell itself: an exchange passes on
// zooraft when its text, after zkcli.Mask, is the real server's.
func TestZkCli(t *testing.T) {
	takeTurn(t)
	toolchain.Need(t, "java", "mvn")
	scripts, err := readScripts(filepath.Join(toolchain.Root(), "test", "clients", "zkcli"))
	if err != nil {
		t.Fatal(err)
	}
	everyCommandIsScripted(t, scripts)
	var texts transcripts
	compare(t, suite{
		name: "zkCli.sh",
		run: func(t *testing.T, g target, names []string) map[string]Result {
			return texts.record(t, g, scripts, names)
		},
		verdict: texts.verdict,
	})
}

// everyCommandIsScripted compares the shell's own help with the scripts.
func everyCommandIsScripted(t *testing.T, scripts map[string][]zkcli.Exchange) {
	t.Helper()
	typed := map[string]bool{}
	for _, script := range scripts {
		for _, e := range script {
			for _, word := range strings.Fields(e.Command) {
				typed[word] = true
			}
		}
	}
	cmd := zkcli.Command(t, t.TempDir(), "127.0.0.1:1", "help")
	out, _ := cmd.CombinedOutput()
	commands := 0
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "\t") || len(fields) == 0 {
			continue
		}
		commands++
		if !typed[fields[0]] {
			t.Errorf("no script types %s, which the help names", fields[0])
		}
	}
	if commands < 20 {
		t.Errorf("the help names only %d commands:\n%s", commands, out)
	}
}

// transcripts holds the masked text of each exchange on each server.
type transcripts struct {
	mu   sync.Mutex
	text map[string]map[string]string // by target, then exchange; guarded by mu
}

// record runs the scripts, each on a fresh server; with names only those that
// hold one of them.
func (x *transcripts) record(t *testing.T, g target, scripts map[string][]zkcli.Exchange, names []string) map[string]Result {
	t.Helper()
	tests := map[string]Result{}
	for base, script := range scripts {
		wanted := names == nil || slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(name, base+":")
		})
		if !wanted {
			continue
		}
		for name, text := range playScript(t, g, base, script) {
			x.mu.Lock()
			if x.text == nil {
				x.text = map[string]map[string]string{}
			}
			if x.text[g.label()] == nil {
				x.text[g.label()] = map[string]string{}
			}
			x.text[g.label()][name] = text
			x.mu.Unlock()
			tests[name] = Result{}
			if strings.HasPrefix(text, brokenShell) {
				tests[name] = Result{Status: Failed, Detail: text}
			}
		}
	}
	return tests
}

// verdict fails the exchanges of ours whose text is not the real server's.
func (x *transcripts) verdict(label string, ours map[string]Result) {
	for name := range ours {
		want, have := x.text["apache"][name], x.text[label][name]
		if want != have {
			ours[name] = Result{Status: Failed, Detail: fmt.Sprintf("the text differs\napache:\n%s\n%s:\n%s", want, label, have)}
		}
	}
}

// brokenShell begins the text of an exchange without an end.
const brokenShell = "the shell broke off: "

// playScript plays one script on a server of its own and returns the masked
// text of each exchange and the events of each session.
func playScript(t *testing.T, g target, base string, script []zkcli.Exchange) map[string]string {
	t.Helper()
	// A shell that is given one command leaves its session behind: none may expire
	// before the last answer that shows a zxid.
	server := g.start(t, peer.Options{Config: map[string]string{"minSessionTimeout": "1000000", "maxSessionTimeout": "1000000"}, Defines: map[string]string{
		"zookeeper.extendedTypesEnabled":                     "true",
		"zookeeper.enforceQuota":                             "true",
		"zookeeper.DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
		"zookeeper.DigestAuthenticationProvider.enabled":     "true",
		"zookeeper.4lw.commands.whitelist":                   "*",
	}})
	texts := map[string]string{}
	sessions := map[string]*zkcli.Conversation{}
	for _, e := range script {
		command := strings.ReplaceAll(e.Command, "ADDRESS", server.Address)
		if e.Session == "" {
			texts[e.Name] = zkcli.Mask(oneShot(t, g.folder, server.Address, command), server.Address)
			continue
		}
		s := sessions[e.Session]
		if s == nil {
			s = beginShell(t, g.folder, server.Address)
			sessions[e.Session] = s
		}
		text, err := s.Exchange(command)
		if err != nil {
			text = brokenShell + err.Error() + "\n" + text
		}
		texts[e.Name] = zkcli.Mask(text, server.Address)
	}
	for name, s := range sessions {
		rest, err := s.Close()
		if err != nil {
			rest = brokenShell + err.Error() + "\n" + rest
		}
		texts[fmt.Sprintf("%s:end of session %s", base, name)] = zkcli.Mask(rest, server.Address)
		texts[fmt.Sprintf("%s:events of session %s", base, name)] = zkcli.Mask(strings.Join(s.Events, "\n"), server.Address)
	}
	server.Stop(t)
	return texts
}

// oneShot runs a shell with a command and returns its text and exit code. The
// event of the connection is left out: the shell may be gone before its thread
// prints it.
func oneShot(t *testing.T, folder, address, command string) string {
	t.Helper()
	out, err := zkcli.Command(t, folder, address, strings.Fields(command)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return brokenShell + err.Error()
	}
	text, _ := zkcli.SplitEvents(string(out))
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	return fmt.Sprintf("%s\nexit code %d", strings.TrimSpace(text), code)
}

// beginShell opens a session of zkCli.sh.
func beginShell(t *testing.T, folder, address string) *zkcli.Conversation {
	t.Helper()
	return zkcli.Begin(t, zkcli.Command(t, folder, address, "-waitforconnection"))
}
