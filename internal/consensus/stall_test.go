package consensus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// stallable are three servers whose disks can hang; limit is when a leader
// gives way.
func stallable(t *testing.T, limit time.Duration) ([]*testServer, map[int]*faultyFS) {
	t.Helper()
	disks := map[int]*faultyFS{}
	servers := ensembleWith(t, 3, func(c *Config) {
		disks[c.ServerID] = &faultyFS{}
		c.FS, c.LogStore, c.DiskStallLimit = disks[c.ServerID], LogStoreWAL, limit
		c.ElectionTimeout = 300 * time.Millisecond
	})
	return servers, disks
}

// Case 53: the library's heartbeats go on while the leader's disk hangs.
func TestALeaderWhoseDiskHangsGivesWayAndComesBack(t *testing.T) {
	servers, disks := stallable(t, 500*time.Millisecond)
	leader, others := leaderOf(t, servers)
	disk := disks[leader.config.ServerID]
	hang := make(chan struct{})
	disk.set(nil, nil, hang)
	if err := leader.Propose(7, []byte("hangs")); err != nil {
		t.Fatal(err)
	}
	next, _ := leaderOf(t, others)
	if next.config.ServerID == leader.config.ServerID {
		t.Fatal("the leader with the hung disk still leads")
	}
	eventuallyTrue(t, "the hung leader says that it no longer leads", func() bool { return !leader.events.leading.Load() })
	eventuallyTrue(t, "and that the fate of what it was given is unknown", func() bool { return leader.events.unknown.Load() == 1 })
	eventuallyTrue(t, "a proposal is taken", func() bool { return next.Propose(1, []byte("after")) == nil })
	for _, s := range others { // what hangs has reached them, and is committed without its leader
		eventuallyTrue(t, "the others go on", func() bool { return slices.Contains(s.journal.list(), "after") })
	}
	if got := leader.journal.list(); len(got) != 0 {
		t.Errorf("the leader has applied %q, of which nothing is on its disk", got)
	}
	disk.set(nil, nil, nil)
	close(hang)
	eventuallyTrue(t, "the former leader follows", func() bool { return leader.events.route.Load() })
	want := next.journal.list()
	leader.journal.await(t, len(want))
	if got := leader.journal.list(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the former leader has %q, the new one %q", got, want)
	}
}

// Whoever looks for the reason of writes that wait finds it in the log.
func TestAServerAloneWhoseDiskHangsSaysSo(t *testing.T) {
	fs := &faultyFS{}
	c := testConfig(t.TempDir())
	c.FS, c.LogStore, c.DiskStallLimit = fs, LogStoreWAL, 50*time.Millisecond
	logs := captureLogs(&c)
	n := start(t, c)
	n.write(t, numbered(1, 3)...)
	hang := make(chan struct{})
	fs.set(nil, nil, hang)
	if err := n.Propose(1000, []byte("hangs")); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "the log says that the disk hangs", func() bool {
		return strings.Contains(logs.String(), "the disk of the log does not answer")
	})
	fs.set(nil, nil, nil)
	close(hang)
	n.journal.await(t, 4)
	eventuallyTrue(t, "the log says that it is over", func() bool {
		return strings.Contains(logs.String(), "the disk of the log answers again")
	})
	n.write(t, "after")
	if s := n.Status(); s.Role != "leader" || s.Term != 2 {
		t.Errorf("status %+v", s)
	}
}

// A disk that hangs for less than the limit costs nobody anything.
func TestAShortStallOfTheLeadersDiskChangesNothing(t *testing.T) {
	servers, disks := stallable(t, time.Minute)
	leader, _ := leaderOf(t, servers)
	term := leader.Status().Term
	hang := make(chan struct{})
	disks[leader.config.ServerID].set(nil, nil, hang)
	if err := leader.Propose(7, []byte("slow")); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * leader.config.ElectionTimeout) // longer than any timer of Raft
	disks[leader.config.ServerID].set(nil, nil, nil)
	close(hang)
	for _, s := range servers {
		s.journal.await(t, 1)
		if got := s.Status().Term; got != term {
			t.Errorf("server %d is in term %d, it was %d", s.config.ServerID, got, term)
		}
	}
	if leader.events.unknown.Load() != 0 {
		t.Error("a proposal's fate was called unknown")
	}
}

// A server whose state machine is stuck still answers Raft's heartbeats, but
// must not go on showing its clients an old state for ever.
func TestAServerThatStaysBehindClosesItsRouteUntilItHasCaughtUp(t *testing.T) {
	gate := make(chan struct{})
	servers := ensembleWith(t, 3, func(c *Config) { c.StreamTimeout = 600 * time.Millisecond })
	leader, others := leaderOf(t, servers)
	stuck := others[0]
	stuck.journal.block(gate)
	for i := range 50 {
		eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(uint64(i+1), fmt.Appendf(nil, "%d", i)) == nil })
	}
	eventuallyTrue(t, "the server that is stuck closes its route", func() bool { return !stuck.events.route.Load() })
	if !others[1].events.route.Load() {
		t.Error("the other follower's route is closed too")
	}
	close(gate)
	eventuallyTrue(t, "it opens when it has caught up", func() bool { return stuck.events.route.Load() })
	if got, want := stuck.journal.len(), 50; got < want {
		t.Errorf("the route is open with %d of %d commands applied", got, want)
	}
}

// A leader that only one server cannot reach is not deposed: the others say
// that they follow it.
func TestARefusedConnectionToALiveLeaderIsNoReasonToCampaign(t *testing.T) {
	servers := ensemble(t, 3)
	leader, others := leaderOf(t, servers)
	term := leader.Status().Term
	for range 3 {
		if others[0].someoneFollows() != true {
			t.Error("nobody says that the leader is alive")
		}
	}
	others[0].route.set(nil) // as if the stream had broken
	others[0].leaderGone(raft.ServerID(leader.stable.identity().raftID()), nil, "another")
	eventuallyTrue(t, "the attempt is over", func() bool { return !others[0].hurrying.Load() })
	if got := leader.Status().Term; got != term {
		t.Errorf("there was an election: term %d, it was %d", got, term)
	}
}
