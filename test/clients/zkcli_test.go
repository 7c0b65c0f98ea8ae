package clients

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// shellPatience is how long one command of the shell may take before its
// exchange counts as broken. It only bounds a hang: the shell itself waits 30 s
// for a lost server.
const shellPatience = 60 * time.Second

// TestZkCli types every command of the shell of Apache ZooKeeper 3.9.5 into
// both servers. There is no verdict in the shell itself: an exchange passes on
// zooraft when its text, after mask, is the real server's.
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
func everyCommandIsScripted(t *testing.T, scripts map[string][]exchange) {
	t.Helper()
	typed := map[string]bool{}
	for _, script := range scripts {
		for _, e := range script {
			for _, word := range strings.Fields(e.command) {
				typed[word] = true
			}
		}
	}
	cmd := shellCommand(t, t.TempDir(), "127.0.0.1:1", "help")
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

// shellCommand is the shell without JLine, which would draw a terminal.
func shellCommand(t testing.TB, folder, address string, args ...string) *exec.Cmd {
	t.Helper()
	logback := filepath.Join(folder, "logback.xml")
	if err := os.WriteFile(logback, []byte(strings.Replace(quietLogback, "WARN", "OFF", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	var jars []string
	for _, jar := range filepath.SplitList(peer.ApacheClasspath(t)) {
		if !strings.Contains(filepath.Base(jar), "jline") {
			jars = append(jars, jar)
		}
	}
	java := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx128m",
		"-Dlogback.configurationFile=" + logback, "-cp", strings.Join(jars, string(filepath.ListSeparator)),
		peer.ApacheShellClass, "-server", address}
	return exec.Command("java", append(java, args...)...)
}

// transcripts holds the masked text of each exchange on each server.
type transcripts struct {
	mu   sync.Mutex
	text map[string]map[string]string // by target, then exchange; guarded by mu
}

// record runs the scripts, each on a fresh server; with names only those that
// hold one of them.
func (x *transcripts) record(t *testing.T, g target, scripts map[string][]exchange, names []string) map[string]Result {
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
func playScript(t *testing.T, g target, base string, script []exchange) map[string]string {
	t.Helper()
	server := g.start(t, peer.Options{Config: map[string]string{"maxSessionTimeout": "1000000"}, Defines: map[string]string{
		"zookeeper.extendedTypesEnabled":                     "true",
		"zookeeper.enforceQuota":                             "true",
		"zookeeper.DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
		"zookeeper.DigestAuthenticationProvider.enabled":     "true",
		"zookeeper.4lw.commands.whitelist":                   "*",
	}})
	texts := map[string]string{}
	sessions := map[string]*shell{}
	for _, e := range script {
		command := strings.ReplaceAll(e.command, "ADDRESS", server.Address)
		if e.session == "" {
			texts[e.name] = mask(oneShot(t, g.folder, server.Address, command), server.Address)
			continue
		}
		s := sessions[e.session]
		if s == nil {
			s = openShell(t, g.folder, server.Address)
			sessions[e.session] = s
		}
		text, err := s.exchange(command)
		if err != nil {
			text = brokenShell + err.Error() + "\n" + text
		}
		texts[e.name] = mask(text, server.Address)
	}
	for name, s := range sessions {
		rest, err := s.close()
		if err != nil {
			rest = brokenShell + err.Error() + "\n" + rest
		}
		texts[fmt.Sprintf("%s:end of session %s", base, name)] = mask(rest, server.Address)
		texts[fmt.Sprintf("%s:events of session %s", base, name)] = mask(strings.Join(s.events, "\n"), server.Address)
	}
	server.Stop(t)
	return texts
}

// oneShot runs a shell with a command and returns its text and exit code. The
// event of the connection is left out: the shell may be gone before its thread
// prints it.
func oneShot(t *testing.T, folder, address, command string) string {
	t.Helper()
	out, err := shellCommand(t, folder, address, strings.Fields(command)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return brokenShell + err.Error()
	}
	text, _ := splitEvents(string(out))
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	return fmt.Sprintf("%s\nexit code %d", strings.TrimSpace(text), code)
}

// shell is one running zkCli.sh.
type shell struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output chan string // pieces of text; closed at the end
	events []string
}

func openShell(t *testing.T, folder, address string) *shell {
	t.Helper()
	cmd := shellCommand(t, folder, address, "-waitforconnection")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	s := &shell{cmd: cmd, stdin: stdin, output: make(chan string)}
	go func() {
		defer close(s.output)
		defer read.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := read.Read(buffer)
			if n > 0 {
				s.output <- string(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		for range s.output {
		}
	})
	return s
}

// marker is what the command printwatches answers, which the shell does by
// itself even when it is not connected. Typed after each command it says that
// the command is done.
const marker = "printwatches is "

// exchange types one command and returns what the shell printed for it.
func (s *shell) exchange(command string) (string, error) {
	if _, err := io.WriteString(s.stdin, command+"\nprintwatches\n"); err != nil {
		return "", err
	}
	markers := 1
	if command == "printwatches" {
		markers = 2
	}
	text, err := s.collect(func(text string) bool {
		return strings.Count(text, marker) >= markers && strings.HasSuffix(text, "\n")
	})
	if command == "quit" && errors.Is(err, io.EOF) {
		err = nil
	}
	text, events := splitEvents(text)
	s.events = append(s.events, events...)
	return strings.TrimSpace(text), err
}

// collect reads until done says so.
func (s *shell) collect(done func(text string) bool) (string, error) {
	var text strings.Builder
	late := time.After(shellPatience)
	for !done(text.String()) {
		select {
		case piece, open := <-s.output:
			if !open {
				return text.String(), io.EOF
			}
			text.WriteString(piece)
		case <-late:
			return text.String(), fmt.Errorf("no end after %v", shellPatience)
		}
	}
	return text.String(), nil
}

// close ends the shell's input, which closes its session, and returns the rest
// of its text.
func (s *shell) close() (string, error) {
	s.stdin.Close()
	text, err := s.collect(func(string) bool { return false })
	if !errors.Is(err, io.EOF) {
		return text, err
	}
	text, events := splitEvents(text)
	s.events = append(s.events, events...)
	waitErr := s.cmd.Wait()
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		return text, waitErr
	}
	return fmt.Sprintf("%s\nexit code %d", strings.TrimSpace(text), s.cmd.ProcessState.ExitCode()), nil
}
