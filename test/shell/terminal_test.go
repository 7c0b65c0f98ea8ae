package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zooraft/zooraft/test/peer"
)

// screen is a shell at a terminal of its own.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File

	mu   sync.Mutex
	text strings.Builder // guarded by mu; all that was drawn
	seen int             // guarded by mu; how much of it has been waited for
	done chan struct{}   // closed at the terminal's end
}

// openScreen starts the program at a terminal.
func openScreen(t *testing.T, home string, args ...string) *screen {
	t.Helper()
	cmd := exec.Command(peer.ZooraftBinary(t, false), append([]string{"shell"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "TERM=xterm")
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, cmd: cmd, file: file, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buffer := make([]byte, 4096)
		for {
			n, err := file.Read(buffer)
			s.mu.Lock()
			s.text.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		file.Close()
		<-s.done
	})
	return s
}

func (s *screen) typed(keys string) {
	s.t.Helper()
	if _, err := s.file.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until a text is drawn after what was waited for before.
func (s *screen) shows(text string) {
	s.t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		at := strings.Index(s.text.String()[s.seen:], text)
		if at >= 0 {
			s.seen += at + len(text)
		}
		all := s.text.String()
		s.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("the terminal does not show %q:\n%s", text, all)
		}
	}
}

func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// ends waits for the end of the program and returns its exit code.
func (s *screen) ends() int {
	s.t.Helper()
	<-s.done
	_ = s.cmd.Wait() // the exit code says it
	return s.cmd.ProcessState.ExitCode()
}

func TestThePromptCompletesCommandsAndPathsAndKeepsItsHistory(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	for _, path := range []string{"/apple", "/apple/seed", "/apricot", "/pear", "/my tree", "/my tree/two words"} {
		must(t, server.Address, "", "create", path, "data of "+path)
	}
	home := t.TempDir()
	s := openScreen(t, home, "-server", server.Address, "-waitforconnection")
	s.shows("[zk: " + server.Address + "(CONNECTED) 0] ")
	s.typed("getAl\t/\r") // the command has one completion
	s.shows("getAllChildrenNumber /")
	s.shows("9\r\n")
	s.shows("(CONNECTED) 1] ")
	s.typed("get /ap\t\t") // first what both have, then the choice
	s.shows("/apple    /apricot")
	s.typed("r\t\r")
	s.shows("data of /apricot\r\n")
	s.typed("get /apple/\t\r")
	s.shows("data of /apple/seed\r\n")
	s.typed("get /my\t/\t\r") // what has blanks is put into quotes
	s.shows("data of /my tree/two words\r\n")
	s.typed("get /apple/seed\r")
	s.shows("data of /apple/seed\r\n")
	s.typed("create --fi\t")
	s.shows("--file ")
	s.typed("\x03") // an interrupt at the prompt gives up the line
	s.typed("\x1b[A\r")
	s.shows("data of /apple/seed\r\n")
	s.typed("quit\r")
	if code := s.ends(); code != 0 {
		t.Errorf("quit gave exit code %d", code)
	}
	again := openScreen(t, home, "-server", server.Address, "-waitforconnection")
	again.shows("(CONNECTED) 0] ")
	again.typed("\x1b[A\x1b[A\r") // before quit
	again.shows("data of /apple/seed\r\n")
	again.typed("\x04")
	again.ends()
}

func TestThePromptPrintsEventsAndSaysWhenTheServerIsGone(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	s := openScreen(t, t.TempDir(), "-server", server.Address, "-waitforconnection")
	s.shows("(CONNECTED) 0] ")
	s.typed("addWatch /\r")
	s.shows("(CONNECTED) 1] ")
	must(t, server.Address, "", "create", "/new")
	s.shows("WatchedEvent state:SyncConnected type:NodeCreated path:/new zxid:")
	s.shows("(CONNECTED) 1] ") // the line goes on below
	server.Kill(t)
	s.shows("WatchedEvent state:Disconnected type:None path:null")
	s.typed("ls /\r")
	s.shows("no server can be reached")
	s.shows("(CONNECTING) 2] ")
	server.Start(t)
	s.shows("WatchedEvent state:SyncConnected type:None path:null")
	s.typed("ls /\r")
	s.shows("[new, zookeeper]")
	s.shows("(CONNECTED) 3] ")
	must(t, server.Address, "", "create", "/newer")
	s.shows("type:NodeCreated path:/newer") // the watch was set again
	s.typed("quit\r")
	s.ends()
}

func TestAnInterruptEndsTheCommandAndNotTheShell(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{Defines: serverOptions().Defines})
	s := openScreen(t, t.TempDir(), "-server", server.Address, "-waitforconnection")
	s.shows("(CONNECTED) 0] ")
	s.typed("watch /\r")
	eventually(t, "the watch is set", func() bool { return watches(t, server.Address) > 0 })
	must(t, server.Address, "", "create", "/seen")
	s.shows("NodeCreated /seen")
	s.typed("\x03")
	s.shows("(CONNECTED) 1] ")
	s.typed("ls /\r")
	s.shows("[seen, zookeeper]")
	s.typed("quit\r")
	s.ends()
}

func TestPasswordsAreAskedForAndNeverShownNorKept(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	home := t.TempDir()
	s := openScreen(t, home, "-server", server.Address, "--auth", "digest:bob")
	s.shows("Password of bob: ")
	s.typed("bobs-word\r")
	s.shows("(CONNECTED) 0] ")
	s.typed("digest ann\r")
	s.shows("Password of ann: ")
	s.typed("anns-word\r")
	s.shows("Once more: ")
	s.typed("anns-word\r")
	s.shows("ann:")
	s.shows("(CONNECTED) 1] ")
	s.typed("addauth digest ann\r")
	s.shows("Password of ann: ")
	s.typed("anns-word\r")
	s.shows("(CONNECTED) 2] ")
	s.typed("whoami\r")
	s.shows("digest: bob")
	s.shows("digest: ann")
	s.typed("addauth digest eve:shown-word\r")
	s.shows("(CONNECTED) 4] ")
	s.typed("quit\r")
	s.ends()
	if all := s.all(); strings.Contains(all, "bobs-word") || strings.Contains(all, "anns-word") {
		t.Errorf("the terminal shows a password:\n%s", all)
	}
	kept, err := os.ReadFile(filepath.Join(home, ".local", "state", "zooraft", "history"))
	if err != nil || strings.Contains(string(kept), "-word") || !strings.Contains(string(kept), "digest ann") {
		t.Errorf("the history holds %q, %v", kept, err)
	}
}

func TestALongCommandShowsItsProgressOnATerminal(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	grow(t, server.Address, "/many", 30, 200)
	s := openScreen(t, t.TempDir(), "-server", server.Address, "deleteall", "-b", "1", "/many")
	s.shows(" nodes deleted, ")
	if code := s.ends(); code != 0 {
		t.Errorf("deleteall gave exit code %d:\n%s", code, s.all())
	}
	if !strings.HasSuffix(s.all(), "\r\x1b[K") {
		t.Errorf("the progress line stayed: %q", s.all()[max(0, len(s.all())-100):])
	}
}

func TestAnInterruptedCommandHasItsExitCode(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{Defines: serverOptions().Defines})
	w := startWatch(t, server.Address, "watch", "/")
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = w.cmd.Wait() // its exit code follows
	if code := w.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}
