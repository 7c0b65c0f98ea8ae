package consensus

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// untimed starts three servers of which no timer can help within a test's patience:
// an idle leader tells commits after half an hour, and a follower asks for them every
// ten minutes, once it has caught up. The PeerDial of each goes through the ways.
func untimed(t *testing.T) (leader *testServer, others []*testServer, ways *ways) {
	t.Helper()
	ways = newWays()
	servers := ensembleWith(t, 3, func(c *Config) {
		c.ElectionTimeout, c.StreamTimeout = time.Hour, time.Hour
		// A note waits for Raft for injectPatience only, and a busy disk can take longer.
		c.LogStore, c.Memory = LogStoreMemory, NewMemory()
		c.PeerDial = ways.dial(c.ServerID)
	})
	t.Cleanup(func() {
		ways.release()
		for _, s := range servers {
			s.shutdown() // Close alone would let a leader look for a successor for an hour
			eventuallyTrue(t, "a server that is shut down leads no more", func() bool { return !s.leading.Load() })
		}
	})
	leader, others = leaderOf(t, servers)
	return leader, others, ways
}

// ways are those between the servers of a test ensemble.
type ways struct {
	shut atomic.Int64 // the server that can dial nobody, 0 for none
	held atomic.Int64 // the server to which nothing is written on the connections that others have dialled, 0 for none

	mu    sync.Mutex
	moved sync.Cond // on mu: held has changed
}

func newWays() *ways {
	w := &ways{}
	w.moved.L = &w.mu
	return w
}

// hold keeps back what is written to a server from now on, until release.
func (w *ways) hold(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held.Store(int64(id))
}

func (w *ways) release() { w.hold(0); w.moved.Broadcast() }

// pass returns once nothing that goes to the server is kept back.
func (w *ways) pass(to int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.held.Load() == int64(to) {
		w.moved.Wait()
	}
}

// dial is the Config.PeerDial of a server.
func (w *ways) dial(from int) func(Peer, time.Duration) (net.Conn, error) {
	return func(to Peer, timeout time.Duration) (net.Conn, error) {
		if w.shut.Load() == int64(from) {
			return nil, errors.New("the way is shut")
		}
		conn, err := net.DialTimeout("tcp", to.Address, timeout)
		if err != nil {
			return nil, err
		}
		return &heldConn{Conn: conn, ways: w, to: to.ID}, nil
	}
}

type heldConn struct {
	net.Conn
	ways *ways
	to   int
}

// Write implements net.Conn.
func (c *heldConn) Write(b []byte) (int, error) {
	c.ways.pass(c.to)
	return c.Conn.Write(b)
}

// A write through a follower that no other write follows is applied by every server
// because the leader tells the commit; nothing else would tell it for ten minutes.
func TestALoneProposalIsAppliedEverywhereWithoutATimer(t *testing.T) {
	leader, others, _ := untimed(t)
	servers := append(others, leader)
	applied := 0
	for round := range 3 {
		for _, s := range servers {
			if err := s.Propose(uint64(applied+1), []byte("lone")); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			applied++
			for _, each := range servers {
				each.journal.await(t, applied)
			}
		}
	}
}

// A majority does not need the slowest follower, so the leader's note can be there
// before the entry is: it counts when the entry comes.
func TestACommitNoteThatIsThereBeforeItsEntryIsKept(t *testing.T) {
	leader, others, ways := untimed(t)
	quick, slow := others[0], others[1]
	ways.hold(slow.config.ServerID)
	if err := quick.Propose(1, []byte("lone")); err != nil {
		t.Fatal(err)
	}
	leader.journal.await(t, 1)
	quick.journal.await(t, 1)
	eventuallyTrue(t, "the note is there and the entry is not", func() bool {
		slow.notes.mu.Lock()
		defer slow.notes.mu.Unlock()
		return slow.notes.index > slow.notes.stored
	})
	if n := slow.journal.len(); n != 0 {
		t.Fatalf("%d commands were applied where no entry has come", n)
	}
	ways.release()
	slow.journal.await(t, 1)
}

// A note that was sent while a follower had no stream is lost to it. It gets one for
// what was committed meanwhile when its next stream begins.
func TestAFollowerWhoseStreamIsYoungerThanTheCommitIsToldOfIt(t *testing.T) {
	leader, others, ways := untimed(t)
	witness, away := others[0], others[1]
	ways.shut.Store(int64(away.config.ServerID))
	for _, s := range leader.followers.streams() {
		if s.peer == away.config.ServerID {
			s.close()
		}
	}
	eventuallyTrue(t, "the follower is without a stream", func() bool {
		return !away.events.route.Load() && !leader.Attached(away.config.ServerID)
	})
	// So that the entry is committed by this follower's answer, and not before it is
	// sent here: then Raft itself would tell the commit with it.
	ways.hold(witness.config.ServerID)
	if err := leader.Propose(1, []byte("lone")); err != nil {
		t.Fatal(err)
	}
	leader.journal.await(t, 1)
	if n := away.journal.len(); n != 0 {
		t.Fatalf("%d commands were applied where nobody has told of the commit", n)
	}
	ways.release()
	ways.shut.Store(0)
	away.journal.await(t, 1)
}

// A leader that is closed, as on SIGTERM, gives leadership to another server first.
// Without that nobody would campaign here for an hour.
func TestALeaderThatIsClosedHandsOverFirst(t *testing.T) {
	leader, others, _ := untimed(t)
	for _, s := range others {
		s.hurrying.Store(true) // so that nobody campaigns because the leader's port is shut
	}
	closed := make(chan error, 1)
	go func() { closed <- leader.Close() }()
	leaderOf(t, others)
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the former leader does not come to its end")
	}
}
