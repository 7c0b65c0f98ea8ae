package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// patience bounds how long one command may take; it is only met by a hang.
const patience = 60 * time.Second

// exchange is a line of a script of testdata/zkcli, in the form that test/clients
// describes. They are this suite's own, because the record goes with them.
type exchange struct {
	name             string // number and line
	session, command string // session is empty for a shell of its own
}

func readScript(t *testing.T, base string) []exchange {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "zkcli", base+".script"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var script []exchange
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		e := exchange{name: fmt.Sprintf("%d %s", number, line)}
		if command, own := strings.CutPrefix(line, "$ "); own {
			e.command = command
		} else {
			e.session, e.command, _ = strings.Cut(line, "> ")
		}
		script = append(script, e)
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

// zkCli is the real one, without logs and without JLine, which would draw a
// terminal.
func zkCli(t testing.TB, address string, args ...string) *exec.Cmd {
	logback := filepath.Join(t.TempDir(), "logback.xml")
	if err := os.WriteFile(logback, []byte(`<configuration><root level="OFF"/></configuration>`), 0o644); err != nil {
		t.Fatal(err)
	}
	jars := slices.DeleteFunc(filepath.SplitList(peer.ApacheClasspath(t)), func(jar string) bool {
		return strings.Contains(filepath.Base(jar), "jline")
	})
	java := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dlogback.configurationFile=" + logback,
		"-cp", strings.Join(jars, string(filepath.ListSeparator)), peer.ApacheShellClass, "-server", address}
	return exec.Command("java", append(java, args...)...)
}

// serverOptions are those of the scripts in test/clients.
func serverOptions() peer.Options {
	return peer.Options{Defines: map[string]string{
		"zookeeper.extendedTypesEnabled":                     "true",
		"zookeeper.enforceQuota":                             "true",
		"zookeeper.DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
		"zookeeper.DigestAuthenticationProvider.enabled":     "true",
		"zookeeper.4lw.commands.whitelist":                   "*",
	}}
}

// play plays a script with a shell and returns the masked text of each exchange,
// and the events of each session under its name.
func play(t *testing.T, start program, address string, script []exchange) map[string]string {
	t.Helper()
	texts := map[string]string{}
	sessions := map[string]*conversation{}
	for _, e := range script {
		command := strings.ReplaceAll(e.command, "ADDRESS", address)
		if e.session == "" {
			texts[e.name] = mask(oneShot(t, start, address, command), address)
			continue
		}
		s := sessions[e.session]
		if s == nil {
			s = converse(t, start(t, address, "-waitforconnection"))
			sessions[e.session] = s
		}
		text, err := s.exchange(command)
		if err != nil {
			t.Errorf("%s: the shell broke off: %v", e.name, err)
		}
		texts[e.name] = mask(text, address)
	}
	for name, s := range sessions {
		s.close()
		texts["events of session "+name] = mask(strings.Join(s.events, "\n"), address)
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
	text, _ := splitEvents(string(out))
	return fmt.Sprintf("%s\nfailed: %v", strings.TrimSpace(text), exit != nil)
}

// conversation is one shell that reads lines.
type conversation struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output chan string
	events []string
}

func converse(t *testing.T, cmd *exec.Cmd) *conversation {
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
	s := &conversation{cmd: cmd, stdin: stdin, output: make(chan string)}
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

// marker is what the command printwatches answers even without a connection:
// typed after each command it says that the command is done.
const marker = "printwatches is "

func (s *conversation) exchange(command string) (string, error) {
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

func (s *conversation) collect(done func(text string) bool) (string, error) {
	var text strings.Builder
	late := time.After(patience)
	for !done(text.String()) {
		select {
		case piece, open := <-s.output:
			if !open {
				return text.String(), io.EOF
			}
			text.WriteString(piece)
		case <-late:
			return text.String(), fmt.Errorf("no end after %v", patience)
		}
	}
	return text.String(), nil
}

func (s *conversation) close() {
	s.stdin.Close()
	text, _ := s.collect(func(string) bool { return false })
	_, events := splitEvents(text)
	s.events = append(s.events, events...)
	_ = s.cmd.Wait() // its exit code is that of its last command
}

var eventBlock = regexp.MustCompile(`\n?WATCHER::\n\n(WatchedEvent [^\n]*)\n`)

// splitEvents takes the events out of a shell's text: they are printed from
// another thread than answers, so their place says nothing. Those of the
// connection are left out, because ours prints none where a program reads.
func splitEvents(text string) (rest string, events []string) {
	for _, match := range eventBlock.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(match[1], "type:None") {
			events = append(events, match[1])
		}
	}
	return eventBlock.ReplaceAllString(text, "\n"), events
}

// What must differ between two runs is masked: times, session ids, and of a
// zxid its epoch. So is what zkCli prints and ours does not on purpose: banner,
// the help below an unknown command, Java's names of exceptions.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^(Connecting to .*|Welcome to ZooKeeper!|JLine support is disabled)\n`), ""},
	{regexp.MustCompile(`(?m)^ZooKeeper -server host:port .*\n(\t.*\n)*`), ""},
	// zkCli says so after every command, those included that need no connection.
	{regexp.MustCompile(`(?m)^Not connected\n`), ""},
	{regexp.MustCompile(`org\.apache\.commons\.cli\.\w+: `), ""},
	{regexp.MustCompile(`(?m)^([cm]time) = .*$`), "$1 = TIME"},
	{regexp.MustCompile(`(?m)^(ephemeralOwner) = 0x[1-9a-f][0-9a-f]*$`), "$1 = SESSION"},
	{regexp.MustCompile(`0x[1-9a-f][0-9a-f]{10,}`), "SESSION"},
	{regexp.MustCompile(`(?m)^ZooKeeper CLI version: .*$`), "ZooKeeper CLI version: ITS OWN"},
}

var (
	zxidLine   = regexp.MustCompile(`(?m)^([cmp]Zxid) = 0x([0-9a-f]+)$`)
	eventZxid  = regexp.MustCompile(`zxid: (\d+)`)
	identities = regexp.MustCompile(`Auth scheme: User(\n\w+: \S*)+`)
)

func mask(text, address string) string {
	text = strings.ReplaceAll(text+"\n", address, "ADDRESS")
	text = zxidLine.ReplaceAllStringFunc(text, func(line string) string {
		parts := zxidLine.FindStringSubmatch(line)
		zxid, err := strconv.ParseUint(parts[2], 16, 64)
		if err != nil || zxid > 1<<63 {
			return line
		}
		return fmt.Sprintf("%s = counter %d", parts[1], uint32(zxid))
	})
	text = eventZxid.ReplaceAllStringFunc(text, func(field string) string {
		zxid, err := strconv.ParseUint(strings.TrimPrefix(field, "zxid: "), 10, 64)
		if err != nil {
			return field
		}
		return fmt.Sprintf("zxid: counter %d", uint32(zxid))
	})
	text = identities.ReplaceAllStringFunc(text, func(block string) string {
		lines := strings.Split(block, "\n")
		slices.Sort(lines[1:])
		return strings.Join(lines, "\n")
	})
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return strings.TrimSpace(text)
}
