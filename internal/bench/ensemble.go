package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrEnsemble is returned when servers that a measurement starts do not serve.
var ErrEnsemble = errors.New("bench: the ensemble does not serve")

// ensemble are server processes of one kind on loopback, with a directory of
// their own. It belongs to one goroutine.
type ensemble struct {
	dir     string
	command []string // the path of zoo.cfg is added
	servers []*process
}

// process is one server.
type process struct {
	dir, address string
	cmd          *exec.Cmd
	done         chan struct{} // closed when cmd has been waited for
}

// newEnsemble starts n servers with the settings that Apache's sample file has,
// and waits until all serve. On an error it leaves none behind.
func newEnsemble(ctx context.Context, dir string, command []string, n int) (_ *ensemble, err error) {
	e := &ensemble{dir: dir, command: command}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	ports, err := freePorts(3 * n)
	if err != nil {
		return nil, err
	}
	lines := ""
	for i := range n {
		lines += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", i+1, ports[3*i], ports[3*i+1])
	}
	for i := range n {
		s := &process{dir: filepath.Join(dir, fmt.Sprint(i+1)), address: fmt.Sprintf("127.0.0.1:%d", ports[3*i+2])}
		config := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
			"maxClientCnxns=0\n4lw.commands.whitelist=srvr\nadmin.enableServer=false\n%s", s.dir, ports[3*i+2], lines)
		err := errors.Join(os.MkdirAll(s.dir, 0o755),
			os.WriteFile(filepath.Join(s.dir, "myid"), fmt.Appendf(nil, "%d\n", i+1), 0o644),
			os.WriteFile(filepath.Join(s.dir, "zoo.cfg"), []byte(config), 0o644))
		if err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
		if err := e.start(s); err != nil {
			return nil, err
		}
	}
	return e, e.awaitAll(ctx)
}

// Ports below those that Linux gives to whoever asks for any: nobody gets one of
// them while a server that was killed is down.
const firstPort, lastPort = 10240, 32767

// freePorts takes ports that nobody listens on, all at once so that they differ.
func freePorts(n int) (ports []int, err error) {
	for len(ports) < n {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, port)
	}
	return ports, nil
}

// start starts a process that does not run; what it says goes into its
// directory.
func (e *ensemble) start(s *process) error {
	out, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	args := append(append([]string{}, e.command[1:]...), filepath.Join(s.dir, "zoo.cfg"))
	cmd := exec.Command(e.command[0], args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed, or its log says why it ended
	}()
	return nil
}

// kill ends a process as kill -9 does.
func (s *process) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // it has ended if it cannot be killed
		<-s.done
	}
}

// mode is what srvr says that a server is; empty if it does not serve.
func (s *process) mode() string {
	c, err := net.DialTimeout("tcp", s.address, time.Second)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return ""
	}
	text, _ := io.ReadAll(c) // what came is judged
	_, after, _ := strings.Cut(string(text), "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

// leader is the server that says that it leads, nil if none does.
func (e *ensemble) leader() *process {
	for _, s := range e.servers {
		if s.mode() == "leader" {
			return s
		}
	}
	return nil
}

// startPatience is how long servers may take to serve: 60 s.
const startPatience = time.Minute

// awaitAll waits until all servers serve and one leads.
func (e *ensemble) awaitAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		serving := 0
		for _, s := range e.servers {
			if s.mode() != "" {
				serving++
			}
		}
		if serving == len(e.servers) && e.leader() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d servers serve; their logs are below %s", ErrEnsemble, serving, len(e.servers), e.dir)
		case <-poll.C:
		}
	}
}

func (e *ensemble) addresses() (all []string) {
	for _, s := range e.servers {
		all = append(all, s.address)
	}
	return all
}

// close ends all processes.
func (e *ensemble) close() {
	for _, s := range e.servers {
		s.kill()
	}
}
