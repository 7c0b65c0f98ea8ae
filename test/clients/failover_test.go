package clients

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
	"github.com/zooraft/zooraft/test/zkcli"
)

// failovers is how often TestThroughFailover kills the leader. Three is the
// short form, which every run has.
var failovers = flag.Int("failovers", 3, "how often the leader is killed under the clients")

// failoverPatience bounds each wait for a state: a leader, a server that serves
// again, a client that goes on.
const failoverPatience = 2 * time.Minute

// TestThroughFailover connects Curator, kazoo, the Go client and zkCli.sh to
// three servers and kills the leader again and again, each time after all of
// them went on. Their own recipes must keep their promises: one lock holder, one
// leader, a cache that equals a full walk, a persistent node that comes back,
// and nothing acknowledged is lost. With -only apache it runs on the real
// server, to look at the test itself.
func TestThroughFailover(t *testing.T) {
	takeTurn(t)
	toolchain.Need(t, "java", "javac", "mvn", "python3")
	g := target{server: "zooraft", store: "wal", folder: t.TempDir()}
	if *only == "apache" {
		g = target{server: "apache", folder: g.folder}
	}
	commands := failoverPrograms(t)
	e := startTrio(t, g)
	cli := beginShell(t, g.folder, e.connect())
	typeUntil(t, cli, "create /cli", "Created /cli", "already exists")
	var programs []*program
	for name, command := range commands {
		programs = append(programs, startProgram(t, g.folder, name, append(command, e.connect())))
	}
	goesOn(t, programs)
	for n := range *failovers {
		leader := e.leader()
		e.servers[leader].Kill(t)
		e.leader()
		typeUntil(t, cli, fmt.Sprintf("create /cli/%d", n), "Created /cli/", "already exists")
		goesOn(t, programs)
		e.servers[leader].Start(t)
		e.servers[leader].WaitReady(t)
	}
	goesOn(t, programs)
	for _, p := range programs {
		p.judge(t)
	}
	typeUntil(t, cli, "sync /cli", "Sync is OK")
	for n := range *failovers {
		typeUntil(t, cli, fmt.Sprintf("stat /cli/%d", n), "cZxid = ")
	}
}

// failoverPrograms builds what runs while leaders die: name and command line,
// to which the servers' addresses are added.
func failoverPrograms(t *testing.T) map[string][]string {
	t.Helper()
	source := filepath.Join(toolchain.Root(), "test", "clients")
	jars := toolchain.ClassPath(t, filepath.Join(source, "curator", "pom.xml"))
	classes := toolchain.CompileJava(t, "curator", filepath.Join(source, "curator", "src"), jars)
	logback := filepath.Join(t.TempDir(), "logback.xml")
	if err := os.WriteFile(logback, []byte(quietLogback), 0o644); err != nil {
		t.Fatal(err)
	}
	goProgram := filepath.Join(toolchain.Build(t, "gozk"), "failover")
	toolchain.Run(t, filepath.Join(source, "gozk"), nil, "go", "build", "-o", goProgram, "./failover")
	return map[string][]string{
		"curator": {"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx256m",
			"-Dlogback.configurationFile=" + logback,
			"-cp", classes + string(filepath.ListSeparator) + jars, "zooraft.Failover"},
		"kazoo": {filepath.Join(kazooVenv(t), "bin", "python"), filepath.Join(source, "kazoo", "failover.py")},
		"gozk":  {goProgram},
	}
}

// trio is three servers of one ensemble.
type trio struct {
	t       *testing.T
	servers []*peer.Server
}

func startTrio(t *testing.T, g target) *trio {
	t.Helper()
	var lines []string
	for id := 1; id <= 3; id++ {
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", id, peer.FreePort(t), peer.FreePort(t)))
	}
	e := &trio{t: t}
	for id := 1; id <= 3; id++ {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "myid"), fmt.Appendln(nil, id), 0o644); err != nil {
			t.Fatal(err)
		}
		e.servers = append(e.servers, g.start(t, peer.Options{
			Config: map[string]string{"tickTime": "1000", "initLimit": "30", "syncLimit": "5",
				"maxSessionTimeout": "60000", "4lw.commands.whitelist": "*", "maxClientCnxns": "0"},
			Lines: lines, DataDir: dir, NoWait: true,
		}))
	}
	for _, s := range e.servers {
		s.WaitReady(t)
	}
	return e
}

// connect is what a client is given: all addresses.
func (e *trio) connect() string {
	var addresses []string
	for _, s := range e.servers {
		addresses = append(addresses, s.Address)
	}
	return strings.Join(addresses, ",")
}

// leader waits for a leader and returns its index.
func (e *trio) leader() int {
	e.t.Helper()
	found := -1
	eventually(e.t, "a leader", func() bool {
		for i, s := range e.servers {
			if text, err := peer.Word(s.Address, "srvr"); err == nil && strings.Contains(text, "Mode: leader") {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

// eventually waits for a state.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	late := time.After(failoverPatience)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !there() {
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("%s: not within %v", what, failoverPatience)
		}
	}
}

// typeUntil types a command until its text holds one of those wanted: without a
// server, or with one that falls, the shell says so and a user tries again.
func typeUntil(t *testing.T, cli *zkcli.Conversation, command string, wanted ...string) {
	t.Helper()
	last := ""
	late := time.Now().Add(failoverPatience)
	for time.Now().Before(late) {
		text, err := cli.Exchange(command)
		if err != nil {
			t.Fatalf("zkCli.sh: %s: %v\n%s", command, err, text)
		}
		for _, want := range wanted {
			if strings.Contains(text, want) {
				return
			}
		}
		last = text
	}
	t.Fatalf("zkCli.sh: %s: none of %q within %v, but %q", command, wanted, failoverPatience, last)
}

// program is a client that works until its input ends. It prints "progress"
// whenever each of its workers has done something, and at the end a verdict for
// each of its checks.
type program struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // closed when its output has ended

	mu       sync.Mutex
	progress int          // guarded by mu
	output   bytes.Buffer // all but progress; guarded by mu
}

func startProgram(t *testing.T, folder, name string, command []string) *program {
	t.Helper()
	p := &program{name: name, cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	log, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stdout)
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
		p.cmd.Wait()
		if t.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("the end of what %s logged:\n%s", name, toolchain.Tail(string(text), 40))
			}
		}
	})
	return p
}

func (p *program) read(stdout io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		p.mu.Lock()
		if lines.Text() == "progress" {
			p.progress++
		} else {
			fmt.Fprintln(&p.output, lines.Text())
		}
		p.mu.Unlock()
	}
}

func (p *program) progressed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// goesOn waits until every worker of every program has done something that began
// after the call: the first progress may be about what was done before.
func goesOn(t *testing.T, programs []*program) {
	t.Helper()
	for _, p := range programs {
		before := p.progressed()
		eventually(t, p.name+" goes on", func() bool {
			select {
			case <-p.ended:
				t.Fatalf("%s ended by itself: %s", p.name, p.output.String())
			default:
			}
			return p.progressed() >= before+2
		})
	}
}

// judge ends the program and fails the test for each verdict that is no pass.
func (p *program) judge(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(failoverPatience):
		t.Errorf("%s: no verdicts within %v", p.name, failoverPatience)
		return
	}
	tests := readVerdicts(t, p.output.String())
	for name, result := range tests {
		if result.Status != Passed {
			t.Errorf("%s: %s: %s", p.name, name, result.Detail)
		}
	}
	t.Logf("%s: %d checks through %d failovers, progress %d times", p.name, len(tests), *failovers, p.progressed())
}
