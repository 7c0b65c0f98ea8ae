package faults

import (
	"context"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
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

// srvrMode is the mode that a server says it has, empty if it does not serve.
func (e *ensemble) srvrMode(id int) string { return field(e.srvr(id), "Mode") }
