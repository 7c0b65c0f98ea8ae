package cases

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Case 2: a client that comes back gets its own session or learns that it is
// over, never a fresh one.
func TestAReconnectGetsTheOldSessionOrLearnsThatItIsOver(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()

		a := open(t, s)
		a.ephemeral(top + "/in-time")
		a.drop()
		back, resp := a.again()
		if resp.SessionID != a.id || !slices.Equal(resp.Password, a.password) {
			t.Errorf("in time: session %v, want %v", resp.SessionID, a.id)
		}
		if st, there := back.stat(top + "/in-time"); !there || st.EphemeralOwner != int64(a.id) {
			t.Errorf("in time: the ephemeral is there: %v, owner %x", there, st.EphemeralOwner)
		}

		b := openFor(t, s, 400*time.Millisecond)
		b.ephemeral(top + "/too-late")
		b.drop()
		c.until("expiry", func() bool { _, there := c.stat(top + "/too-late"); return !there })
		late, resp := b.again()
		if resp.SessionID != 0 || resp.TimeoutMillis != 0 {
			t.Errorf("too late: %+v", resp)
		}
		late.wantClosed()

		guess := &session{t: t, server: s, id: a.id, password: slices.Clone(a.password), timeout: a.timeout}
		guess.password[3] ^= 1
		wrong, resp := guess.again()
		if resp.SessionID != 0 || resp.TimeoutMillis != 0 || !slices.Equal(resp.Password, make([]byte, proto.PasswordLen)) {
			t.Errorf("wrong password: %+v", resp)
		}
		wrong.wantClosed()
		if _, resp := a.again(); resp.SessionID != a.id {
			t.Errorf("after a wrong guess the true owner gets %v", resp.SessionID)
		}
		if _, there := c.stat(top + "/in-time"); !there {
			t.Error("a wrong guess took the ephemeral away")
		}
	})
}

// Better than Apache on purpose: a guess does not even cut the owner off.
func TestAWrongPasswordLeavesTheOwnersConnectionAlone(t *testing.T) {
	s := sharedZooraft()
	a := open(t, s)
	guess := &session{t: t, server: s, id: a.id, password: make([]byte, proto.PasswordLen), timeout: a.timeout}
	guess.again()
	a.get("/")
}

// Case 31: any request shows that a session lives, not only a ping.
func TestASessionThatOnlyReadsStaysAlive(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := openFor(t, s, 800*time.Millisecond)
		watcher := open(t, s)
		top := watcher.top()
		c.ephemeral(top + "/alive")
		every := time.NewTicker(150 * time.Millisecond)
		defer every.Stop()
		for begun := time.Now(); time.Since(begun) < 5*c.timeout; <-every.C {
			c.get(top)
		}
		if _, there := watcher.stat(top + "/alive"); !there {
			t.Error("the session was expired although it read all the time")
		}
	})
}

// Case 32: time that passes while the server is down expires nobody during the
// replay, and costs no write.
func TestALongStopLosesNothingThatWasWritten(t *testing.T) {
	s := own(t, nil)
	c := openFor(t, s, 600*time.Millisecond)
	top := c.top()
	for i := range 50 {
		c.create(fmt.Sprintf("%s/p%d", top, i), []byte("x"))
		c.ephemeral(fmt.Sprintf("%s/e%d", top, i))
	}
	s.Stop(t)
	<-time.After(3 * c.timeout)
	s.Start(t)
	// The session has its whole timeout again, and its client may come back.
	if _, resp := c.again(); resp.SessionID != c.id {
		t.Errorf("the session is %v after the stop, want %v", resp.SessionID, c.id)
	}
	d := open(t, s)
	if n := len(d.list(top)); n != 100 {
		t.Errorf("%d nodes after the stop, want 100", n)
	}
	before := s.Log()
	d.until("expiry", func() bool { return len(d.list(top)) == 50 })
	if len(before) == 0 {
		t.Error("the server logs nothing")
	}
}

// Case 34: who is told that the session is over finds none of its nodes.
func TestAnExpiredClientCanRegisterAgainAtOnce(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()
		node := top + "/me"
		// Several at a time: each waits for its own expiry.
		const rounds, together = 5, 100
		for range rounds {
			old := make([]*session, together)
			for i := range old {
				old[i] = openFor(t, s, 400*time.Millisecond)
				old[i].ephemeral(fmt.Sprintf("%s%d", node, i))
				old[i].drop()
			}
			for i, o := range old {
				// Asking to come back renews the session, so watch from outside.
				c.until("expiry", func() bool { _, there := c.stat(fmt.Sprintf("%s%d", node, i)); return !there })
				if _, resp := o.again(); resp.SessionID != 0 {
					t.Fatalf("session %v came back after its ephemeral was gone", resp.SessionID)
				}
				n := open(t, s)
				n.ephemeral(fmt.Sprintf("%s%d", node, i))
				n.delete(fmt.Sprintf("%s%d", node, i))
				n.drop()
			}
		}
	})
}

// Case 34, the race itself: the create is sent as soon as the answer is there.
func TestExpiredIsOnlySaidOnceTheEphemeralsAreGone(t *testing.T) {
	s := sharedZooraft()
	c := open(t, s)
	top := c.top()
	for i := range 20 {
		node := fmt.Sprintf("%s/n%d", top, i)
		a := openFor(t, s, 400*time.Millisecond)
		a.ephemeral(node)
		// The connection stays open and silent: the server closes it when the
		// session is over, and that is the news.
		a.wantClosed()
		c.ephemeral(node)
	}
}

// Case 35: after a session has moved, its old connection is cut off and cannot
// write any more, and the new one can do everything.
func TestAMovedSessionWorksOnItsNewConnectionOnly(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		a := open(t, s)
		top := a.top()
		b, resp := a.again()
		if resp.SessionID != a.id {
			t.Fatalf("session %v, want %v", resp.SessionID, a.id)
		}
		for i := range 30 {
			if got := codes(b.multi(opCreate(proto.OpCreate, fmt.Sprintf("%s/b%d", top, i), 0))); got[0] != proto.ErrOK {
				t.Fatalf("multi %d on the new connection: %v", i, got)
			}
		}
		// The old connection's write: the socket is closed, or answers nothing.
		_ = a.conn.SendRequest(99, proto.OpCreate, createBody(proto.OpCreate, top+"/late", nil, nil, 0))
		a.wantClosed()
		b.want(proto.ErrOK, proto.OpSync, proto.AppendString(nil, top))
		if _, there := b.stat(top + "/late"); there {
			t.Error("a write of the old connection took effect")
		}
	})
}

// Case 37: the record of a session's end holds no list of its ephemerals, so
// their number has no limit.
func TestASessionWithVeryManyEphemeralsEnds(t *testing.T) {
	s := own(t, nil)
	c := open(t, s)
	top := c.top()
	const count = 60000
	long := func(i int) string { return fmt.Sprintf("%s/%0100d", top, i) }
	fill := func(e *session) {
		t.Helper()
		const window = 1000
		for i := range count {
			e.send(proto.OpCreate, createBody(proto.OpCreate, long(i), nil, nil, 1))
			if i >= window {
				e.reply()
			}
		}
		for range window {
			e.reply()
		}
	}
	closing := open(t, s)
	fill(closing)
	closing.want(proto.ErrOK, proto.OpCloseSession, nil)
	closing.wantClosed()
	if n := len(c.list(top)); n != 0 {
		t.Fatalf("%d ephemerals left after the close", n)
	}
	expiring := openFor(t, s, 10*time.Second)
	fill(expiring)
	if st, _ := c.stat(top); st.NumChildren != count {
		t.Fatalf("%d ephemerals, want %d", st.NumChildren, count)
	}
	expiring.drop()
	c.until("expiry", func() bool { st, _ := c.stat(top); return st.NumChildren == 0 })
	s.Restart(t)
	if st, _ := open(t, s).stat(top); st.NumChildren != 0 {
		t.Errorf("%d ephemerals after the restart", st.NumChildren)
	}
}

// Case 38: a server that was stopped for longer than the sessions' timeout has
// not heard its clients; they must not pay for it.
func TestAPausedServerExpiresNobody(t *testing.T) {
	s := own(t, nil)
	c := openFor(t, s, 1200*time.Millisecond)
	top := c.top()
	c.ephemeral(top + "/mine")
	s.Signal(t, syscall.SIGSTOP)
	<-time.After(3 * c.timeout)
	s.Signal(t, syscall.SIGCONT)
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for range 10 {
		<-every.C
		c.ping()
	}
	if _, there := c.stat(top + "/mine"); !there {
		t.Error("the session was expired by a pause of the server")
	}
}

// Case 50: a client that has seen more than this server must not be served the
// past.
func TestAClientThatHasSeenMoreIsNotServed(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		a := open(t, s)
		a.top()
		for name, id := range map[string]proto.SessionID{"a new session": 0, "a known session": a.id} {
			c := peer.Dial(t, s.Address)
			req := proto.ConnectRequest{LastZxidSeen: a.zxid + 1000, TimeoutMillis: 10000, SessionID: id, Password: a.password}
			if _, err := c.Connect(req, patience); !errors.Is(err, peer.ErrClosed) {
				t.Errorf("%s: %v, want a close without an answer", name, err)
			}
		}
	})
}

// Case 52: reads that wait behind a write are answered although other sessions
// end in the middle of theirs.
func TestReadsAreAnsweredWhileOtherSessionsBreakOff(t *testing.T) {
	s := own(t, nil)
	a := open(t, s)
	top := a.top()
	quit := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			conn, err := peer.Open(s.Address)
			if err != nil {
				t.Error(err)
				return
			}
			req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen)}
			if _, err := conn.Connect(req, patience); err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				_ = conn.SendRequest(1, proto.OpSetData, setBody(top, []byte("b"), -1))
				_ = conn.SendRequest(2, proto.OpGetData, readBody(top, true))
			}
			conn.Close()
		}
	}()
	mine := top + "/mine"
	a.create(mine, nil)
	for i := range 2000 {
		value := fmt.Appendf(nil, "%d", i)
		set := a.send(proto.OpSetData, setBody(mine, value, -1))
		get := a.send(proto.OpGetData, readBody(mine, false))
		list := a.send(proto.OpGetChildren, readBody(top, false))
		for _, want := range []int32{set, get, list} {
			h, d := a.reply()
			if h.Xid != want || h.Err != proto.ErrOK {
				t.Fatalf("round %d: %+v, want xid %d", i, h, want)
			}
			if want == get && !slices.Equal(d.Buffer(), value) {
				t.Fatalf("round %d: a read does not show the write before it", i)
			}
		}
	}
	close(quit)
	<-ended
}
