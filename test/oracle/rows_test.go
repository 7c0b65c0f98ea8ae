package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Some requests end the real server's process, since it looks at them only when
// it applies. Ours answers and goes on.
func TestARequestThatStopsTheRealServerDoesNotStopOurs(t *testing.T) {
	cases := []struct {
		name  string
		steps []string // the last one stops the real server
		want  proto.ErrCode
	}{
		{"createTTL without a TTL mode", []string{"createTTL /x flags=0 ttl=-1"}, proto.ErrBadArguments},
		{"a broken text of quota usage", []string{
			"create /q", "create /zookeeper/quota/q", `create /zookeeper/quota/q/zookeeper_limits data="count=5,bytes=5"`,
			`create /zookeeper/quota/q/zookeeper_stats data="count=0,bytes=0"`, `setData /zookeeper/quota/q/zookeeper_stats data=1`,
			"create /q/x",
		}, proto.ErrOK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			real := peer.StartApache(t, options(""))
			if h := ask(t, real.Address, c.steps...); h != nil {
				t.Errorf("the real server answers %+v: the row is out of date", h)
			}
			real.Wait(t, time.Minute)

			ours := peer.StartZooraft(t, options(""))
			if h := ask(t, ours.Address, c.steps...); h == nil || h.Err != c.want {
				t.Errorf("ours answers %+v, want %v", h, c.want)
			}
			if h := ask(t, ours.Address, "exists /"); h == nil || h.Err != proto.ErrOK {
				t.Errorf("ours answers %+v afterwards", h)
			}
		})
	}
}

// Ours judges a write by the ACL that a request just before it has set, however
// fast it follows. The real server does so only once the setACL is applied.
func TestAWriteBehindASetACLIsJudgedByIt(t *testing.T) {
	ours := peer.StartZooraft(t, options(""))
	for i := range 50 {
		c := peer.Dial(t, ours.Address)
		req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen)}
		if _, err := c.Connect(req, patience); err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("/n%d", i)
		want := []proto.ErrCode{proto.ErrOK, proto.ErrOK, proto.ErrNoAuth}
		for k, op := range []string{"create " + path, "setACL " + path + " acl=1:world:anyone", "create " + path + "/x"} {
			r, err := values{}.encode(step("%s", op).Tokens, int32(k+1))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SendRequest(r.xid, r.op, r.body); err != nil {
				t.Fatal(err)
			}
		}
		for k := range want {
			b, err := c.Receive(patience)
			if err != nil {
				t.Fatal(err)
			}
			if h := proto.NewDecoder(b).ReplyHeader(); h.Xid != int32(k+1) || h.Err != want[k] {
				t.Fatalf("reply %+v, want xid %d and error %v", h, k+1, want[k])
			}
		}
		c.Close()
	}
}

// ask sends requests on a session of its own and returns the last one's reply,
// nil if the server closes instead.
func ask(t *testing.T, addr string, operations ...string) *proto.ReplyHeader {
	t.Helper()
	c := peer.Dial(t, addr)
	req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen)}
	if _, err := c.Connect(req, patience); err != nil {
		t.Fatal(err)
	}
	var last *proto.ReplyHeader
	for i, op := range operations {
		r, err := values{}.encode(step("%s", op).Tokens, int32(i+1))
		if err != nil {
			t.Fatal(err)
		}
		h, _, err := c.Call(r.xid, r.op, r.body, 3*patience)
		if err != nil {
			return nil
		}
		last = &h
	}
	return last
}
