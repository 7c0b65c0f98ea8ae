package oracle

import (
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// One request ends the real server's process, since it looks at the lifetime
// only when it applies. Ours refuses it and goes on.
func TestARequestThatStopsTheRealServerIsRefused(t *testing.T) {
	request := step("call a createTTL /x flags=0 ttl=-1")
	real := peer.StartApache(t, options(""))
	if h, _ := ask(t, real.Address, request); h != nil {
		t.Errorf("the real server answers %+v: the row is out of date", h)
	}
	real.Wait(t, time.Minute)

	ours := peer.StartZooraft(t, options(""))
	if h, _ := ask(t, ours.Address, request); h == nil || h.Err != proto.ErrBadArguments {
		t.Errorf("ours answers %+v, want %v", h, proto.ErrBadArguments)
	}
	if h, _ := ask(t, ours.Address, step("call a exists /")); h == nil || h.Err != proto.ErrOK {
		t.Errorf("ours answers %+v afterwards", h)
	}
}

// ask sends one request on a session of its own. It returns nil if the server
// closes instead.
func ask(t *testing.T, addr string, s Step) (*proto.ReplyHeader, []byte) {
	t.Helper()
	c := peer.Dial(t, addr)
	req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen)}
	if _, err := c.Connect(req, patience); err != nil {
		t.Fatal(err)
	}
	r, err := values{}.encode(s.Tokens[2:], 1)
	if err != nil {
		t.Fatal(err)
	}
	h, body, err := c.Call(r.xid, r.op, r.body, 3*patience)
	if err != nil {
		return nil, nil
	}
	return &h, body
}
