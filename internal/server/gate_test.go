package server

import (
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Without a leader and without a way to one, a server of an ensemble serves on for
// syncLimit ticks, then drops its clients and turns new ones away until it has one.
func TestClientsAreDroppedAfterSyncLimitTicksWithoutALeader(t *testing.T) {
	c := testConfig(t)
	c.Session.TickTime, c.Ensemble.SyncLimit = 100*time.Millisecond, 4
	s := startServer(t, c)
	if got := s.patience(); got != 400*time.Millisecond {
		t.Fatalf("a patience of %v", got)
	}
	g := &gate{server: s, patience: s.patience()}
	client := connect(t, s, proto.ConnectRequest{})
	g.setRouted(true)
	for range 3 { // a leader that comes back in time: nothing happens
		g.setRouted(false)
		g.setRouted(true)
	}
	if r := client.call(proto.OpExists, pathBody("/", false)); r.Err != proto.ErrOK {
		t.Fatalf("an idle client is disturbed: %v", r.Err)
	}
	lost := time.Now()
	g.setRouted(false)
	g.setLeading(false) // no new patience for the same loss
	client.gone()
	if took := time.Since(lost); took < g.patience {
		t.Errorf("dropped after %v, less than %v", took, g.patience)
	}
	if s.serves() {
		t.Error("new clients are let in")
	}
	g.setLeading(true)
	if r := connect(t, s, proto.ConnectRequest{}).call(proto.OpExists, pathBody("/", false)); r.Err != proto.ErrOK {
		t.Errorf("with a leader again: %v", r.Err)
	}
}

func TestTheElectionTimeoutIsATickWithinBounds(t *testing.T) {
	for tick, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: time.Second, time.Second: time.Second, 1500 * time.Millisecond: 1500 * time.Millisecond,
		2 * time.Second: 2 * time.Second, 10 * time.Second: 2 * time.Second,
	} {
		if got := electionTimeout(tick); got != want {
			t.Errorf("tickTime %v: %v, want %v", tick, got, want)
		}
	}
}
