package admin

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// patience bounds every wait for a server. It only ends broken runs.
const patience = 20 * time.Second

// client is a session on a raw connection.
type client struct {
	t    *testing.T
	conn *peer.Conn
	xid  int32
	id   proto.SessionID
	// password belongs to id.
	password []byte
}

// scene is a server with the clients that a test has opened, by name.
type scene struct {
	t      *testing.T
	server *peer.Server
	// names maps what identifies a client in a text (its local address as
	// Java prints it, its session id) to the client's name.
	names map[string]string
}

// connect opens a connection and sends nothing.
func (s *scene) connect(name string) *peer.Conn {
	s.t.Helper()
	conn := peer.Dial(s.t, s.server.Address)
	s.names["/"+conn.LocalAddr().String()] = name
	return conn
}

// session opens a session with a timeout in milliseconds.
func (s *scene) session(name string, timeout int32) *client {
	s.t.Helper()
	c := &client{t: s.t, conn: s.connect(name)}
	response, err := c.conn.Connect(proto.ConnectRequest{
		TimeoutMillis: timeout, Password: make([]byte, proto.PasswordLen), HasReadOnly: true,
	}, patience)
	if err != nil || response.SessionID == 0 {
		s.t.Fatalf("%s: connect: %+v, %v", name, response, err)
	}
	c.id, c.password = response.SessionID, response.Password
	s.names[c.id.String()] = "session " + name
	return c
}

// reconnect goes on with the session of c on a new connection, under a name of
// its own.
func (s *scene) reconnect(name string, c *client) {
	s.t.Helper()
	conn := s.connect(name)
	response, err := conn.Connect(proto.ConnectRequest{
		SessionID: c.id, TimeoutMillis: 10000, Password: c.password, HasReadOnly: true,
	}, patience)
	if err != nil || response.SessionID != c.id {
		s.t.Fatalf("%s: reconnect: %+v, %v", name, response, err)
	}
	// The connection that the session had is closed.
	if _, err := c.conn.Receive(patience); err == nil {
		s.t.Fatalf("%s: the former connection still lives", name)
	}
	c.conn = conn
}

// call sends a request and checks the error code of the reply.
func (c *client) call(op proto.OpCode, body []byte, want proto.ErrCode) {
	c.t.Helper()
	c.xid++
	c.callAs(c.xid, op, body, want)
}

func (c *client) callAs(xid int32, op proto.OpCode, body []byte, want proto.ErrCode) {
	c.t.Helper()
	header, _, err := c.conn.Call(xid, op, body, patience)
	if err != nil || header.Err != want {
		c.t.Fatalf("%v: %+v, %v; want %v", op, header, err, want)
	}
}

func (c *client) create(path, data string, flags int32, want proto.ErrCode) {
	c.t.Helper()
	r := proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL, Flags: flags}
	c.call(proto.OpCreate, r.Append(nil, proto.OpCreate), want)
}

// read sends exists, getData or a getChildren.
func (c *client) read(op proto.OpCode, path string, watch bool, want proto.ErrCode) {
	c.t.Helper()
	r := proto.PathWatch{Path: path, Watch: watch}
	c.call(op, r.Append(nil), want)
}

// say sends a word, with bytes behind it, and returns the answer, reduced.
func (s *scene) say(word string) string {
	s.t.Helper()
	text, asker := s.ask(word)
	s.names[asker] = "asker"
	defer delete(s.names, asker)
	return s.reduce(word[:4], text)
}

// ask sends a word and returns the answer and the asking address.
func (s *scene) ask(word string) (text, asker string) {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.server.Address, patience)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		s.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		s.t.Fatalf("%s of %s: %v", word, s.server.Kind, err)
	}
	return string(answer), "/" + conn.LocalAddr().String()
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
