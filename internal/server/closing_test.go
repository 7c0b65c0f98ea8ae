package server

import (
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/watch"
)

// A connection with very many watches ends, and everybody else goes on: the
// watches are forgotten outside of the state lock. Here somebody holds the lock
// of the watches for as long as it takes others to be answered.
func TestNobodyWaitsWhileTheWatchesOfAConnectionAreForgotten(t *testing.T) {
	for _, test := range []struct {
		name string
		send func(c *client) []byte
		want []proto.ErrCode // of the replies before the end
		why  reason
	}{
		{"its session is closed", func(c *client) []byte {
			return c.frame(proto.OpCloseSession, nil)
		}, []proto.ErrCode{proto.ErrOK}, reasonSessionClosed},
		{"it proves nothing, behind a write", func(c *client) []byte {
			set := c.frame(proto.OpSetData, setBody("/none", ""))
			p := proto.AuthPacket{Scheme: "nonsense"}
			return append(set, c.frame(proto.OpAuth, p.Append(nil))...)
		}, []proto.ErrCode{proto.ErrNoNode, proto.ErrAuthFailed}, reasonAuthFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, testConfig(t))
			c, other := connect(t, s, proto.ConnectRequest{}), connect(t, s, proto.ConnectRequest{})
			c.call(proto.OpExists, pathBody("/a", true))
			ending := s.session(t, c.resp.SessionID)
			held, letGo, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				s.state.Watches().EachData(func(watch.Watcher, string) { close(held); <-letGo })
			}()
			<-held
			c.write(test.send(c))
			eventually(t, "the connection is ending", ending.Gone)
			_, answered := other.recvAfter(other.frame(proto.OpExists, pathBody("/", false)))
			close(letGo)
			<-done
			if !answered {
				t.Fatal("another client waits")
			}
			got := c.gone()
			if len(got) != len(test.want) {
				t.Fatalf("then %v", got)
			}
			for i, r := range got {
				if r.Err != test.want[i] {
					t.Errorf("reply %d: %v, want %v", i, r, test.want[i])
				}
			}
			if n := s.metrics.closed.Key(string(test.why)).Value(); n != 1 || s.state.Watches().Count() != 0 {
				t.Errorf("%d closings for %s, %d watches left", n, test.why, s.state.Watches().Count())
			}
		})
	}
}

// recvAfter writes a request and reads one frame, if it comes.
func (c *client) recvAfter(request []byte) (reply, bool) {
	c.t.Helper()
	c.write(request)
	return c.recv()
}
