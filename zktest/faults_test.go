package zktest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zooraft/zooraft/zktest"
)

// A service that registers itself once and never again is invisible after its
// first session has expired.
func TestAnExpiredSessionLosesItsEphemeralNodes(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, events := connect(t, 10*time.Second, srv.Addr())
	create(t, conn, "/worker", "", zk.FlagEphemeral)
	old := conn.SessionID()
	must(t, srv.ExpireSession(old))
	if st, err := srv.State(); err != nil || nodeThere(st, "/worker") {
		t.Fatalf("the node outlives its session (%v):\n%v", err, st)
	}
	await(t, events, zk.StateExpired)
	await(t, events, zk.StateHasSession)
	if conn.SessionID() == old {
		t.Error("the client goes on with the session that expired")
	}
	if err := srv.ExpireSession(old); !errors.Is(err, zktest.ErrNoSession) {
		t.Errorf("expired twice: %v", err)
	}
}

func nodeThere(st zktest.State, path string) bool {
	_, ok := st.Node(path)
	return ok
}

// A program that takes every disconnect for the end of its session gives up
// what it still owns.
func TestADroppedConnectionKeepsTheSession(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, events := connect(t, 30*time.Second, srv.Addr())
	create(t, conn, "/lock", "", zk.FlagEphemeral)
	session := conn.SessionID()
	must(t, srv.DropConnection(session))
	await(t, events, zk.StateDisconnected)
	await(t, events, zk.StateHasSession)
	if st, err := srv.State(); err != nil || conn.SessionID() != session || !nodeThere(st, "/lock") {
		t.Errorf("session %#x, before %#x (%v):\n%v", conn.SessionID(), session, err, st)
	}
	if err := srv.DropConnection(1); !errors.Is(err, zktest.ErrNoSession) {
		t.Errorf("a stranger's connection: %v", err)
	}
}

// A program that creates again what it has no answer for makes two sequential
// nodes, or reports failure for what it did.
func TestALostReplyLeavesTheWriteDone(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, _ := connect(t, 30*time.Second, srv.Addr())
	create(t, conn, "/queue", "", 0)
	lost := srv.Inject(zktest.Match{Op: "create", Path: "/queue/*"}, zktest.LoseReply())
	item := func() error {
		_, err := conn.Create("/queue/item-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		return err
	}
	if err := item(); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Fatalf("the first create: %v", err)
	}
	err := item()
	for errors.Is(err, zk.ErrNoServer) { // not sent: the client was not connected yet
		err = item()
	}
	must(t, err)
	if lost.Hits() != 1 {
		t.Errorf("%d replies were lost", lost.Hits())
	}
	if names, _, err := conn.Children("/queue"); err != nil || len(names) != 2 {
		t.Errorf("the queue holds %v (%v), want two items for one wanted", names, err)
	}
}

// Code for errors that servers hardly ever give runs in production first.
func TestTheNthRequestFails(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, _ := connect(t, 30*time.Second, srv.Addr())
	create(t, conn, "/a", "0", 0)
	const badVersion = -103
	f := srv.Inject(zktest.Match{Op: "setData", Path: "/a", Nth: 2}, zktest.Fail(badVersion))
	for i, want := range []error{nil, zk.ErrBadVersion, nil} {
		if _, err := conn.Set("/a", []byte{byte('1' + i)}, -1); !errors.Is(err, want) {
			t.Errorf("set %d: %v, want %v", i+1, err, want)
		}
	}
	if _, stat, err := conn.Get("/a"); err != nil || stat.Version != 2 || f.Hits() != 1 {
		t.Errorf("version %d, want 2: one of three writes was refused (%v, %d hits)", stat.Version, err, f.Hits())
	}
	all := srv.Inject(zktest.Match{Op: "getData", All: true}, zktest.Fail(badVersion))
	for range 2 {
		if _, _, err := conn.Get("/a"); !errors.Is(err, zk.ErrBadVersion) {
			t.Errorf("get: %v", err)
		}
	}
	all.Release()
	if _, _, err := conn.Get("/a"); err != nil {
		t.Errorf("get after release: %v", err)
	}
}

// A check-then-act that is not guarded by a version loses an update when
// somebody writes in between; holding the second step makes it happen always.
func TestAHeldRequestWaitsForItsRelease(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	slow, _ := connect(t, 30*time.Second, srv.Addr())
	quick, _ := connect(t, 30*time.Second, srv.Addr())
	create(t, slow, "/a", "0", 0)
	held := srv.Inject(zktest.Match{Op: "setData", Session: slow.SessionID()}, zktest.Hold())
	done := make(chan error, 1)
	go func() {
		_, err := slow.Set("/a", []byte("slow"), 0)
		done <- err
	}()
	<-held.Hit()
	if _, err := quick.Set("/a", []byte("quick"), 0); err != nil {
		t.Fatal(err)
	}
	held.Release()
	if err := <-done; !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("the slow writer: %v, want a bad version", err)
	}
	delayed := srv.Inject(zktest.Match{Op: "exists"}, zktest.Delay(20*time.Millisecond))
	begun := time.Now()
	if _, _, err := slow.Exists("/a"); err != nil || time.Since(begun) < 20*time.Millisecond || delayed.Hits() != 1 {
		t.Errorf("a delayed request took %s (%v)", time.Since(begun), err)
	}
	srv.Inject(zktest.Match{Op: "exists"}, zktest.Hold()) // is let go at the end
	go func() { _, _, _ = slow.Exists("/a") }()
}

func TestADroppedRequestIsNotDone(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, _ := connect(t, 30*time.Second, srv.Addr())
	srv.Inject(zktest.Match{Op: "create"}, zktest.Drop())
	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Fatalf("create: %v", err)
	}
	if st, err := srv.State(); err != nil || nodeThere(st, "/a") {
		t.Errorf("the node is there (%v)", err)
	}
}

// A client that trusts a connection that says nothing hangs with its server.
func TestAPausedServerSaysNothingAndGoesOn(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, _ := connect(t, 30*time.Second, srv.Addr())
	create(t, conn, "/a", "", zk.FlagEphemeral)
	srv.Pause()
	done := make(chan error, 1)
	go func() {
		_, _, err := conn.Get("/a")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a paused server has answered: %v", err)
	case <-time.After(100 * time.Millisecond): // as good a sign as any that nothing comes
	}
	srv.Resume()
	if err := <-done; err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestAPausedServerCanBeKilled(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, events := connect(t, 30*time.Second, srv.Addr())
	create(t, conn, "/a", "", 0)
	srv.Pause()
	must(t, srv.Kill())
	if err := srv.Kill(); !errors.Is(err, zktest.ErrDown) {
		t.Errorf("killed twice: %v", err)
	}
	must(t, srv.Restart())
	if err := srv.Restart(); !errors.Is(err, zktest.ErrStarted) {
		t.Errorf("started twice: %v", err)
	}
	await(t, events, zk.StateHasSession)
}

func TestTheStateShowsTreeSessionsAndWatches(t *testing.T) {
	leaks(t)
	srv := zktest.NewServer(t)
	conn, _ := connect(t, 30*time.Second, srv.Addr())
	create(t, conn, "/a", "data", zk.FlagEphemeral)
	if _, _, _, err := conn.GetW("/a"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := conn.ChildrenW("/"); err != nil {
		t.Fatal(err)
	}
	st, err := srv.State()
	must(t, err)
	if n, ok := st.Node("/a"); !ok || string(n.Data) != "data" || n.EphemeralOwner != conn.SessionID() {
		t.Errorf("node %+v", n)
	}
	if row, ok := st.Session(conn.SessionID()); !ok || !row.Connected || row.Timeout != 30*time.Second {
		t.Errorf("session %+v", row)
	}
	want := []zktest.Watch{{"/", conn.SessionID(), "children"}, {"/a", conn.SessionID(), "data"}}
	if len(st.Watches) != 2 || st.Watches[0] != want[0] || st.Watches[1] != want[1] {
		t.Errorf("watches %+v, want %+v", st.Watches, want)
	}
	for _, part := range []string{`node /a version 0 "data" of session`, "watch data /a", "connected true"} {
		if !strings.Contains(st.String(), part) {
			t.Errorf("%q is missing in:\n%s", part, st)
		}
	}
	err = srv.Wait(10*time.Millisecond, "a node that nobody makes", func(st zktest.State) bool { return nodeThere(st, "/b") })
	if !errors.Is(err, zktest.ErrTimeout) || !strings.Contains(err.Error(), "node /a") {
		t.Errorf("waiting in vain: %v", err)
	}
}
