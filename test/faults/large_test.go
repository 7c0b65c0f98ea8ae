package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// large is a size of a case: the whole one with CASES_LARGE, which `make soak`
// sets, and a smaller one without.
func large(usual, whole int) int {
	if os.Getenv("CASES_LARGE") != "" {
		return whole
	}
	return usual
}

// manyEphemerals has a session with so many ephemerals closed, and another expire.
func manyEphemerals(t *testing.T, w *world) {
	count := large(2500, 60_000)
	name := strings.Repeat("n", 108) // with the rest of the path 120 bytes
	bystander := w.mustDial(3)
	defer bystander.Drop()
	create(t, bystander, "/w/37", proto.CreatePersistent)
	for way, end := range map[string]func(c *client.Conn){
		"close":  func(c *client.Conn) { c.Do(proto.OpCloseSession, nil) }, // not waited for: others write meanwhile
		"expiry": func(c *client.Conn) { c.Drop() },
	} {
		owner := w.mustDial(2)
		path := func(n int) string { return fmt.Sprintf("/w/37/%s%06d", name, n) }
		for n := 0; n < count; n += 1000 {
			var calls []*client.Call
			for i := n; i < min(n+1000, count); i++ {
				calls = append(calls, owner.Do(proto.OpCreate, createBody(path(i), nil, proto.CreateEphemeral)))
			}
			for _, call := range calls {
				must(call.Wait(context.Background()))(t)
			}
		}
		if err := bystander.Sync(context.Background(), "/"); err != nil { // its server may not have them all yet
			t.Fatal(err)
		}
		end(owner)
		slowest := others(t, bystander, func() bool {
			st, err := bystander.Exists(context.Background(), path(count-1), false)
			return client.Code(err) == proto.ErrNoNode || st.Czxid == 0
		})
		t.Logf("%d ephemerals, %s: 99 of 100 writes of another client took less than %v", count, way, slowest)
		for _, id := range w.e.ids {
			w.gone(id, path(count-1))
			c := w.mustDial(id)
			if names, _, err := c.Children(context.Background(), "/w/37", false); err != nil || len(names) > 0 {
				t.Errorf("%s: server %d has %d of the session's nodes left, %v", way, id, len(names), err)
			}
			c.Drop()
		}
	}
}

// others writes until it is done, and says what a hundredth of the writes exceeded.
func others(t *testing.T, c *client.Conn, done func() bool) time.Duration {
	t.Helper()
	var took []time.Duration
	for end := time.Now().Add(patience); !done(); {
		begun := time.Now()
		if _, err := c.Set(context.Background(), "/w/0", []byte("bystander"), -1); err != nil {
			t.Fatalf("another client: %v", err)
		}
		took = append(took, time.Since(begun))
		if begun.After(end) {
			t.Fatal("the session's nodes stay")
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

func vanishingSessions(t *testing.T, w *world) {
	rounds := large(1000, 100_000)
	follower := w.e.others(w.e.leader(w.e.ids...))[0]
	reader := w.mustDial(follower)
	defer reader.Drop()
	create(t, reader, "/w/52", proto.CreatePersistent)
	var vanishing sync.WaitGroup
	defer vanishing.Wait()
	end := make(chan struct{})
	defer close(end)
	for n := range 4 {
		vanishing.Add(1)
		go func() {
			defer vanishing.Done()
			for {
				select {
				case <-end:
					return
				default:
				}
				c, err := dial(w.e.address(follower), 0, nil, 0)
				if err != nil {
					continue
				}
				for range 20 {
					c.Do(proto.OpSetData, setBody("/w/52", fmt.Append(nil, n), -1))
				}
				c.Drop()
			}
		}()
	}
	const nodes = 100
	for n := range nodes {
		create(t, reader, fmt.Sprintf("/w/52/%d", n), proto.CreatePersistent)
	}
	const together, reads = 10, 5
	var slow slowAnswers
	for first := 0; first < rounds; first += together {
		var all []asked
		for n := first; n < first+together; n++ {
			path := fmt.Sprintf("/w/52/%d", n%nodes)
			all = append(all, ask(reader, proto.OpSetData, setBody(path, fmt.Append(nil, n), -1)))
			for range reads {
				all = append(all, ask(reader, proto.OpGetData, readBody(path, false)))
			}
		}
		for i, request := range all { // in the order of their answers
			n, isRead := first+i/(1+reads), i%(1+reads) != 0
			body := slow.await(t, request)
			if want := fmt.Append(nil, n); isRead && !bytes.Equal(proto.NewDecoder(body).Buffer(), want) {
				t.Errorf("a read behind the write of %q shows %q", want, proto.NewDecoder(body).Buffer())
			}
		}
	}
	t.Logf("%d rounds: %d answers took longer than %v, the slowest %v", rounds, slow.count, slowAnswer, slow.worst)
}

// slowAnswer is the deadline that case 52 gives each request. It is said which answers
// took longer, not judged: other processes may have had the machine meanwhile.
const slowAnswer = 2 * time.Second

// asked is a request with its deadline, which no answer may miss on any machine.
type asked struct {
	call  *client.Call
	begun time.Time
}

func ask(c *client.Conn, op proto.OpCode, body []byte) asked {
	return asked{c.Do(op, body), time.Now()}
}

// slowAnswers are those that took longer than slowAnswer, and the slowest of all.
type slowAnswers struct {
	count int
	worst time.Duration
}

// await is the answer to a request, which has half of patience from its sending on.
func (s *slowAnswers) await(t *testing.T, r asked) []byte {
	t.Helper()
	limited, cancel := context.WithDeadline(context.Background(), r.begun.Add(patience/2))
	defer cancel()
	body, err := r.call.Wait(limited)
	if err != nil {
		t.Fatalf("%v of a session beside others that vanish is not answered after %v: %v", r.call.Op, time.Since(r.begun), err)
	}
	took := time.Since(r.begun)
	if s.worst = max(s.worst, took); took > slowAnswer {
		s.count++
	}
	return body
}

// manyWatches has a client with 40,000 watches on paths of a hundred bytes come back
// at another server when its own dies: in several frames, as the client libraries
// send them, each of which is answered. Case 26.
func manyWatches(t *testing.T, w *world) {
	count, each := large(4_000, 40_000), 1000
	path := func(n int) string { return fmt.Sprintf("/w/26/%s%06d", strings.Repeat("n", 88), n) }
	c := w.mustDial(1)
	create(t, c, "/w/26", proto.CreatePersistent)
	id, password := c.Session(), c.Password()
	st := must(c.Exists(context.Background(), "/w/26", false))(t)
	w.e.kill(1)
	again := must(w.resume(2, id, password))(t)
	defer func() { _ = again.Close(context.Background()) }()
	for n := 0; n < count; n += each {
		var paths []string
		for i := n; i < n+each; i++ {
			paths = append(paths, path(i))
		}
		body := proto.AppendStrings(proto.AppendStrings(proto.AppendLong(nil, int64(st.Czxid)), []string{}), paths)
		must(again.Do(proto.OpSetWatches, proto.AppendStrings(body, []string{})).Wait(context.Background()))(t)
	}
	other := w.mustDial(3)
	defer other.Drop()
	for _, n := range []int{0, count / 2, count - 1} {
		create(t, other, path(n), proto.CreatePersistent)
		select {
		case e := <-again.Events():
			if e.Path != path(n) {
				t.Errorf("told of %s, want %s", e.Path, path(n))
			}
		case <-time.After(patience):
			t.Fatalf("watch %d of %d is not told", n, count)
		}
	}
	w.e.restart(1)
}

// pauseLeader stops the leader's process for three quarters of a session's timeout;
// the clients' connections may not outlast that, their sessions have to. Case 38.
func pauseLeader(t *testing.T, w *world, leader int, holders []*client.Conn) {
	w.e.signal(leader, syscall.SIGSTOP)
	w.rest(sessionTimeout * 3 / 4)
	w.e.signal(leader, syscall.SIGCONT)
	w.e.awaitAll()
	for i, c := range holders {
		if _, err := c.Exists(context.Background(), "/w/ttl", false); err != nil {
			c.Drop()
			holders[i] = must(w.resume(w.e.ids[i/2], c.Session(), c.Password()))(t)
		}
	}
}
