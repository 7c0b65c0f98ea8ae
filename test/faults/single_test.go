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
)

// idle opens sessions that only ping.
func idle(w *world, servers []int, each int) []*client.Conn {
	var all []*client.Conn
	for _, id := range servers {
		for range each {
			all = append(all, w.mustDial(id))
		}
	}
	return all
}

// An election disturbs only who has a write on its way.
func TestIdleClientsKeepTheirConnectionsOverAnElection(t *testing.T) {
	e := start(t, options{})
	w := newWorld(e, 1)
	for round := range 3 {
		leader := e.leader(e.ids...)
		others := e.others(leader)
		conns := idle(w, others, 10)
		e.kill(leader)
		begun := time.Now()
		now := e.leader(others...)
		t.Logf("round %d: server %d follows server %d after %v", round, now, leader, time.Since(begun).Round(time.Millisecond))
		for _, id := range others {
			c := w.mustDial(id)
			if _, err := c.Create(context.Background(), fmt.Sprintf("/after-%d-%d", round, id), nil, proto.CreatePersistent); err != nil {
				t.Errorf("a write at server %d after the election: %v", id, err)
			}
			c.Drop()
		}
		for i, c := range conns {
			if _, err := c.Exists(context.Background(), "/", false); err != nil {
				t.Errorf("round %d: idle client %d lost its connection: %v", round, i, err)
			}
			c.Drop()
		}
		e.restart(leader)
		e.awaitAll()
	}
}

// A server that is cut off stops to answer a session before the others can
// have closed it: its client must not go on believing that it holds a lock.
func TestACutOffServerStopsToAnswerASessionBeforeItCanHaveExpired(t *testing.T) {
	e := start(t, options{config: map[string]string{"syncLimit": "60"}}) // the serving gate stays open
	w := newWorld(e, 1)
	for _, isLeader := range []bool{false, true} {
		leader := e.leader(e.ids...)
		victim := leader
		if !isLeader {
			victim = e.others(leader)[0]
		}
		holder := w.mustDial(victim)
		ctx := context.Background()
		path := fmt.Sprintf("/lock-of-%v", isLeader)
		if _, err := holder.Create(ctx, path, nil, proto.CreateEphemeral); err != nil {
			t.Fatal(err)
		}
		// Another server may have been cut off before: it is to know the session's
		// node, or its absence says nothing.
		watchers := map[int]*client.Conn{}
		for _, id := range e.others(victim) {
			watchers[id] = w.mustDial(id)
			e.eventually("the other server has the node", func() bool {
				_, err := watchers[id].Exists(ctx, path, false)
				return err == nil
			})
		}
		e.cut([]int{victim}, e.others(victim), false)
		// The holder reads as fast as it can until its connection ends: when it sent
		// the last question that was answered.
		last := make(chan time.Time, 1)
		go func() {
			asked := time.Now()
			for {
				begun := time.Now()
				if _, err := holder.Exists(ctx, path, false); err != nil {
					last <- asked
					return
				}
				asked = begun
			}
		}()
		e.eventually("the others close the session", func() bool {
			for id, c := range watchers {
				_, err := c.Exists(ctx, path, false)
				if client.Code(err) == proto.ErrNoNode {
					return true
				}
				if err != nil { // an election, or its own session
					c.Drop()
					watchers[id] = w.mustDial(id)
				}
			}
			return false
		})
		// Nothing that was asked from here on may have been answered.
		gone := time.Now()
		if last := <-last; last.After(gone) {
			t.Errorf("leader cut off %v: the others had closed the session, and %v later it was still answered for", isLeader, last.Sub(gone))
		}
		e.net.heal()
		e.awaitAll()
		holder.Drop()
		for _, c := range watchers {
			c.Drop()
		}
	}
}

// The same for a process that was stopped and goes on: what it answers first
// must not be older than the end of the session.
func TestAStoppedServerThatGoesOnDoesNotAnswerForASessionThatIsOver(t *testing.T) {
	e := start(t, options{})
	w := newWorld(e, 1)
	for _, isLeader := range []bool{false, true} {
		leader := e.leader(e.ids...)
		victim := leader
		if !isLeader {
			victim = e.others(leader)[0]
		}
		ctx := context.Background()
		path := fmt.Sprintf("/lock-of-%v", isLeader)
		holder := w.mustDial(victim)
		if _, err := holder.Create(ctx, path, nil, proto.CreateEphemeral); err != nil {
			t.Fatal(err)
		}
		e.signal(victim, syscall.SIGSTOP)
		other := w.mustDial(e.others(victim)[0])
		e.eventually("the others close the session", func() bool {
			_, err := other.Exists(ctx, path, false)
			if err != nil && client.Code(err) != proto.ErrNoNode {
				other = w.mustDial(e.others(victim)[0])
			}
			return client.Code(err) == proto.ErrNoNode
		})
		asked := holder.Do(proto.OpExists, readBody(path, false)) // waits in the stopped server's socket
		e.signal(victim, syscall.SIGCONT)
		if _, err := asked.Wait(ctx); err == nil {
			t.Errorf("leader %v: the server showed the ephemeral of a session that is over", isLeader)
		}
		holder.Drop()
		other.Drop()
		e.awaitAll()
	}
}

// Whatever way servers go and come back, one that lost its disk is another
// server to Raft: it is added anew, and never votes with an empty log.
func TestAServerThatLostItsDiskIsAddedAsAnother(t *testing.T) {
	e := start(t, options{})
	w := newWorld(e, 1)
	ctx := context.Background()
	for round := range 2 {
		leader := e.leader(e.ids...)
		victim, witness := e.others(leader)[0], e.others(leader)[1]
		if round == 1 {
			victim = leader
			leader, witness = e.others(victim)[0], e.others(victim)[1]
		}
		c := w.mustDial(witness)
		path := fmt.Sprintf("/before-%d", round)
		if _, err := c.Create(ctx, path, []byte("x"), proto.CreatePersistent); err != nil {
			t.Fatal(err)
		}
		c.Drop()
		e.kill(victim)
		e.wipe(victim)
		before := map[int]int{leader: len(e.servers[leader].Log()), witness: len(e.servers[witness].Log())}
		e.restart(victim)
		e.eventually("the server without data takes clients again", func() bool { return e.takesClients(victim) })
		c = w.mustDial(victim)
		if _, err := c.Exists(ctx, path, false); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		c.Drop()
		// It counts as a voter: with it and one other, writes go on.
		e.eventually("the others say that it votes", func() bool {
			return strings.Contains(e.servers[leader].Log()[before[leader]:]+e.servers[witness].Log()[before[witness]:], fmt.Sprintf(`"the membership has changed" room=consensus change="make server %d-`, victim))
		})
		e.kill(leader)
		c = w.mustDial(victim)
		if _, err := c.Create(ctx, path+"-after", nil, proto.CreatePersistent); err != nil {
			t.Errorf("round %d: a write with the server that lost its disk and one other: %v", round, err)
		}
		c.Drop()
		e.restart(leader)
		e.awaitAll()
	}
}

// sync + read behind a leader change, at a server of the old side (case 49).
func TestSyncThenReadNeverShowsTheOldSideOfAnElection(t *testing.T) {
	e := start(t, options{servers: 5})
	w := newWorld(e, 1)
	ctx := context.Background()
	c := w.mustDial(1)
	if _, err := c.Create(ctx, "/x", []byte("0"), proto.CreatePersistent); err != nil {
		t.Fatal(err)
	}
	c.Drop()
	for round := 1; round <= large(3, 30); round++ {
		old := e.leader(e.ids...)
		minority := []int{old, e.others(old)[0]}
		majority := e.others(old)[1:]
		atOld, atFollower := w.mustDial(minority[0]), w.mustDial(minority[1])
		e.cut(minority, majority, round%2 == 0)
		var writer *client.Conn
		e.eventually("the majority takes a write", func() bool {
			if writer == nil || writer.Err() != nil {
				writer, _ = dial(e.address(majority[round%len(majority)]), 0, nil, 0)
			}
			if writer == nil {
				return false
			}
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := writer.Set(limited, "/x", fmt.Append(nil, round), -1)
			return err == nil
		})
		for _, side := range []*client.Conn{atOld, atFollower} {
			sync, get := side.Do(proto.OpSync, syncBody()), side.Do(proto.OpGetData, readBody("/x", false))
			limited, cancel := context.WithTimeout(ctx, 2*time.Second)
			_, err := sync.Wait(limited)
			if err == nil {
				reply, err := get.Wait(limited)
				if value := string(proto.NewDecoder(reply).Buffer()); err == nil && value != fmt.Sprint(round) {
					t.Errorf("round %d: sync and read show %q", round, value)
				}
			}
			cancel()
			side.Drop()
		}
		writer.Drop()
		e.net.heal()
		e.awaitAll()
	}
}
