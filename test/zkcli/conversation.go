package zkcli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// Patience is how long one command of a shell may take. It only bounds a hang:
// zkCli.sh itself waits 30 s for a lost server.
const Patience = 60 * time.Second

// Command is the real shell, to be started with arguments after -server ADDRESS:
// without logs, and without JLine, which would draw a terminal. The folder is for
// its logging's configuration.
func Command(t testing.TB, folder, address string, args ...string) *exec.Cmd {
	t.Helper()
	logback := filepath.Join(folder, "logback.xml")
	if err := os.WriteFile(logback, []byte(`<configuration><root level="OFF"/></configuration>`), 0o644); err != nil {
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

// Conversation is one running shell.
type Conversation struct {
	// Events are the lines of the watch events so far, in their order.
	Events []string

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output chan string // pieces of text; closed at the end
}

// Begin starts a shell. It is killed at the end of the test if it still runs.
func Begin(t testing.TB, cmd *exec.Cmd) *Conversation {
	t.Helper()
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
	c := &Conversation{cmd: cmd, stdin: stdin, output: make(chan string)}
	go c.read(read)
	t.Cleanup(func() {
		cmd.Process.Kill()
		for range c.output {
		}
	})
	return c
}

func (c *Conversation) read(from *os.File) {
	defer close(c.output)
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			c.output <- string(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// Marker is what the command printwatches answers, which a shell does by itself
// even when it is not connected. Typed after each command it says that the
// command is done.
const Marker = "printwatches is "

// Exchange types one command and returns what the shell printed for it, Marker's
// line included and events left out.
func (c *Conversation) Exchange(command string) (string, error) {
	if _, err := io.WriteString(c.stdin, command+"\nprintwatches\n"); err != nil {
		return "", err
	}
	markers := 1
	if command == "printwatches" {
		markers = 2
	}
	text, err := c.collect(func(text string) bool {
		return strings.Count(text, Marker) >= markers && strings.HasSuffix(text, "\n")
	})
	if command == "quit" && errors.Is(err, io.EOF) {
		err = nil
	}
	text, events := SplitEvents(text)
	c.Events = append(c.Events, events...)
	return strings.TrimSpace(text), err
}

// collect reads until done says so.
func (c *Conversation) collect(done func(text string) bool) (string, error) {
	var text strings.Builder
	late := time.After(Patience)
	for !done(text.String()) {
		select {
		case piece, open := <-c.output:
			if !open {
				return text.String(), io.EOF
			}
			text.WriteString(piece)
		case <-late:
			return text.String(), fmt.Errorf("no end after %v", Patience)
		}
	}
	return text.String(), nil
}

// Close ends the shell's input, which closes its session, and returns the rest
// of its text and its exit code.
func (c *Conversation) Close() (string, error) {
	c.stdin.Close()
	text, err := c.collect(func(string) bool { return false })
	if !errors.Is(err, io.EOF) {
		return text, err
	}
	text, events := SplitEvents(text)
	c.Events = append(c.Events, events...)
	waitErr := c.cmd.Wait()
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		return text, waitErr
	}
	return fmt.Sprintf("%s\nexit code %d", strings.TrimSpace(text), c.cmd.ProcessState.ExitCode()), nil
}
