package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// An observer serves reads and forwards writes while it, the others and the
// ways between them fail; it never votes.
func TestAnObserverServesAndNeverVotes(t *testing.T) {
	t.Parallel()
	e := start(t, options{observers: 1, crooked: true})
	w := newWorld(e, seedOf(t, 1))
	w.prepare()
	observer := e.ids[len(e.ids)-1]
	voters := e.others(observer)
	if mode := field(e.srvr(observer), "Mode"); mode != "observer" {
		t.Errorf("its mode is %q", mode)
	}
	w.startWorkers()
	r := &runner{world: w, rng: random(w.seed, 0)}
	r.killFor(2*tick, observer)
	e.awaitAll()
	r.killFor(2*tick, e.leader(voters...))
	e.awaitAll()
	r.cutFor(8*tick, []int{observer}, voters)
	e.awaitAll()
	e.kill(observer)
	e.wipe(observer)
	e.restart(observer)
	e.awaitAll()
	// One voter and the observer are no majority.
	lone := e.others(e.leader(voters...))
	var left int
	for _, id := range voters {
		if id != lone[0] && left == 0 {
			left = id
		}
	}
	for _, id := range voters {
		if id != left {
			e.kill(id)
		}
	}
	e.eventually("nothing is served without a majority of the voters", func() bool {
		return e.srvrMode(left) == "" && e.srvrMode(observer) == ""
	})
	for _, id := range voters {
		if id != left {
			e.restart(id)
		}
	}
	e.awaitAll()
	c := w.mustDial(observer)
	if _, err := c.Create(context.Background(), "/by-the-observer", nil, proto.CreatePersistent); err != nil {
		t.Errorf("a write by the observer: %v", err)
	}
	c.Drop()
	w.finish()
}

// One server's own line does not call it an observer, only its peerType and the
// others' files do. It stands in nobody's way, not even while the others form
// the ensemble, and is an observer, whose lost disk is found again: the leader's
// file is what counts.
func TestAnObserverByPeerTypeAlone(t *testing.T) {
	t.Parallel()
	f := &fleet{ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, lines: map[int]string{}}}
	for id := 1; id <= 4; id++ {
		f.address(id, "127.0.0.1")
	}
	f.own = map[string]string{"peerType": "observer"}
	f.launch(4)
	f.own = nil
	f.eventually("the observer waits", func() bool { return strings.Contains(f.servers[4].Log(), "belongs to no ensemble yet") })
	f.lines[4] += ":observer"
	for id := 1; id <= 3; id++ {
		f.launch(id)
	}
	f.world = newWorld(f.ensemble, 1)
	f.settle(1, 2, 3, -4)
	if mode := f.srvrMode(4); mode != "follower" { // which is what its own file says, as on Apache's
		t.Errorf("its mode is %q", mode)
	}
	f.eventually("it is said that the files differ", func() bool {
		return strings.Contains(f.servers[4].Log(), "the files of the servers differ")
	})
	leader := f.leader(1, 2, 3)
	f.servers[leader].Kill(t)
	f.write(4)
	f.servers[leader].Launch(t)
	f.settle(1, 2, 3, -4)
	f.servers[4].Kill(t)
	f.wipe(4)
	f.servers[4].Launch(t)
	f.settle(1, 2, 3, -4)
}

// srvrMode is the mode that a server says it has, empty if it does not serve.
func (e *ensemble) srvrMode(id int) string { return field(e.srvr(id), "Mode") }
