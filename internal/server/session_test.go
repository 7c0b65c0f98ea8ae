package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

func resume(c *client) proto.ConnectRequest {
	return proto.ConnectRequest{SessionID: c.resp.SessionID, Password: c.resp.Password, TimeoutMillis: 30000}
}

// Cases 2 and 35: a session that comes back by another connection keeps its id
// and its ephemerals; the former connection is closed, and what it still sends
// has no effect.
func TestASessionMovesToTheConnectionThatRenewedItLast(t *testing.T) {
	s := startServer(t, testConfig(t))
	a := connect(t, s, proto.ConnectRequest{})
	a.create("/e", "", proto.CreateEphemeral)
	b := connect(t, s, resume(a))
	if b.resp.SessionID != a.resp.SessionID || !bytes.Equal(b.resp.Password, a.resp.Password) {
		t.Fatalf("resumed %v as %v", a.resp, b.resp)
	}
	// The late write may meet a closed socket; it must never be answered.
	_, _ = a.net.Write(a.frame(proto.OpCreate, createBody("/late", "", 0)))
	if got := a.gone(); len(got) != 0 {
		t.Fatalf("the former connection got %v", got)
	}
	if r := b.call(proto.OpExists, pathBody("/late", false)); r.Err != proto.ErrNoNode {
		t.Fatalf("the late write took effect: %v", r)
	}
	if r := b.call(proto.OpExists, pathBody("/e", false)); r.Err != 0 {
		t.Fatalf("the ephemeral is gone: %v", r)
	}
	multi := proto.AppendMulti(nil, []proto.MultiOp{{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: "/e", Version: -1}}})
	for range 50 {
		if r := b.call(proto.OpMulti, multi); r.Err != 0 {
			t.Fatalf("multi after the move: %v", r)
		}
	}
}

// Case 2 (c), and better than Apache: a wrong password gets the answer of an
// expired session, and the owner does not notice.
func TestAWrongPasswordNeverDisturbsTheOwner(t *testing.T) {
	s := startServer(t, testConfig(t))
	a := connect(t, s, proto.ConnectRequest{})
	a.create("/e", "", proto.CreateEphemeral)
	wrong := resume(a)
	wrong.Password = bytes.Clone(wrong.Password)
	wrong.Password[3]++
	b := connect(t, s, wrong)
	if b.resp.SessionID != 0 || b.resp.TimeoutMillis != 0 || !bytes.Equal(b.resp.Password, make([]byte, 16)) {
		t.Fatalf("answer %+v", b.resp)
	}
	if got := b.gone(); len(got) != 0 {
		t.Fatalf("then %v", got)
	}
	if r := a.call(proto.OpExists, pathBody("/e", false)); r.Err != 0 {
		t.Fatalf("the owner: %v", r)
	}
}

// Case 34: whoever learns that a session has expired finds none of its nodes.
func TestAnExpiredSessionAndItsEphemeralsEndTogether(t *testing.T) {
	s := startServer(t, testConfig(t))
	watcher := connect(t, s, proto.ConnectRequest{})
	for range 5 {
		a := connect(t, s, proto.ConnectRequest{TimeoutMillis: 1000})
		a.create("/svc", "", proto.CreateEphemeral)
		if err := a.net.Close(); err != nil {
			t.Fatal(err)
		}
		watcher.call(proto.OpExists, pathBody("/svc", true))
		if e := watcher.must(); e.event().Type != proto.EventNodeDeleted {
			t.Fatalf("event %+v", e.event())
		}
		again := connect(t, s, resume(a))
		if again.resp.SessionID != 0 {
			t.Fatalf("the session lives on: %+v", again.resp)
		}
		b := connect(t, s, proto.ConnectRequest{})
		if r := b.create("/svc", "", proto.CreateEphemeral); r.Err != 0 {
			t.Fatalf("create after expiry: %v", r)
		}
		b.call(proto.OpCloseSession, nil)
	}
}

// An expired session's live connection is closed without a word.
func TestASilentClientLosesSessionAndConnection(t *testing.T) {
	s := startServer(t, testConfig(t))
	a := connect(t, s, proto.ConnectRequest{TimeoutMillis: 200})
	if got := a.gone(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	eventually(t, "no session left", func() bool { return (*report)(s).Stats().GlobalSessions == 0 })
}

// Case 31: a client that only reads is alive.
func TestAnyRequestKeepsASessionAlive(t *testing.T) {
	s := startServer(t, testConfig(t))
	a := connect(t, s, proto.ConnectRequest{TimeoutMillis: 2000})
	end := time.Now().Add(5000 * time.Millisecond)
	for time.Now().Before(end) {
		if r := a.call(proto.OpGetChildren, pathBody("/", false)); r.Err != 0 {
			t.Fatal(r)
		}
	}
}

// A client that has seen more than the server is turned away without a reply.
func TestAClientFromTheFutureIsClosedWithoutReply(t *testing.T) {
	s := startServer(t, testConfig(t))
	a := connect(t, s, proto.ConnectRequest{})
	for _, req := range []proto.ConnectRequest{
		{LastZxidSeen: s.state.Zxid() + 1000, TimeoutMillis: 4000, Password: make([]byte, 16)},
		{LastZxidSeen: s.state.Zxid() + 1000, TimeoutMillis: 4000, SessionID: a.resp.SessionID, Password: a.resp.Password},
	} {
		c := dial(t, s)
		c.write(proto.EndFrame(req.Append(proto.BeginFrame(nil)), 0))
		if got := c.gone(); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
	}
	if r := a.create("/still-mine", "", 0); r.Err != 0 {
		t.Fatalf("the owner: %v", r)
	}
}

// Sessions, ephemerals and watches' causes survive a restart; passwords too.
func TestSessionsGoOnAfterARestart(t *testing.T) {
	c := testConfig(t)
	s := startServer(t, c)
	a := connect(t, s, proto.ConnectRequest{})
	a.create("/e", "x", proto.CreateEphemeral)
	for _, snapshot := range []bool{false, true} {
		if snapshot {
			if err := s.node.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		s = startServer(t, c)
		b := connect(t, s, resume(a))
		if b.resp.SessionID != a.resp.SessionID {
			t.Fatalf("after restart (snapshot %v): %+v", snapshot, b.resp)
		}
		r := b.call(proto.OpExists, pathBody("/e", false))
		if st := proto.NewDecoder(r.body).Stat(); r.Err != 0 || st.EphemeralOwner != int64(a.resp.SessionID) {
			t.Fatalf("after restart: %v %+v", r, st)
		}
	}
}

// closeSession is answered once the ephemerals are gone, then the server
// closes.
func TestCloseSessionIsAnsweredAfterTheEphemeralsAreGone(t *testing.T) {
	s := startServer(t, testConfig(t))
	a, b := connect(t, s, proto.ConnectRequest{}), connect(t, s, proto.ConnectRequest{})
	a.create("/e", "", proto.CreateEphemeral)
	if r := a.call(proto.OpCloseSession, nil); r.Err != 0 {
		t.Fatal(r)
	}
	if r := b.call(proto.OpExists, pathBody("/e", false)); r.Err != proto.ErrNoNode {
		t.Fatal(r)
	}
	if got := a.gone(); len(got) != 0 {
		t.Fatalf("after the reply: %v", got)
	}
}
