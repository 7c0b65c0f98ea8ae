package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Options says how a server is started. The zero value is a standalone server
// with a free port, a fresh data directory and its defaults.
type Options struct {
	// Config holds zoo.cfg keys. They override the ones that newServer sets:
	// tickTime, dataDir, clientPort, clientPortAddress.
	Config map[string]string
	// Lines are added to the end of zoo.cfg as they are.
	Lines []string
	// Defines are Java properties, by full name ("zookeeper.skipACL").
	Defines map[string]string
	// JVMArgs are for the real server only, Args (after `serve zoo.cfg`) for
	// zooraft only.
	JVMArgs, Args []string
	// Env is added to the environment, as NAME=value.
	Env []string
	// DataDir is used as it is; a fresh one when empty.
	DataDir string
	// Jaas is the content of a JAAS file for java.security.auth.login.config.
	Jaas string
	// Program is the folder of a program to build and start instead of zooraft
	// ("./test/faults/crooked"), with the same arguments.
	Program string
	// Wrapper is a program with arguments that runs the server, by becoming it.
	Wrapper []string
	// Race takes a zooraft built with the race detector.
	Race bool
	// NoWait makes Start return before the server serves. WaitReady waits.
	NoWait bool
}

// ReadyTimeout is how long a start may take before the test fails. It only
// bounds a broken start: 60 s allows for a machine under load.
const ReadyTimeout = 60 * time.Second

// stopTimeout is how long SIGTERM may take before the test fails.
const stopTimeout = 30 * time.Second

// Server is a server process. Its methods are for one goroutine, except Log
// and Done.
type Server struct {
	// Kind is "apache" or "zooraft".
	Kind string
	// Address is the client port's, on loopback. It stays over a restart.
	Address string
	// DataDir, ConfigFile and WorkDir are paths; the process runs in WorkDir.
	DataDir, ConfigFile, WorkDir string

	tb      testing.TB
	opts    Options
	command []string
	log     logBuffer
	run     *run // the current process, nil before the first start
}

// run is one life of a server's process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been waited for
	err  error         // of Wait; readable once done is closed
}

func newServer(tb testing.TB, kind string, opts Options) *Server {
	tb.Helper()
	s := &Server{Kind: kind, tb: tb, opts: opts, WorkDir: tb.TempDir(), DataDir: opts.DataDir}
	if s.DataDir == "" {
		s.DataDir = filepath.Join(s.WorkDir, "data")
	}
	if err := os.MkdirAll(s.DataDir, 0o755); err != nil {
		tb.Fatalf("peer: %v", err)
	}
	s.ConfigFile = filepath.Join(s.WorkDir, "zoo.cfg")
	s.configure(FreePort(tb))
	return s
}

// configure writes zoo.cfg with the given client port.
func (s *Server) configure(port int) {
	conf := map[string]string{
		"tickTime":          "2000",
		"dataDir":           s.DataDir,
		"clientPort":        fmt.Sprint(port),
		"clientPortAddress": "127.0.0.1",
	}
	maps.Copy(conf, s.opts.Config)
	s.Address = net.JoinHostPort(conf["clientPortAddress"], conf["clientPort"])
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s=%s\n", k, conf[k])
	}
	for _, l := range s.opts.Lines {
		fmt.Fprintln(&b, l)
	}
	s.writeFile("zoo.cfg", b.String())
}

func (s *Server) writeFile(name, content string) string {
	path := filepath.Join(s.WorkDir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.tb.Fatalf("peer: %v", err)
	}
	return path
}

// Start starts the process, which must not be running, and waits until it
// serves unless Options.NoWait is set. If another process took the port in
// the meantime, a first start tries again with another one.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	first := s.run == nil
	for try := 0; ; try++ {
		s.spawn(tb)
		if s.opts.NoWait {
			return
		}
		err := s.AwaitReady(ReadyTimeout)
		if err == nil {
			return
		}
		_, fixed := s.opts.Config["clientPort"]
		if first && !fixed && try < 3 && s.exited() && portTaken(s.Log()) {
			s.configure(FreePort(tb))
			continue
		}
		s.Kill(tb)
		tb.Fatalf("peer: %s did not start: %v\n%s", s.Kind, err, tail(s.Log(), 8000))
	}
}

// Launch starts the process, which must not be running, and does not wait:
// for a start that may be refused.
func (s *Server) Launch(tb testing.TB) {
	tb.Helper()
	s.spawn(tb)
}

func portTaken(log string) bool {
	l := strings.ToLower(log)
	return strings.Contains(l, "address already in use") || strings.Contains(l, "bindexception")
}

// spawn starts the process from a goroutine that keeps its thread until the
// process has ended: the kernel's parent-death signal is bound to the thread,
// and it is what ends the server when the test binary dies.
func (s *Server) spawn(tb testing.TB) {
	tb.Helper()
	if s.run != nil && !s.exited() {
		tb.Fatalf("peer: %s is running already", s.Kind)
	}
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir = s.WorkDir
	cmd.Env = append(os.Environ(), s.opts.Env...)
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	first := s.run == nil
	r := &run{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			r.err = cmd.Wait()
			close(r.done)
		}
	}()
	if err := <-started; err != nil {
		tb.Fatalf("peer: starting %s: %v", s.Kind, err)
	}
	s.run = r
	if first {
		s.tb.Cleanup(func() {
			s.Kill(s.tb)
			if log := s.Log(); strings.Contains(log, "WARNING: DATA RACE") {
				s.tb.Errorf("peer: the race detector found a race:\n%s", tail(log, 16000))
			}
		})
	}
}

func (s *Server) exited() bool {
	select {
	case <-s.run.done:
		return true
	default:
		return false
	}
}

// errExited is returned when a server ended while a test waited for it.
var errExited = errors.New("the process has ended")

// AwaitReady waits until the server answers the word srvr with a mode, and
// fails when its process ends first.
func (s *Server) AwaitReady(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		text, err := Word(s.Address, "srvr")
		if err == nil && strings.Contains(text, "Mode: ") {
			return nil
		}
		select {
		case <-s.run.done:
			return fmt.Errorf("%w: %v", errExited, s.run.err)
		case <-ctx.Done():
			return fmt.Errorf("not serving after %v: srvr says %q, %v", timeout, text, err)
		case <-poll.C:
		}
	}
}

// WaitReady is AwaitReady for tests: it fails the test on an error.
func (s *Server) WaitReady(tb testing.TB) {
	tb.Helper()
	if err := s.AwaitReady(ReadyTimeout); err != nil {
		tb.Fatalf("peer: %s: %v\n%s", s.Kind, err, tail(s.Log(), 8000))
	}
}

// Done is closed when the current process has ended.
func (s *Server) Done() <-chan struct{} { return s.run.done }

// PID returns the current process's id.
func (s *Server) PID() int { return s.run.cmd.Process.Pid }

// Wait waits until the process has ended by itself and returns its exit code.
func (s *Server) Wait(tb testing.TB, timeout time.Duration) int {
	tb.Helper()
	select {
	case <-s.run.done:
	case <-time.After(timeout):
		tb.Fatalf("peer: %s is still running after %v\n%s", s.Kind, timeout, tail(s.Log(), 8000))
	}
	return s.run.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the process, SIGSTOP and SIGCONT included.
func (s *Server) Signal(tb testing.TB, sig os.Signal) {
	tb.Helper()
	if err := s.run.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatalf("peer: signal %v to %s: %v", sig, s.Kind, err)
	}
}

// Stop ends the process with SIGTERM, waits for it and returns its exit code
// (Java's is 143 for SIGTERM).
func (s *Server) Stop(tb testing.TB) int {
	tb.Helper()
	s.Signal(tb, syscall.SIGTERM)
	return s.Wait(tb, stopTimeout)
}

// Kill ends the process with SIGKILL and waits for it. A process that is not
// running is no error.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	if s.run == nil || s.exited() {
		return
	}
	s.Signal(tb, syscall.SIGKILL)
	s.Wait(tb, stopTimeout)
}

// Restart stops the process if it runs (SIGTERM) and starts it again on the
// same data and port.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if !s.exited() {
		s.Stop(tb)
	}
	s.Start(tb)
}

// TB returns the test that started the server and will end it.
func (s *Server) TB() testing.TB { return s.tb }

// Log returns what all runs of the server have written to standard output and
// standard error so far.
func (s *Server) Log() string { return s.log.String() }

// Ports are drawn from below the range that the kernel gives to outgoing
// connections and to listeners on port 0.
const firstPort, lastPort = 10240, 32767

// FreePort returns a loopback TCP port that nobody listens on and that is given to
// nobody else, in this process or in another that runs these tests, until it ends: a
// server that is down keeps its port.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !claim(port) {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	tb.Fatalf("peer: no free port in 1000 tries")
	return 0
}

// claims are the locked files of the ports of this process; the lock of a file ends
// with it.
var claims sync.Map // port to *os.File

// claim locks the file that stands for a port.
func claim(port int) bool {
	dir := filepath.Join(os.TempDir(), "zooraft-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		f.Close()
		return false
	}
	claims.Store(port, f)
	return true
}

// Word sends a four-letter word over a connection of its own and returns the
// answer, which ends with the server's close.
func Word(addr, word string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// tail returns at most the last n bytes of s.
func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// logBuffer collects a process's output.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write adds output.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns the output so far.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
