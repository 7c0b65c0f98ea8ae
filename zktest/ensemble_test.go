package zktest_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// refuseAfterFirst dials once, so that a client dies with its connection.
func refuseAfterFirst() zk.Dialer {
	var used atomic.Bool
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errors.New("the client is dead")
		}
		return net.DialTimeout(network, address, timeout)
	}
}

// others are the servers beside one.
func others(ens *zktest.Ensemble, than *zktest.Server) (rest []*zktest.Server) {
	for _, s := range ens.Servers() {
		if s != than {
			rest = append(rest, s)
		}
	}
	return rest
}

// A leader election that trusts the server it is connected to has two leaders
// while the network is cut.
func TestAPartitionMakesTheMajorityElectAndTheMinorityStop(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3)
	old := ens.Leader()
	rest := others(ens, old)
	inside, _ := connect(t, 30*time.Second, rest[0].Addr())
	outside, _ := connect(t, 30*time.Second, old.Addr())
	create(t, inside, "/a", "0", 0)
	ens.Partition([]*zktest.Server{old}, rest)
	leader, err := ens.AwaitLeader(rest...)
	must(t, err)
	if leader == old {
		t.Fatal("the server that is cut off leads the others")
	}
	create(t, inside, "/of-the-majority", "", 0)
	if _, err := outside.Create("/of-the-minority", nil, 0, zk.WorldACL(zk.PermAll)); err == nil {
		t.Error("a server without a majority has confirmed a write")
	}
	ens.Heal()
	must(t, old.Wait(limit, "the old leader has what the others wrote", func(st zktest.State) bool {
		return nodeThere(st, "/of-the-majority")
	}))
	for _, s := range ens.Servers() {
		if st, err := s.State(); err != nil || nodeThere(st, "/of-the-minority") {
			t.Errorf("server %d has the write that was not confirmed (%v)", s.ID(), err)
		}
	}
}

func TestLeadershipMovesWithoutDisturbingClients(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3)
	conn, _ := connect(t, 30*time.Second, ens.Leader().Addr())
	session := conn.SessionID()
	for range 5 { // the old leader thinks for a moment that it still leads
		for _, s := range ens.Servers() {
			must(t, ens.MoveLeader(s))
			if ens.Leader() != s {
				t.Fatalf("server %d does not lead", s.ID())
			}
		}
	}
	if _, _, err := conn.Get("/"); err != nil || conn.SessionID() != session {
		t.Errorf("an idle client was disturbed: %v", err)
	}
}

func TestTheOthersGoOnWithoutTheLeaderAndItComesBack(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3)
	old := ens.Leader()
	rest := others(ens, old)
	conn, _ := connect(t, 30*time.Second, rest[0].Addr(), rest[1].Addr())
	must(t, old.Kill())
	if _, err := ens.AwaitLeader(rest...); err != nil {
		t.Fatal(err)
	}
	until(t, "a write is confirmed", func() bool {
		_, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
		return err == nil || errors.Is(err, zk.ErrNodeExists)
	})
	must(t, old.Restart())
	must(t, old.Wait(limit, "it has what it missed", func(st zktest.State) bool { return nodeThere(st, "/a") }))
}

func TestAPausedLeaderLosesTheLead(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3)
	old := ens.Leader()
	old.Pause()
	leader, err := ens.AwaitLeader(others(ens, old)...)
	must(t, err)
	conn, _ := connect(t, 30*time.Second, leader.Addr())
	create(t, conn, "/a", "", 0)
	old.Resume()
	must(t, old.Wait(limit, "it has what it missed", func(st zktest.State) bool { return nodeThere(st, "/a") }))
}

func TestASessionExpiresWhereverItsClientIs(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3)
	for _, s := range ens.Servers() {
		conn, events := connect(t, 30*time.Second, s.Addr())
		must(t, s.ExpireSession(conn.SessionID()))
		await(t, events, zk.StateExpired)
	}
}

// until waits for something that may fail meanwhile.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}
