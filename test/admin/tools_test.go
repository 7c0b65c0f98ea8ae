package admin

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/test/peer"
)

// What the Go client makes of a server's words.
type parsed struct {
	ruok, srvr, cons bool
	srvrError        string
	clients          int
	operations       string
}

func TestTheGoClientParsesOursAsItParsesApache(t *testing.T) {
	parse := func(server *peer.Server) parsed {
		s := &scene{t: t, server: server, names: map[string]string{}}
		c := s.connectAll()
		c.use()
		var p parsed
		p.ruok = zk.FLWRuok([]string{server.Address}, patience)[0]
		stats, ok := zk.FLWSrvr([]string{server.Address}, patience)
		p.srvr = ok
		if stats[0].Error != nil {
			p.srvrError = stats[0].Error.Error()
		}
		clients, ok := zk.FLWCons([]string{server.Address}, patience)
		p.cons = ok
		for _, client := range clients[0].Clients {
			p.clients++
			p.operations += " " + client.LastOperation
		}
		p.operations = strings.Join(sorted(strings.Fields(p.operations)), " ")
		return p
	}
	apache, ours := parse(peer.StartApache(t, allWords())), parse(peer.StartZooraft(t, allWords()))
	if apache != ours {
		t.Errorf("on the real server %+v, on ours %+v", apache, ours)
	}
	if !apache.ruok || apache.clients != 3 {
		t.Errorf("on the real server %+v: the comparison proves nothing", apache)
	}
}

// health runs the command and returns its exit code and output.
func health(t *testing.T, server *peer.Server, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, peer.ZooraftBinary(t, false), append([]string{"health"}, args...)...)
	command.Dir = server.WorkDir
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("zooraft health: %v", err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

func TestHealthFollowsTheLifeOfTheServer(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	byDirectory := []string{"--data-dir", server.DataDir}
	expect := func(when string, code int, part string, args ...string) {
		t.Helper()
		if got, out := health(t, server, args...); got != code || !strings.Contains(out, part) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", when, got, code, part, out)
		}
	}
	expect("serving", 0, "ready: yes\nmode: standalone\naddress: "+server.Address+"\n", byDirectory...)
	expect("serving, by zoo.cfg", 0, "ready: yes\n", server.ConfigFile)

	server.Signal(t, syscall.SIGSTOP)
	expect("stopped process", 2, "", append(byDirectory, "--timeout", "200ms")...)
	server.Signal(t, syscall.SIGCONT)
	expect("going on", 0, "live: yes\n", append(byDirectory, "--live")...)

	server.Kill(t)
	expect("killed", 2, "connection refused", byDirectory...)
	server.Start(t)
	expect("started again over the dead socket", 0, "ready: yes\n", byDirectory...)
	if code := server.Stop(t); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	expect("ended", 2, "no such file", byDirectory...)
}

func TestManyAskersAtOnceAllGetTheirAnswer(t *testing.T) {
	server := peer.StartZooraft(t, allWords())
	done := make(chan error)
	const askers, each = 8, 50
	for range askers {
		go func() {
			for range each {
				if text, err := peer.Word(server.Address, "mntr"); err != nil || !strings.HasPrefix(text, "zk_version\t3.9.5") {
					done <- errors.Join(err, errors.New("mntr says "+text[:min(len(text), 40)]))
					return
				}
			}
			done <- nil
		}()
	}
	for range askers {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("no answer")
		}
	}
}
