package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Servers are restarted one after the other while clients work; every promise
// holds, and clients of the servers that are not restarted go on.
func TestARollingRestartKeepsPromises(t *testing.T) {
	t.Parallel()
	w := newWorld(start(t, options{}), seedOf(t, 1))
	w.prepare()
	w.startWorkers()
	for _, id := range w.e.ids {
		w.e.stop(id)
		w.e.restart(id)
		w.e.awaitAll()
		w.rest(2 * tick) // for the clients to come back
	}
	w.finish()
}

// All servers return with other addresses in their server lines: the ensemble
// forms again from its data.
func TestAnEnsembleWhoseServersHaveAllMovedFormsAgain(t *testing.T) {
	t.Parallel()
	e := start(t, options{})
	w := newWorld(e, 1)
	ctx := context.Background()
	c := w.mustDial(1)
	if _, err := c.Create(ctx, "/kept", []byte("x"), proto.CreatePersistent); err != nil {
		t.Fatal(err)
	}
	session, password := c.Session(), c.Password()
	c.Drop()
	for _, id := range e.ids {
		e.stop(id)
	}
	replace := map[string]string{}
	for _, id := range e.ids {
		old := e.net.address(id)
		e.net.move(t, id)
		host, port, _ := net.SplitHostPort(e.net.address(id)) // an address of ours always splits
		_, oldPort, _ := net.SplitHostPort(old)
		replace[fmt.Sprintf("server.%d=%s:%s:", id, host, oldPort)] = fmt.Sprintf("server.%d=%s:%s:", id, host, port)
	}
	for _, id := range e.ids {
		text, err := os.ReadFile(e.servers[id].ConfigFile)
		if err != nil {
			t.Fatal(err)
		}
		changed := string(text)
		for from, to := range replace {
			changed = strings.ReplaceAll(changed, from, to)
		}
		if changed == string(text) {
			t.Fatal("the server lines have not changed")
		}
		if err := os.WriteFile(e.servers[id].ConfigFile, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		e.servers[id].Launch(t)
	}
	e.awaitAll()
	for _, id := range e.ids {
		c := w.mustDial(id)
		if data, _, err := c.Get(ctx, "/kept", false); err != nil || string(data) != "x" {
			t.Errorf("server %d: %q, %v", id, data, err)
		}
		c.Drop()
	}
	c, err := w.resume(2, session, password)
	if err != nil {
		t.Fatalf("the session did not live on: %v", err)
	}
	c.Drop()
}

// Whatever moment servers are killed at while an ensemble forms, one ensemble
// comes of it, and no two.
func TestServersKilledWhileTheyFormAnEnsembleFormOne(t *testing.T) {
	seed := seedOf(t, 1)
	for round := range number(t, "FAULTS_ROUNDS", 4) {
		e := launch(t, options{})
		r := &runner{world: newWorld(e, seed), rng: random(seed, round)}
		for range 6 {
			id := r.pick(e.ids)
			r.rest(randomUpTo(r.rng, 300))
			e.kill(id)
			r.rest(randomUpTo(r.rng, 100))
			e.restart(id)
		}
		e.awaitAll()
		clusters := map[string]bool{}
		for _, id := range e.ids {
			for _, line := range strings.Split(e.servers[id].Log(), "\n") {
				if at := strings.Index(line, " cluster="); at >= 0 {
					clusters[strings.Fields(line[at+len(" cluster="):])[0]] = true
				}
			}
		}
		if len(clusters) != 1 {
			t.Errorf("seed %d, round %d: ensembles %v", seed, round, clusters)
		}
		c := r.mustDial(1)
		if _, err := c.Create(context.Background(), "/x", nil, proto.CreatePersistent); err != nil {
			t.Errorf("seed %d, round %d: %v", seed, round, err)
		}
		c.Drop()
		for _, id := range e.ids {
			e.kill(id)
		}
	}
}

func serverLines(t *testing.T, config string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "server.") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A member's log is torn at its end while it is down. It comes back with what
// the others have, or refuses to start and comes back once its disk is emptied.
func TestAMemberWhoseLogIsTornLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(start(t, options{}), seedOf(t, 1))
	w.prepare()
	w.startWorkers()
	r := &runner{world: w, rng: random(w.seed, 7)}
	for range 3 {
		r.rest(tick)
		r.tear(r.pick(w.e.ids))
		w.e.awaitAll()
	}
	w.finish()
}
