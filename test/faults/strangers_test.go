package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// What is not a member of the ensemble is refused at the peer port, with one
// line each, and harms nothing.
func TestStrangersOnThePeerPortAreRefused(t *testing.T) {
	t.Parallel()
	e := start(t, options{})
	w := newWorld(e, 1)
	leader := e.leader(e.ids...)
	term := e.srvr(leader)
	conns := idle(w, e.ids, 3)
	hello := func(version int, kind, cluster, from, to string) string {
		return framed(fmt.Sprintf(`{"version":%d,"kind":%q,"cluster":%q,"from":%q,"to":%q}`, version, kind, cluster, from, to))
	}
	own, other := strconv.Itoa(leader), strconv.Itoa(e.others(leader)[0])+"-5"
	for _, stranger := range []struct{ name, bytes, line string }{
		{"a browser", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "in TLS"},
		{"a ZooKeeper client", framed(strings.Repeat("\x00", 44)), "a ZooKeeper client"},
		{"a follower of Apache's", "\x00\x00\x00\x0b\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00", "a server of Apache ZooKeeper, which"},
		{"an election of Apache's", "\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02", "that elects a leader"},
		{"a Raft of another product", "\x00\x00\x00\x00\x00\x00\x00\x00", "its first message is none"},
		{"a hello that never ends", "\xff\xff\xff\xff\x00\x00\x00\x00", "its first message is none"},
		{"one that says nothing", "", "did not say who it is"},
		{"a member of another ensemble", hello(1, "raft", "0123", other, own+"-1"), "belongs to ensemble"},
		{"a server that is meant for another", hello(1, "raft", "0123", other, "9-1"), "not server 9"},
		{"a server with the same number", hello(1, "stream", "0123", own+"-77", own+"-1"), "calls itself"},
		{"another version", hello(99, "raft", "0123", other, own+"-1"), "version 1 of the peer protocol, not 99"},
	} {
		c, err := net.Dial("tcp", e.net.targets[leader])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(stranger.bytes)); err != nil {
			t.Fatal(err)
		}
		e.eventually(stranger.name+" is refused with a line", func() bool { return strings.Contains(e.servers[leader].Log(), stranger.line) })
		_ = c.Close()
	}
	for _, c := range conns {
		if _, err := c.Exists(context.Background(), "/", false); err != nil {
			t.Errorf("a client was disturbed: %v", err)
		}
		c.Drop()
	}
	if now := e.leader(e.ids...); now != leader {
		t.Errorf("server %d leads, server %d did before\n%s", now, leader, term)
	}
}

func framed(text string) string {
	n := len(text)
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + text
}

// A second server with a number that is taken, and one with a number that is in
// no configuration, say what is wrong and harm nothing.
func TestServersWithAWrongNumberHarmNothing(t *testing.T) {
	t.Parallel()
	e := start(t, options{})
	w := newWorld(e, 1)
	lines := serverLines(t, e.servers[1].ConfigFile)
	conns := idle(w, e.ids, 3)
	for _, wrong := range []struct {
		name, myid, line string
	}{
		{"a number that is taken", "2", "belongs to an ensemble already"},
		{"a number that is in no server line", "9", "myid"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(wrong.myid), 0o644); err != nil {
			t.Fatal(err)
		}
		s := peer.StartZooraft(t, peer.Options{DataDir: dir, Lines: lines, NoWait: true,
			Config: map[string]string{"initLimit": "5", "syncLimit": "2",
				"peerListenAddress": net.JoinHostPort("127.0.0.1", strconv.Itoa(peer.FreePort(t)))}})
		e.eventually(wrong.name+" is named", func() bool { return strings.Contains(s.Log(), wrong.line) })
		w.rest(4 * tick) // time to do harm
		s.Kill(t)
	}
	for _, c := range conns {
		if _, err := c.Create(context.Background(), fmt.Sprintf("/%v", c.Session()), nil, proto.CreatePersistent); err != nil {
			t.Errorf("a client was disturbed: %v", err)
		}
		c.Drop()
	}
}

// Thousands of connections that say nothing, leave, or talk nonsense keep no
// member out, disturb no client and fill no log.
func TestThousandsOfStrangersKeepNobodyOutAndFillNoLog(t *testing.T) {
	t.Parallel()
	e := start(t, options{})
	w := newWorld(e, 1)
	leader := e.leader(e.ids...)
	follower := e.others(leader)[0]
	conns := idle(w, []int{leader, e.others(leader)[1]}, 3)
	var silent []net.Conn
	for i := range 3000 {
		c, err := net.Dial("tcp", e.net.targets[leader])
		if err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 0:
			silent = append(silent, c)
			continue
		case 1: // each refusal has its own text
			_, _ = c.Write([]byte(framed(fmt.Sprintf(`{"version":%d,"kind":"raft","to":"%d-1"}`, 100+i, leader)))) // it may be closed already
		}
		_ = c.Close()
		if i == 1500 {
			e.kill(follower)
			e.restart(follower)
		}
	}
	e.awaitAll()
	for _, c := range conns {
		if _, err := c.Exists(context.Background(), "/", false); err != nil {
			t.Errorf("a client was disturbed: %v", err)
		}
		c.Drop()
	}
	if n := strings.Count(e.servers[leader].Log(), "on the peer port w"); n == 0 || n > 60 {
		t.Errorf("%d lines about 3000 connections", n)
	}
	for _, c := range silent {
		_ = c.Close()
	}
}

// relaunchElsewhere starts a server beside the others from a directory, with
// their lines but a peer port of its own.
func (f *fleet) relaunchElsewhere(id int, dir string) *peer.Server {
	f.t.Helper()
	s := peer.StartZooraft(f.t, peer.Options{
		Config: map[string]string{"tickTime": strconv.FormatInt(tick.Milliseconds(), 10), "initLimit": "20", "syncLimit": strconv.Itoa(syncLimit),
			"4lw.commands.whitelist": "*", "peerListenAddress": net.JoinHostPort("127.0.0.1", strconv.Itoa(peer.FreePort(f.t)))},
		Lines: f.file(), DataDir: dir, NoWait: true,
	})
	f.t.Cleanup(func() {
		if f.t.Failed() {
			keepLog(f.t, id, s)
		}
	})
	return s
}

// logged counts the lines of all servers that hold a text.
func (f *fleet) logged(text string) (n int) {
	for _, id := range f.ids {
		n += strings.Count(f.servers[id].Log(), text)
	}
	return n
}

// A copy of a member's directory is started while the original runs, as after a
// move to another machine: it says so and ends, and the original follows on.
func TestACopyOfAMembersDataEndsAndTheOriginalFollowsOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2, 3)
	f.settle(1, 2, 3)
	original := f.others(f.leader(f.ids...))[0]
	f.servers[original].Stop(t)
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(f.servers[original].DataDir)); err != nil {
		t.Fatal(err)
	}
	f.servers[original].Launch(t)
	f.settle(1, 2, 3)
	lost, elections := f.logged("a server no longer follows this one"), f.elections()
	twin := f.relaunchElsewhere(original, dir)
	if code := twin.Wait(t, patience); code == 0 {
		t.Errorf("the copy ended with exit code %d", code)
	}
	for _, line := range []string{"the leader refuses this server", "another process runs as server"} {
		if !strings.Contains(twin.Log(), line) {
			t.Errorf("the copy does not say %q", line)
		}
	}
	f.settle(1, 2, 3)
	// A machine that is busy may cause an election by itself.
	if now := f.logged("a server no longer follows this one"); now != lost && f.elections() == elections {
		t.Errorf("streams to the original broke %d times", now-lost)
	}
}

// A server whose directory holds another ensemble's data is refused by all, says
// so, and takes no clients.
func TestAServerWithTheDataOfAnotherEnsembleIsRefused(t *testing.T) {
	t.Parallel()
	other := newFleet(t, 1, 2, 3)
	other.settle(1, 2, 3)
	foreign := other.servers[3].DataDir
	for _, id := range slices.Clone(other.ids) {
		other.drop(id)
	}
	f := newFleet(t, 1, 2, 3)
	f.settle(1, 2, 3)
	f.servers[3].Stop(t)
	s := f.relaunchElsewhere(3, foreign)
	f.eventually("it says that the others are another ensemble's", func() bool {
		h, err := admin.FetchHealth(context.Background(), filepath.Join(foreign, "zooraft"))
		return err == nil && !h.Ready && strings.Contains(h.Reason, "belongs to ensemble") &&
			strings.Count(s.Log(), "the other servers are those of another ensemble") == 1
	})
	f.eventually("the others refuse it with a line", func() bool {
		return strings.Contains(f.servers[1].Log()+f.servers[2].Log(), "this server belongs to ensemble")
	})
	f.write(1)
	if _, err := dial(s.Address, 0, nil, 0); err == nil {
		t.Error("it takes clients")
	}
	s.Kill(t)
	f.servers[3].Launch(t)
	f.settle(1, 2, 3)
}

// A wiped member and one that missed the last writes are two of three, and must
// not be a majority: the wiped one has no vote under its old number.
func TestAWipedMemberAndOneThatIsBehindAreNoMajority(t *testing.T) {
	t.Parallel()
	e := start(t, options{})
	w := newWorld(e, 1)
	e.kill(3)
	e.leader(1, 2)
	c := w.mustDial(1)
	if _, err := c.Create(context.Background(), "/late", nil, proto.CreatePersistent); err != nil {
		t.Fatal(err)
	}
	c.Drop()
	e.kill(1)
	e.kill(2)
	e.wipe(2)
	before := len(e.servers[2].Log())
	e.restart(3)
	e.restart(2)
	e.eventually("the wiped one waits", func() bool {
		return strings.Contains(e.servers[2].Log()[before:], "waits_for=\"the leader to add it")
	})
	w.rest(8 * tick) // several election timeouts
	for _, id := range []int{2, 3} {
		if e.takesClients(id) {
			t.Errorf("server %d takes clients", id)
		}
	}
	e.restart(1)
	e.awaitAll()
	for _, id := range e.ids {
		c := w.mustDial(id)
		if _, err := c.Exists(context.Background(), "/late", false); err != nil {
			t.Errorf("server %d: %v", id, err)
		}
		c.Drop()
	}
}
