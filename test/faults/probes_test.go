package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// What probes see of a server that only needs time (case 71): it lives, so nobody
// is to kill it, it is not ready, so nobody is to send clients, and the reason is
// told. So it is of who is left without a majority, of a member that reads a long
// log when it starts, and of one that is sent a large snapshot.
func TestProbesTellAServerThatNeedsTimeFromOneThatIsDead(t *testing.T) {
	t.Parallel()
	e := start(t, options{crooked: true, store: "wal"})
	w := newWorld(e, 1)
	c := w.mustDial(1)
	create(t, c, "/before", proto.CreatePersistent)
	c.Drop()

	e.kill(2)
	e.kill(3)
	e.needsTime(1, "no leader is known: 1 of 3 participants are there and 2 are needed: server 2 does not answer, server 3 does not answer")
	e.restart(2)
	e.leader(1, 2)
	e.eventually("server 1 is ready", func() bool { return e.takesClients(1) })

	e.crook(3, func(m *machine) { m.Disk = "unread" })
	e.restart(3)
	e.needsTime(3, "the data are being loaded")
	for n := range syncLimit + 2 { // longer than a leader is waited for, and than elections take
		path := fmt.Sprintf("/meanwhile-%d", n)
		e.eventually(path+" is taken", func() bool { return writes(e, 1+n%2, path) })
		w.rest(tick)
	}
	e.needsTime(3, "the data are being loaded")
	e.mend(3)
	e.awaitAll()

	leader := e.leader(e.ids...)
	follower := e.others(leader)[0]
	c = w.mustDial(leader)
	data := bytes.Repeat([]byte("x"), 1<<20-1000)
	for n := range 12 {
		must(c.Create(context.Background(), fmt.Sprintf("/large-%d", n), data, proto.CreatePersistent))(t)
	}
	c.Drop()
	e.kill(follower)
	e.wipe(follower)
	narrow := map[pair]link{}
	for _, id := range e.others(follower) {
		narrow[pair{id, follower}] = link{bytesPerSecond: 512 << 10}
	}
	e.net.set(narrow)
	e.restart(follower)
	e.eventually("the data are on their way", func() bool { return e.reason(follower) == "the log is being applied" })
	e.needsTime(follower, "the log is being applied")
	e.net.heal()
	e.awaitAll()
	out, code := e.probe(follower)
	if code != 0 || !strings.Contains(out, "ready: yes") || strings.Contains(out, "reason: ") {
		t.Errorf("afterwards: exit code %d, %s", code, out)
	}
}

// needsTime waits until a server gives the reason for which it is not ready, and
// looks at everything that a probe can ask.
func (e *ensemble) needsTime(id int, reason string) {
	e.t.Helper()
	// It gives the reason at once; whoever is connected has syncLimit.
	const idle = "This ZooKeeper instance is not currently serving requests"
	e.eventually(fmt.Sprintf("server %d is not ready: %s", id, reason), func() bool {
		text, err := peer.Word(e.address(id), "srvr")
		return err == nil && strings.HasPrefix(text, idle) && e.reason(id) == reason
	})
	if out, code := e.probe(id); code != 1 || !strings.Contains(out, "live: yes\nready: no\nreason: "+reason+"\n") {
		e.t.Errorf("zooraft health of server %d: exit code %d, %s", id, code, out)
	}
	if out, code := e.probe(id, "--live"); code != 0 {
		e.t.Errorf("zooraft health --live of server %d: exit code %d, %s", id, code, out)
	}
	for word, want := range map[string]string{"ruok": "imok", "mntr": idle, "stat": idle} {
		if text, err := peer.Word(e.address(id), word); err != nil || !strings.HasPrefix(text, want) {
			e.t.Errorf("%s of server %d: %.200q, %v", word, id, text, err)
		}
	}
	if e.takesClients(id) {
		e.t.Errorf("server %d, which is not ready, takes clients", id)
	}
	if !e.running(id) {
		e.t.Errorf("server %d has ended", id)
	}
}

// reason is why a server that lives is not ready, by the admin channel.
func (e *ensemble) reason(id int) string {
	h, err := admin.FetchHealth(context.Background(), e.ownDir(id))
	if err != nil || !h.Live || h.Ready {
		return ""
	}
	return h.Reason
}

// probe runs zooraft health for a server and returns what it printed.
func (e *ensemble) probe(id int, flags ...string) (out string, code int) {
	e.t.Helper()
	args := append([]string{"health", "--timeout", "30s", e.servers[id].ConfigFile}, flags...)
	text, err := exec.Command(peer.ZooraftBinary(e.t, false), args...).CombinedOutput()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return string(text), failed.ExitCode()
	case err != nil:
		e.t.Fatal(err)
	}
	return string(text), 0
}
