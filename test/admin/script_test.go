package admin

import "github.com/zooraft/zooraft/internal/proto"

// clients are the sessions of the script, in the order of its steps.
type clients struct {
	scene *scene
	a, b  *client
	// c fails with a write and then comes back on another connection.
	c *client
}

// connectAll opens three sessions and a connection that says nothing.
func (s *scene) connectAll() *clients {
	c := &clients{scene: s, a: s.session("a", 10000), b: s.session("b", 30000)}
	c.c = s.session("c", 10000)
	s.connect("silent")
	return c
}

// use makes nodes, ephemerals and watches of several kinds, some in vain.
func (c *clients) use() {
	a, b := c.a, c.b
	const ephemeral = 1
	a.create("/a", "data", 0, proto.ErrOK)
	a.create("/a", "data", 0, proto.ErrNodeExists)
	a.create("/a/e", "", ephemeral, proto.ErrOK)
	b.create("/b1", "x", ephemeral, proto.ErrOK)
	b.create("/b2", "x", ephemeral, proto.ErrOK)
	b.read(proto.OpGetData, "/a", true, proto.ErrOK)
	b.read(proto.OpExists, "/none", true, proto.ErrNoNode)
	b.read(proto.OpGetChildren2, "/a", true, proto.ErrOK)
	b.read(proto.OpGetChildren, "/b1", true, proto.ErrOK)
	a.read(proto.OpGetData, "/a", true, proto.ErrOK)
	persistent := proto.PathType{Path: "/a/e", Type: 0}
	b.call(proto.OpAddWatch, persistent.Append(nil), proto.ErrOK)
	b.callAs(proto.XidPing, proto.OpPing, nil, proto.ErrOK)
}

// fail has a write that fails as a session's last request, and a sync.
func (c *clients) fail() {
	c.c.create("/a", "data", 0, proto.ErrNodeExists)
	c.b.call(proto.OpSync, proto.AppendString(nil, "/a"), proto.ErrOK)
}

// comeBack moves a session to another connection.
func (c *clients) comeBack() { c.scene.reconnect("c again", c.c) }

// fireWatches changes what is watched.
func (c *clients) fireWatches() {
	set := proto.SetDataRequest{Path: "/a", Data: []byte("new"), Version: -1}
	c.a.call(proto.OpSetData, set.Append(nil), proto.ErrOK)
	remove := proto.PathVersion{Path: "/a/e", Version: -1}
	c.a.call(proto.OpDelete, remove.Append(nil), proto.ErrOK)
	c.a.read(proto.OpGetACL, "/none", false, proto.ErrNoNode)
}

// closeOne closes the session b and waits for the end of its connection.
func (c *clients) closeOne() {
	t := c.scene.t
	t.Helper()
	c.b.call(proto.OpCloseSession, nil, proto.ErrOK)
	if _, err := c.b.conn.Receive(patience); err == nil {
		t.Errorf("%s sends something after the close of a session", c.scene.server.Kind)
	}
}

// work is the script without a look between its steps, with a quota and a wrong
// password for the numbers of mntr.
func (s *scene) work() {
	c := s.connectAll()
	c.use()
	c.fail()
	c.fireWatches()
	c.comeBack()
	const quota = "/zookeeper/quota/a"
	c.a.create(quota, "", 0, proto.ErrOK)
	c.a.create(quota+"/zookeeper_limits", "count=9,bytes=-1=;byteHardLimit=-1;countHardLimit=-1", 0, proto.ErrOK)
	c.a.create(quota+"/zookeeper_stats", "count=1,bytes=3", 0, proto.ErrOK)
	c.a.create("/a/f", "12345", 0, proto.ErrOK)
	c.closeOne()
}
