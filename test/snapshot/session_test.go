// Package snapshot proves room snapshot against the real ZooKeeper 3.9.5: the
// real server starts from files that the room wrote, and the room reads the
// files that the real server wrote. It needs a JDK and Maven.
package snapshot

import (
	"os"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/snapshot"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// callTimeout bounds one request to a server that has gone wrong.
const callTimeout = 20 * time.Second

// superDigest is the identity that the servers of this suite give every right:
// user super, password secret.
const superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

// client is a session of one test.
type client struct {
	t    *testing.T
	conn *peer.Conn
	id   proto.SessionID
	xid  int32
}

func connect(t *testing.T, s *peer.Server) *client {
	t.Helper()
	c := &client{t: t, conn: peer.Dial(t, s.Address)}
	resp, err := c.conn.Connect(proto.ConnectRequest{TimeoutMillis: 40000, Password: make([]byte, proto.PasswordLen)}, callTimeout)
	if err != nil || resp.SessionID == 0 {
		t.Fatalf("connect: %+v, %v", resp, err)
	}
	c.id = resp.SessionID
	return c
}

// call sends a request that must succeed and returns a decoder of the body.
func (c *client) call(op proto.OpCode, body []byte) *proto.Decoder {
	c.t.Helper()
	c.xid++
	h, b, err := c.conn.Call(c.xid, op, body, callTimeout)
	if err != nil || h.Err != proto.ErrOK {
		c.t.Fatalf("%v: %+v, %v", op, h, err)
	}
	return proto.NewDecoder(b)
}

func (c *client) auth(scheme, credentials string) {
	c.t.Helper()
	p := proto.AuthPacket{Scheme: scheme, Auth: []byte(credentials)}
	h, _, err := c.conn.Call(proto.XidAuth, proto.OpAuth, p.Append(nil), callTimeout)
	if err != nil || h.Err != proto.ErrOK {
		c.t.Fatalf("auth: %+v, %v", h, err)
	}
}

func (c *client) create(op proto.OpCode, r proto.CreateRequest) {
	c.t.Helper()
	if r.ACL == nil {
		r.ACL = proto.OpenACL
	}
	c.call(op, r.Append(nil, op))
}

// node is a node as a client sees it.
type node struct {
	data []byte
	acl  []proto.ACL
	stat proto.Stat
}

// walk reads every node below and including top.
func (c *client) walk(top string) map[string]node {
	c.t.Helper()
	all := map[string]node{}
	todo := []string{top}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		req := proto.PathWatch{Path: p}
		d := c.call(proto.OpGetData, req.Append(nil))
		n := node{data: d.Buffer(), stat: d.Stat()}
		d = c.call(proto.OpGetACL, proto.AppendString(nil, p))
		n.acl = d.ACLs()
		all[p] = n
		for _, name := range c.call(proto.OpGetChildren, req.Append(nil)).Strings() {
			todo = append(todo, path.Join(p, name))
		}
	}
	return all
}

// file is a Sink that keeps what a snapshot holds.
type file struct {
	sessions []snapshot.Session
	order    []string
	nodes    map[string]persisted
}

// persisted is a node as a snapshot holds it.
type persisted struct {
	data []byte
	acl  []proto.ACL
	stat proto.StatPersisted
}

func (f *file) Session(s snapshot.Session) error { f.sessions = append(f.sessions, s); return nil }

func (f *file) Node(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
	if f.nodes == nil {
		f.nodes = map[string]persisted{}
	}
	f.order = append(f.order, path)
	f.nodes[path] = persisted{data, acl, st}
	return nil
}

// each yields the nodes in the order in which they came.
func (f *file) each(yield snapshot.NodeFunc) error {
	for _, p := range f.order {
		n := f.nodes[p]
		if err := yield(p, n.data, n.acl, n.stat); err != nil {
			return err
		}
	}
	return nil
}

// view returns the nodes as a client would see them.
func (f *file) view() map[string]node {
	children := map[string]int{}
	for _, p := range f.order {
		if parent, _, ok := proto.SplitPath(p); ok {
			children[parent]++
		}
	}
	all := map[string]node{}
	for p, n := range f.nodes {
		all[p] = node{n.data, n.acl, n.stat.Wire(len(n.data), children[p])}
	}
	return all
}

// sameTree compares two trees. The real server rewrites nodes of its own when
// it starts, which own names: only their existence counts.
func sameTree(t *testing.T, got, want map[string]node, own ...string) {
	t.Helper()
	for p, w := range want {
		g, ok := got[p]
		if !ok {
			t.Errorf("%s is missing", p)
			continue
		}
		if slices.Contains(own, p) {
			continue
		}
		if (g.data == nil) != (w.data == nil) || string(g.data) != string(w.data) {
			t.Errorf("%s: data %q (null %v), want %q (null %v)", p, g.data, g.data == nil, w.data, w.data == nil)
		}
		if !slices.Equal(g.acl, w.acl) {
			t.Errorf("%s: ACL %v, want %v", p, g.acl, w.acl)
		}
		if g.stat != w.stat {
			t.Errorf("%s: stat %+v, want %+v", p, g.stat, w.stat)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s should not be there", p)
		}
	}
}
