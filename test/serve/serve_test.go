package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// waitLimit bounds what must happen at all; it measures nothing.
const waitLimit = 60 * time.Second

// process is one run of the command.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out strings.Builder
}

// Write collects what the process prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// start runs `zooraft serve` in a directory.
func start(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(peer.ZooraftBinary(t, false), append([]string{"serve"}, args...)...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p, p
	p.cmd.Env = append(os.Environ(), env...)
	p.run()
	return p
}

// run starts the process and ends it with the test.
func (p *process) run() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code is read from ProcessState
	}()
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	})
}

// exit waits for the end and compares the exit code.
func (p *process) exit(want int) string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(waitLimit):
		p.t.Fatalf("still running:\n%s", p.text())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Fatalf("exit code %d, want %d:\n%s", got, want, p.text())
	}
	return p.text()
}

// announced waits for the line that says where the server is, and returns it.
func (p *process) announced() string {
	p.t.Helper()
	deadline := time.Now().Add(waitLimit)
	for {
		for line := range strings.Lines(p.text()) {
			if strings.HasPrefix(line, "zooraft listens on ") {
				return strings.TrimSpace(line)
			}
		}
		select {
		case <-p.done:
			p.t.Fatalf("ended early:\n%s", p.text())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("said nothing:\n%s", p.text())
		}
	}
}

// address is where the announced server listens.
func (p *process) address() string {
	line := p.announced()
	addr, _, _ := strings.Cut(strings.TrimPrefix(line, "zooraft listens on "), ",")
	return addr
}

func dial(t *testing.T, addr string) *client.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	c, err := client.Dial(ctx, addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tree is the content of a directory, for comparison.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v", path, info.Mode(), info.ModTime())
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(content))
		}
		b.WriteByte('\n')
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBareServeSaysWhereItIsAndStopsOnSignals(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, dir, nil, "--listen", "127.0.0.1:0", "--port-file", "port")
			line := p.announced()
			port, err := os.ReadFile(filepath.Join(dir, "port"))
			if err != nil {
				t.Fatal(err)
			}
			addr := net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(port)))
			for _, want := range []string{"listens on " + addr, "data in " + filepath.Join(dir, "zooraft-data"), "zkCli.sh -server " + addr} {
				if !strings.Contains(line, want) {
					t.Errorf("%q lacks %q", line, want)
				}
			}
			c := dial(t, addr)
			if _, err := c.Create(context.Background(), "/kept", nil, 0); err != nil {
				t.Fatal(err)
			}
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			text := p.exit(0)
			if n := strings.Count(text, "zooraft listens on"); n != 1 {
				t.Errorf("announced %d times", n)
			}
			again := start(t, dir, nil, "--listen", "127.0.0.1:0")
			if _, err := dial(t, again.address()).Exists(context.Background(), "/kept", false); err != nil {
				t.Fatalf("after the restart: %v", err)
			}
		})
	}
}

func TestBareServeAllowsEveryReadOnlyWordAndTTLNodes(t *testing.T) {
	p := start(t, t.TempDir(), nil, "--listen", "127.0.0.1:0")
	addr := p.address()
	for _, word := range []string{"ruok", "srvr", "stat", "mntr", "cons", "conf", "envi", "dump", "dirs", "wchs", "wchc", "wchp", "isro", "gtmk", "hash"} {
		text, err := peer.Word(addr, word)
		if err != nil || strings.Contains(text, "whitelist") {
			t.Errorf("%s: %q, %v", word, text, err)
		}
	}
	for _, word := range []string{"srst", "crst"} {
		if text, err := peer.Word(addr, word); err != nil || !strings.Contains(text, "whitelist") {
			t.Errorf("%s: %q, %v", word, text, err)
		}
	}
	r := proto.CreateRequest{Path: "/ttl", ACL: proto.OpenACL, Flags: proto.CreatePersistentTTL, TTL: 1000}
	if _, err := dial(t, addr).Do(proto.OpCreateTTL, r.Append(nil, proto.OpCreateTTL)).Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestAFreePortFromTheFileAndFromPositionalArguments(t *testing.T) {
	dir := t.TempDir()
	cfg := write(t, filepath.Join(dir, "zoo.cfg"), "\ufefftickTime = 2000\r\n\r\n# a comment\r\ndataDir="+dir+"/d1\r\nclientPort=1\r\nclientPort=0\r\nclientPortAddress=127.0.0.1\r\nsomethingNew=1\r\n")
	p := start(t, dir, nil, cfg)
	dial(t, p.address())
	if text := p.text(); !strings.Contains(text, "somethingNew") {
		t.Errorf("no warning names the unknown key:\n%s", text)
	}
	q := start(t, dir, nil, "0", filepath.Join(dir, "d2"), "1000", "5")
	_, port, err := net.SplitHostPort(q.address())
	if err != nil {
		t.Fatal(err)
	}
	text, err := peer.Word(net.JoinHostPort("127.0.0.1", port), "srvr")
	if err != nil || !strings.Contains(text, "Mode: standalone") {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestJavaPropertiesComeByDefinesAndEnvironment(t *testing.T) {
	for name, row := range map[string]struct{ env, args []string }{
		"-D":              {nil, []string{"-Djute.maxbuffer=0x1000"}},
		"SERVER_JVMFLAGS": {[]string{"SERVER_JVMFLAGS=-Xmx1g -Djute.maxbuffer=4096"}, nil},
		"JVMFLAGS":        {[]string{"JVMFLAGS=-Djute.maxbuffer=4096 -server"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, t.TempDir(), row.env, append([]string{"--listen", "127.0.0.1:0"}, row.args...)...)
			c := dial(t, p.address())
			if _, err := c.Create(context.Background(), "/fits", make([]byte, 4000), 0); err != nil {
				t.Fatalf("below the limit: %v", err)
			}
			if _, err := c.Create(context.Background(), "/over", make([]byte, 4097), 0); err == nil {
				t.Fatal("above the limit was taken")
			}
		})
	}
}

func TestImpossibleValuesStopTheStartAndTouchNothing(t *testing.T) {
	for name, row := range map[string]struct{ line, names string }{
		"tickTime":    {"tickTime=soon", "tickTime"},
		"clientPort":  {"clientPort=99999", "clientPort"},
		"session":     {"minSessionTimeout=9000\nmaxSessionTimeout=8000", "minSessionTimeout"},
		"boolean":     {"standaloneEnabled=perhaps", "standaloneEnabled"},
		"snapRetain":  {"raftLogStore=paper", "raftLogStore"},
		"no data dir": {"dataDir=", "dataDir"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := write(t, filepath.Join(dir, "zoo.cfg"), "dataDir="+dir+"/data\nclientPort=0\n"+row.line+"\n")
			before := tree(t, dir)
			text := start(t, dir, nil, cfg).exit(2)
			if !strings.Contains(text, row.names) || !strings.Contains(text, "zoo.cfg") {
				t.Errorf("the message names neither key nor file:\n%s", text)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("the directory changed:\n%s\n%s", before, after)
			}
		})
	}
}

func TestProtectionThatIsNotBuiltStopsTheStart(t *testing.T) {
	for _, line := range []string{
		"secureClientPort=2281", "sslQuorum=true", "ssl.keyStore.location=/k", "client.portUnification=true",
		"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "sessionRequireClientSASLAuth=true",
		"enforce.auth.enabled=true", "quorum.auth.enableSasl=true", "audit.enable=true",
	} {
		key, _, _ := strings.Cut(line, "=")
		t.Run(key, func(t *testing.T) {
			dir := t.TempDir()
			cfg := write(t, filepath.Join(dir, "zoo.cfg"), "dataDir="+dir+"/data\nclientPort=0\nclientPortAddress=127.0.0.1\n"+line+"\n")
			if text := start(t, dir, nil, cfg).exit(2); !strings.Contains(text, key) {
				t.Errorf("the message does not name the key:\n%s", text)
			}
			dial(t, start(t, dir, nil, cfg, "--allow-unprotected").address())
		})
	}
}

func TestOneServerLineRunsAServerAlone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "myid"), "1\n")
	one := write(t, filepath.Join(dir, "one.cfg"), "dataDir="+dir+"\nclientPortAddress=127.0.0.1\nserver.1=127.0.0.1:2888:3888;127.0.0.1:0\n")
	dial(t, start(t, dir, nil, one).address())
}

// The server never starts empty beside Apache's data, and leaves them alone.
func TestADirectoryOfTheRealServerIsRefusedAndLeftAlone(t *testing.T) {
	real := peer.StartApache(t, peer.Options{Config: map[string]string{"snapCount": "10"}})
	c := dial(t, real.Address)
	for range 60 {
		if _, err := c.Create(context.Background(), "/n-", []byte("theirs"), proto.CreatePersistentSequential); err != nil {
			t.Fatal(err)
		}
	}
	real.Stop(t)
	newest := ""
	entries, err := os.ReadDir(filepath.Join(real.DataDir, "version-2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, "snapshot.") && (len(n) > len(newest) || len(n) == len(newest) && n > newest) {
			newest = n
		}
	}
	before := tree(t, real.DataDir)
	for name, lines := range map[string]string{
		"dataDir":    "dataDir=" + real.DataDir,
		"dataLogDir": "dataDir=" + t.TempDir() + "\ndataLogDir=" + real.DataDir,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := write(t, filepath.Join(dir, "zoo.cfg"), lines+"\nclientPort=0\n")
			text := start(t, dir, nil, cfg).exit(3)
			if !strings.Contains(text, newest) || !strings.Contains(text, "Importing it is a separate command") {
				t.Errorf("the message names neither %s nor the way out:\n%s", newest, text)
			}
			if after := tree(t, real.DataDir); after != before {
				t.Errorf("the directory changed:\n%s\n%s", before, after)
			}
		})
	}
}

func TestAPortInUseIsAClearError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := start(t, t.TempDir(), nil, "--listen", l.Addr().String())
	if text := p.exit(1); !strings.Contains(text, l.Addr().String()) {
		t.Errorf("the message does not name the address:\n%s", text)
	}
}
