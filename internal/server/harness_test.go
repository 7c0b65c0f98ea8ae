package server

import (
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/proto"
)

// waitLimit is how long a test waits for a value before it fails. It is no
// measure of anything.
const waitLimit = 30 * time.Second

// testConfig is a server on a free port with its data in a temporary folder.
func testConfig(t testing.TB) *config.Config {
	t.Helper()
	c := config.Bare()
	c.Listen.Port = 0
	c.Listen.MaxConnectionsPerHost = 0
	c.Session.TickTime = 100 * time.Millisecond
	c.Session.MinTimeout, c.Session.MaxTimeout = 200*time.Millisecond, time.Minute
	c.Storage.DataDir = t.TempDir()
	c.Storage.LogDir = c.Storage.DataDir
	return c
}

// startServer starts a server that is stopped when the test ends.
func startServer(t testing.TB, c *config.Config) *Server {
	t.Helper()
	return startServerWith(t, Options{Config: c})
}

func startServerWith(t testing.TB, o Options) *Server {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := Start(o)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	select {
	case <-s.Ready():
	case <-time.After(waitLimit):
		t.Fatalf("not ready: %+v", (*report)(s).Health())
	}
	return s
}

// client is one raw connection.
type client struct {
	t    testing.TB
	net  net.Conn
	xid  int32
	resp proto.ConnectResponse
}

func dial(t testing.TB, s *Server) *client {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &client{t: t, net: nc}
}

// connect dials and opens a session, or resumes one.
func connect(t testing.TB, s *Server, req proto.ConnectRequest) *client {
	t.Helper()
	c := dial(t, s)
	if req.TimeoutMillis == 0 {
		req.TimeoutMillis = 30000
	}
	if req.Password == nil {
		req.Password = make([]byte, proto.PasswordLen)
	}
	req.HasReadOnly = true
	c.write(proto.EndFrame(req.Append(proto.BeginFrame(nil)), 0))
	frame, err := proto.ReadFrame(c.net, nil, 1<<20)
	if err != nil {
		t.Fatalf("connect answer: %v", err)
	}
	if c.resp, err = proto.DecodeConnectResponse(frame); err != nil {
		t.Fatalf("connect answer: %v", err)
	}
	return c
}

// write sends bytes and gives the server the whole time again.
func (c *client) write(b []byte) {
	c.t.Helper()
	_ = c.net.SetDeadline(time.Now().Add(waitLimit)) // fails only on a closed socket
	if _, err := c.net.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// frame builds a request with the next xid.
func (c *client) frame(op proto.OpCode, body []byte) []byte {
	c.xid++
	b := proto.AppendInt(proto.BeginFrame(nil), c.xid)
	return proto.EndFrame(append(proto.AppendInt(b, int32(op)), body...), 0)
}

func (c *client) send(op proto.OpCode, body []byte) int32 {
	c.t.Helper()
	c.write(c.frame(op, body))
	return c.xid
}

// reply is one frame from the server.
type reply struct {
	proto.ReplyHeader
	body []byte
}

func (r reply) event() proto.WatcherEvent { return proto.NewDecoder(r.body).WatcherEvent() }

// recv reads one frame. At the end of the stream ok is false.
func (c *client) recv() (r reply, ok bool) {
	c.t.Helper()
	frame, err := proto.ReadFrame(c.net, nil, 64<<20)
	if err != nil {
		return r, false
	}
	d := proto.NewDecoder(frame)
	r.ReplyHeader = d.ReplyHeader()
	r.body = d.Rest()
	return r, d.Err() == nil
}

// must reads one frame.
func (c *client) must() reply {
	c.t.Helper()
	r, ok := c.recv()
	if !ok {
		c.t.Fatalf("the connection ended")
	}
	return r
}

// call sends a request and reads its reply, which must come next.
func (c *client) call(op proto.OpCode, body []byte) reply {
	c.t.Helper()
	xid := c.send(op, body)
	r := c.must()
	if r.Xid != xid {
		c.t.Fatalf("%v: reply has xid %d, want %d", op, r.Xid, xid)
	}
	return r
}

func (c *client) create(path, data string, flags int32) reply {
	c.t.Helper()
	return c.call(proto.OpCreate, createBody(path, data, flags))
}

func createBody(path, data string, flags int32) []byte {
	r := proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL, Flags: flags}
	return r.Append(nil, proto.OpCreate)
}

func setBody(path, data string) []byte {
	r := proto.SetDataRequest{Path: path, Data: []byte(data), Version: -1}
	return r.Append(nil)
}

func pathBody(path string, watch bool) []byte {
	r := proto.PathWatch{Path: path, Watch: watch}
	return r.Append(nil)
}

// gone waits for the server to close the connection and returns what came
// before.
func (c *client) gone() []reply {
	c.t.Helper()
	var all []reply
	for {
		r, ok := c.recv()
		if !ok {
			return all
		}
		all = append(all, r)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitLimit)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		<-tick.C
	}
}

func (r reply) String() string {
	return fmt.Sprintf("xid %d zxid %v err %d (%d bytes)", r.Xid, r.Zxid, r.Err, len(r.body))
}
