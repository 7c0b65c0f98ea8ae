package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// What users of ZooKeeper-like servers have hit with several of them; the
// numbers are those of test/cases.md. They share an ensemble, which is made whole
// before each, and whose replicas are compared at the end.
func TestCasesThatConcernSeveralServers(t *testing.T) {
	t.Parallel()
	w := newWorld(start(t, options{crooked: true}), 1)
	w.prepare()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"2: a session goes on at another server, or learns there that it is over", sessionsElsewhere},
		{"7: a bare check is refused by leader and followers alike", bareChecks},
		{"10: null and empty data stay apart on all servers", nullAndEmpty},
		{"31: a session that only reads from a follower stays alive, and has its whole timeout after a failover", onlyReads},
		{"34: who is told that its session is over can take its names at once", registerAgain},
		{"35: a session that has moved is served, and its late writes are not", movedSessions},
		{"37: a session with many ephemerals ends everywhere", manyEphemerals},
		{"52: reads behind writes of sessions that vanish are answered", vanishingSessions},
		{"26: a client with very many watches sets them again at another server", manyWatches},
		{"71: without a majority ruok says so of the process, and the rest does not", withoutMajority},
		{"32: nothing is lost by a stop of all servers that outlasts all sessions", longStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer := w.e.t
			w.e.t = t
			defer func() { w.e.t = outer }()
			w.e.makeWhole()
			c.run(t, w)
		})
	}
	w.e.makeWhole()
	w.finish()
}

// makeWhole takes back what a case that has failed may have left: cut ways, and
// servers that do not run.
func (e *ensemble) makeWhole() {
	e.t.Helper()
	e.net.heal()
	for _, id := range e.ids {
		if !e.running(id) {
			e.restart(id)
		}
	}
	e.awaitAll()
}

// must is the result of a step that has to succeed.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func create(t testing.TB, c *client.Conn, path string, flags int32) {
	t.Helper()
	must(c.Create(context.Background(), path, nil, flags))(t)
}

// gone waits until a server shows that a node is gone.
func (w *world) gone(id int, path string) {
	w.e.t.Helper()
	c := w.mustDial(id)
	defer func() { c.Drop() }()
	w.e.eventually(fmt.Sprintf("%s is gone at server %d", path, id), func() bool {
		_, err := c.Exists(context.Background(), path, false)
		if err != nil && client.Code(err) != proto.ErrNoNode {
			c.Drop()
			c = w.mustDial(id)
		}
		return client.Code(err) == proto.ErrNoNode
	})
}

func sessionsElsewhere(t *testing.T, w *world) {
	c := w.mustDial(1)
	create(t, c, "/e/2", proto.CreateEphemeral)
	id, password := c.Session(), c.Password()
	c.Drop()
	c = must(w.resume(2, id, password))(t)
	if c.Session() != id {
		t.Errorf("another server gave session %v for %v", c.Session(), id)
	}
	stat := must(c.Exists(context.Background(), "/e/2", false))(t)
	if stat.EphemeralOwner != int64(id) {
		t.Errorf("the ephemeral belongs to %x", stat.EphemeralOwner)
	}
	wrong := bytes.Clone(password)
	wrong[3] ^= 1
	if _, err := w.resume(3, id, wrong); !errors.Is(err, client.ErrExpired) {
		t.Errorf("a wrong password at another server: %v", err)
	}
	must(c.Exists(context.Background(), "/e/2", false))(t) // its owner was not disturbed
	c.Drop()
	w.gone(1, "/e/2")
	for _, server := range w.e.ids {
		if _, err := w.resume(server, id, password); !errors.Is(err, client.ErrExpired) {
			t.Errorf("server %d after the session's end: %v", server, err)
		}
	}
}

func bareChecks(t *testing.T, w *world) {
	body := (&proto.PathVersion{Path: "/w", Version: -1}).Append(nil)
	for round := range 34 {
		for _, id := range w.e.ids {
			c := w.mustDial(id)
			create(t, c, fmt.Sprintf("/w/7-%d-%d", id, round), proto.CreatePersistent)
			if _, err := c.Do(proto.OpCheck, body).Wait(context.Background()); client.Code(err) != proto.ErrUnimplemented {
				t.Errorf("a bare check at server %d: %v", id, err)
			}
			c.Drop()
		}
	}
}

func nullAndEmpty(t *testing.T, w *world) {
	ctx := context.Background()
	c := w.mustDial(1)
	want := map[string][]byte{"/w/null": nil, "/w/empty": {}, "/w/to-null": nil, "/w/to-empty": {}}
	for path, data := range want {
		first := data
		if strings.HasPrefix(path, "/w/to-") {
			if first = nil; data == nil {
				first = []byte{}
			}
		}
		must(c.Create(ctx, path, first, proto.CreatePersistent))(t)
		if strings.HasPrefix(path, "/w/to-") {
			must(c.Set(ctx, path, data, -1))(t)
		}
	}
	c.Drop()
	look := func(when string) {
		for _, id := range w.e.ids {
			c := w.mustDial(id)
			if err := c.Sync(ctx, "/"); err != nil {
				t.Fatal(err)
			}
			for path, data := range want {
				got, stat, err := c.Get(ctx, path, false)
				if err != nil || (got == nil) != (data == nil) || stat.DataLength != 0 {
					t.Errorf("%s, server %d: %s is %#v of length %d, %v", when, id, path, got, stat.DataLength, err)
				}
			}
			c.Drop()
		}
	}
	look("at first")
	w.e.kill(1)
	w.e.restart(1)
	follower := w.e.others(w.e.leader(w.e.ids...))[0]
	w.e.kill(follower)
	w.e.wipe(follower)
	w.e.restart(follower)
	w.e.awaitAll()
	look("after a restart, and a refill from the leader")
}

// quiet opens a session that sends nothing by itself.
func (w *world) quiet(id int) *client.Conn {
	w.e.t.Helper()
	return must(client.Dial(context.Background(), w.e.address(id), client.Options{Timeout: sessionTimeout, NoPings: true}))(w.e.t)
}

func onlyReads(t *testing.T, w *world) {
	leader := w.e.leader(w.e.ids...)
	follower := w.e.others(leader)[0]
	c := w.quiet(follower)
	create(t, c, "/e/31", proto.CreateEphemeral)
	for end := time.Now().Add(2 * sessionTimeout); time.Now().Before(end); {
		if _, err := c.Exists(context.Background(), "/e/31", false); err != nil {
			t.Fatalf("a session that only reads: %v", err)
		}
		w.rest(sessionTimeout / 8)
	}
	w.rest(sessionTimeout * 3 / 4) // its last sign of life is that old when the leader dies
	w.e.kill(leader)
	now := w.e.leader(w.e.others(leader)...)
	w.rest(sessionTimeout / 2) // with what is left of the old deadline it would be over
	if _, err := c.Exists(context.Background(), "/e/31", false); err != nil {
		c.Drop() // a leader may have been followed late; the session has to live
		c = must(w.resume(now, c.Session(), c.Password()))(t)
		must(c.Exists(context.Background(), "/e/31", false))(t)
	}
	_ = c.Close(context.Background())
	w.e.restart(leader)
}

func registerAgain(t *testing.T, w *world) {
	ctx := context.Background()
	var all sync.WaitGroup
	for n := range large(60, 500) {
		path := fmt.Sprintf("/e/34-%d", n)
		owner := w.mustDial(w.e.ids[n%3])
		create(t, owner, path, proto.CreateEphemeral)
		witness := w.mustDial(w.e.ids[(n+1)%3])
		must(witness.Exists(ctx, path, true))(t)
		server := w.e.ids[(n+2)%3]
		owner.Drop()
		all.Add(1)
		go func() {
			defer all.Done()
			defer witness.Drop()
			select {
			case <-witness.Events():
			case <-time.After(patience):
				t.Errorf("%s: its end was not told", path)
				return
			}
			// The third server may be a moment behind the witness's.
			if _, err := w.resume(server, owner.Session(), owner.Password()); !errors.Is(err, client.ErrExpired) {
				t.Errorf("%s: server %d says %v", path, server, err)
				return
			}
			c, err := w.resume(server, 0, nil)
			if err != nil {
				t.Errorf("%s: a new session: %v", path, err)
				return
			}
			if _, err := c.Create(ctx, path, nil, proto.CreateEphemeral); err != nil {
				t.Errorf("%s: told that it is over, and then: %v", path, err)
			}
			_ = c.Close(ctx)
		}()
	}
	all.Wait()
}

func movedSessions(t *testing.T, w *world) {
	ctx := context.Background()
	for round := range 10 {
		from, to := w.e.ids[round%3], w.e.ids[(round+1)%3]
		old := w.mustDial(from)
		root := fmt.Sprintf("/w/35-%d", round)
		create(t, old, root, proto.CreatePersistent)
		quit := make(chan struct{})
		var late sync.WaitGroup
		late.Add(1)
		go func() { // writes at the old server until it is closed
			defer late.Done()
			for n := 0; old.Err() == nil; n++ {
				c := old.Do(proto.OpCreate, createBody(fmt.Sprintf("%s/%d", root, n), nil, proto.CreatePersistent))
				if _, err := c.Wait(ctx); err != nil && client.Code(err) != proto.ErrSessionMoved {
					return
				}
			}
		}()
		now := must(w.resume(to, old.Session(), old.Password()))(t)
		// Everything that the old connection will ever do has been done.
		if err := now.Sync(ctx, "/"); err != nil {
			t.Fatal(err)
		}
		before, _, err := now.Children(ctx, root, false)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // only multis
			body := proto.AppendMulti(nil, []proto.MultiOp{setOp(root, []byte("x"))})
			if _, err := now.Do(proto.OpMulti, body).Wait(ctx); err != nil {
				t.Fatalf("a multi of a session that has moved to server %d: %v", to, err)
			}
		}
		late.Wait()
		if err := now.Sync(ctx, "/"); err != nil {
			t.Fatal(err)
		}
		after, _, err := now.Children(ctx, root, false)
		if err != nil || len(after) != len(before) {
			t.Errorf("the old connection wrote %d nodes after the move, %v", len(after)-len(before), err)
		}
		close(quit)
		old.Drop()
		_ = now.Close(ctx)
	}
}

func withoutMajority(t *testing.T, w *world) {
	w.e.kill(2)
	w.e.kill(3)
	w.e.eventually("server 1 says that it does not serve", func() bool {
		text, err := peer.Word(w.e.address(1), "srvr")
		return err == nil && strings.Contains(text, "This ZooKeeper instance is not currently serving requests")
	})
	for word, want := range map[string]string{
		"ruok": "imok", "mntr": "This ZooKeeper instance is not currently serving requests",
	} {
		if text, err := peer.Word(w.e.address(1), word); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s without a majority: %q, %v", word, text, err)
		}
	}
	w.e.restart(2)
	w.e.restart(3)
}

func longStop(t *testing.T, w *world) {
	c := w.mustDial(1)
	create(t, c, "/w/32", proto.CreatePersistent)
	create(t, c, "/e/32", proto.CreateEphemeral)
	c.Drop()
	for _, id := range w.e.ids {
		w.e.stop(id)
	}
	w.rest(sessionTimeout * 3 / 2)
	for _, id := range w.e.ids {
		w.e.restart(id)
	}
	w.e.awaitAll()
	for _, id := range w.e.ids {
		c := w.mustDial(id)
		must(c.Exists(context.Background(), "/w/32", false))(t)
		if id == 1 { // a whole timeout begins with the new leader
			must(c.Exists(context.Background(), "/e/32", false))(t)
		}
		c.Drop()
	}
	w.gone(1, "/e/32")
}
