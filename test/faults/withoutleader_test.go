package faults

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// patient are servers that keep their clients, and the ways between them, however
// long nobody answers: 100 s and more, beyond the patience of any test here. Their
// election timeout is the longest that there is.
func patient() map[string]string {
	return map[string]string{"tickTime": "2000", "syncLimit": "50", "maxSessionTimeout": "200000"}
}

// dialPatient opens a session that outlives a test.
func dialPatient(e *ensemble, id int) *client.Conn {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Dial(ctx, e.address(id), client.Options{Timeout: 200 * time.Second})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(c.Drop)
	return c
}

// Nobody can be elected while the third server stands still. A write that is offered
// then waits, on its connection, and is done once there is a leader.
func TestAWriteOfferedWhileNobodyLeadsWaitsForTheNextLeader(t *testing.T) {
	e := start(t, options{config: patient()})
	leader := e.leader(e.ids...)
	keeper, sleeper := e.others(leader)[0], e.others(leader)[1]
	c := dialPatient(e, keeper)
	e.signal(sleeper, syscall.SIGSTOP)
	e.kill(leader)
	e.eventually("the server that is left knows of no leader", func() bool {
		text, err := peer.Word(e.address(keeper), "mntr")
		return err == nil && strings.Contains(text, "zk_peer_state\tlooking\n")
	})
	write := c.Do(proto.OpCreate, createBody("/offered", nil, proto.CreatePersistent))
	e.eventually("the write has come", func() bool {
		select {
		case <-write.Done:
			t.Fatalf("a write was answered, or its connection closed, while nobody can lead: %v %v", write.Header, write.Err)
		default:
		}
		return field(e.srvr(keeper), "Outstanding") == "1"
	})
	e.signal(sleeper, syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := write.Wait(ctx); err != nil {
		t.Fatalf("the write that waited: %v", err)
	}
	if _, err := c.Exists(ctx, "/offered", false); err != nil {
		t.Errorf("its connection, after that: %v", err)
	}
}

// Each participant takes its share of globalOutstandingLimit and one more, by which
// it notices, and an observer the whole: as nothing is answered here while the leader
// stands still, that is what is in work.
func TestEachServerTakesItsShareOfTheOutstandingLimit(t *testing.T) {
	config := patient()
	config["globalOutstandingLimit"] = "12"
	e := start(t, options{observers: 1, config: config})
	voters, observer := e.ids[:3], e.ids[3]
	leader := e.leader(voters...)
	var follower, other int
	for _, id := range voters {
		if id != leader {
			follower, other = id, follower
		}
	}
	shares := map[int]string{follower: "7", observer: "13"}
	conns := map[int]*client.Conn{follower: dialPatient(e, follower), observer: dialPatient(e, observer)}
	e.signal(leader, syscall.SIGSTOP)
	e.signal(other, syscall.SIGSTOP) // so that nobody else leads
	for id, want := range shares {
		for i := range 40 {
			conns[id].Do(proto.OpCreate, createBody(fmt.Sprintf("/n-%d-%d", id, i), nil, proto.CreatePersistent))
		}
		e.eventually(fmt.Sprintf("server %d has %s requests in work", id, want), func() bool {
			return field(e.srvr(id), "Outstanding") == want
		})
	}
	for range 20 { // and no more are coming
		for id, want := range shares {
			if got := field(e.srvr(id), "Outstanding"); got != want && got != "" { // a word may be late
				t.Fatalf("server %d has %s requests in work, want %s", id, got, want)
			}
		}
	}
	e.signal(other, syscall.SIGCONT)
	e.signal(leader, syscall.SIGCONT)
}

// A leader that gets SIGTERM hands over before it goes: nobody has to find out that it
// is gone. Its proxy stays, so that no port refuses.
func TestNobodyMissesALeaderThatGetsSIGTERM(t *testing.T) {
	e := start(t, options{config: patient()})
	leader := e.leader(e.ids...)
	others := e.others(leader)
	before := map[int]int{}
	for _, id := range others {
		before[id] = len(e.servers[id].Log())
	}
	e.servers[leader].Stop(t)
	e.leader(others...)
	for _, id := range others {
		log := e.servers[id].Log()[before[id]:]
		for _, line := range []string{"campaigns at once", "starting election"} { // ours, and the library's
			if strings.Contains(log, line) {
				t.Errorf("server %d had to find out that the leader is gone: %q", id, line)
			}
		}
	}
}
