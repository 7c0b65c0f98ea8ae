package zktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// Code that counts on a TTL node to be gone, or to be there, is tested without
// waiting for the time to pass.
func TestTTLAndContainerNodesGoAsTheClockIsMoved(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t, zktest.ManualClock())
	conn, _ := connect(t, 10*time.Second, srv.Addr())
	acl := zk.WorldACL(zk.PermAll)
	if _, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, acl, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.CreateContainer("/box", nil, zk.FlagContainer, acl); err != nil {
		t.Fatal(err)
	}
	create(t, conn, "/box/x", "", 0)
	must(t, conn.Delete("/box/x", -1))
	session := conn.SessionID()
	must(t, srv.Advance(9*time.Minute))
	if st, err := srv.State(); err != nil || !nodeThere(st, "/ttl") || nodeThere(st, "/box") {
		t.Errorf("after 9 minutes (%v):\n%v", err, st)
	}
	must(t, srv.Advance(3*time.Minute))
	st, err := srv.State()
	if err != nil || nodeThere(st, "/ttl") {
		t.Errorf("after 12 minutes (%v):\n%v", err, st)
	}
	if _, ok := st.Session(session); !ok {
		t.Error("a client that was connected all the while has lost its session")
	}
}

// The time between a client's death and the end of its locks is the part of a
// failover that nobody tests, because it takes so long.
func TestASessionWithoutAConnectionRunsOutAsTheClockIsMoved(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t, zktest.ManualClock())
	lives, _ := connect(t, 10*time.Second, srv.Addr())
	dies, _, err := zk.Connect([]string{srv.Addr()}, 40*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(refuseAfterFirst()))
	must(t, err)
	defer dies.Close()
	create(t, dies, "/lock", "", zk.FlagEphemeral)
	session := dies.SessionID()
	must(t, srv.DropConnection(session))
	must(t, srv.Wait(limit, "the client is gone", func(st zktest.State) bool {
		row, ok := st.Session(session)
		return ok && !row.Connected
	}))
	must(t, srv.Advance(39*time.Second))
	if st, err := srv.State(); err != nil || !nodeThere(st, "/lock") {
		t.Errorf("a second before its time (%v):\n%v", err, st)
	}
	must(t, srv.Advance(2*time.Second))
	st, err := srv.State()
	if err != nil || nodeThere(st, "/lock") {
		t.Errorf("a second after its time (%v):\n%v", err, st)
	}
	if _, ok := st.Session(lives.SessionID()); !ok {
		t.Error("the other session, whose client is connected, is gone")
	}
}

func TestAnEnsemblesClockMovesAllServers(t *testing.T) {
	leaks(t)
	ens := zktest.NewEnsemble(t, 3, zktest.ManualClock())
	leader := ens.Leader()
	var follower *zktest.Server
	for _, s := range ens.Servers() {
		if s != leader {
			follower = s
		}
	}
	conn, _ := connect(t, 10*time.Second, follower.Addr())
	if _, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour); err != nil {
		t.Fatal(err)
	}
	must(t, ens.Advance(30*time.Minute))
	st, err := leader.State()
	if _, ok := st.Session(conn.SessionID()); err != nil || !ok || !nodeThere(st, "/ttl") {
		t.Errorf("after half an hour (%v):\n%v", err, st)
	}
	must(t, ens.Advance(32*time.Minute))
	must(t, follower.Wait(limit, "the node is gone on the follower", func(st zktest.State) bool { return !nodeThere(st, "/ttl") }))
}

func TestOnlyAManualClockIsMoved(t *testing.T) {
	leaks(t)
	if err := zktest.NewServer(t).Advance(time.Hour); !errors.Is(err, zktest.ErrClock) {
		t.Errorf("the machine's clock was moved: %v", err)
	}
}
