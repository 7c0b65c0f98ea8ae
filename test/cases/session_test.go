package cases

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// patience bounds a wait for something that must come; only a broken server
// makes a test wait that long.
const patience = 90 * time.Second

// session is one connection with its session. Requests are sent one at a time
// unless a test writes to conn itself.
type session struct {
	t        *testing.T
	server   *peer.Server
	conn     *peer.Conn
	id       proto.SessionID
	password []byte
	timeout  time.Duration
	xid      int32
	zxid     proto.Zxid // of the last reply
	events   []event    // notifications that came before the last reply
}

// event is a notification, with the zxid of its header.
type event struct {
	Type int32
	Path string
}

func (e event) String() string { return fmt.Sprintf("%d %s", e.Type, e.Path) }

// The types of events.
const (
	created  = 1
	deleted  = 2
	changed  = 3
	children = 4
)

// open connects a new session of a minute: it may be silent while others work,
// on a machine that is busy.
func open(t *testing.T, s *peer.Server) *session {
	t.Helper()
	return openFor(t, s, time.Minute)
}

func openFor(t *testing.T, s *peer.Server, timeout time.Duration) *session {
	t.Helper()
	c := &session{t: t, server: s, conn: peer.Dial(t, s.Address)}
	c.connect(proto.ConnectRequest{TimeoutMillis: int32(timeout.Milliseconds()), Password: make([]byte, proto.PasswordLen)})
	if c.id == 0 {
		t.Fatal("no session was given")
	}
	return c
}

// connect sends a connect request and keeps the answer.
func (s *session) connect(req proto.ConnectRequest) proto.ConnectResponse {
	s.t.Helper()
	resp, err := s.conn.Connect(req, patience)
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	s.id, s.password = resp.SessionID, resp.Password
	s.timeout = time.Duration(resp.TimeoutMillis) * time.Millisecond
	return resp
}

// again connects a second time with this session's id and password and returns
// the answer; its id is 0 when the session is over.
func (s *session) again() (*session, proto.ConnectResponse) {
	s.t.Helper()
	n := &session{t: s.t, server: s.server, conn: peer.Dial(s.t, s.server.Address), xid: 1000}
	resp := n.connect(proto.ConnectRequest{
		LastZxidSeen: s.zxid, TimeoutMillis: int32(s.timeout.Milliseconds()), SessionID: s.id, Password: s.password,
	})
	return n, resp
}

// reply receives the next reply, collecting the events before it.
func (s *session) reply() (proto.ReplyHeader, *proto.Decoder) {
	s.t.Helper()
	for {
		b, err := s.conn.Receive(patience)
		if err != nil {
			s.t.Fatalf("receive: %v", err)
		}
		d := proto.NewDecoder(b)
		h := d.ReplyHeader()
		if h.Xid != proto.XidNotification {
			if h.Zxid > 0 {
				s.zxid = h.Zxid
			}
			return h, d
		}
		e := event{Type: d.Int()}
		_ = d.Int() // the state: always connected
		e.Path = d.String()
		s.events = append(s.events, e)
	}
}

// send sends a request without waiting and returns its xid.
func (s *session) send(op proto.OpCode, body []byte) int32 {
	s.t.Helper()
	s.xid++
	if err := s.conn.SendRequest(s.xid, op, body); err != nil {
		s.t.Fatalf("%v: %v", op, err)
	}
	return s.xid
}

// do sends a request and returns its reply.
func (s *session) do(op proto.OpCode, body []byte) (proto.ErrCode, *proto.Decoder) {
	s.t.Helper()
	xid := s.send(op, body)
	h, d := s.reply()
	if h.Xid != xid {
		s.t.Fatalf("%v: reply to %d came for %d", op, h.Xid, xid)
	}
	return h.Err, d
}

// want is do for a request whose error code is known.
func (s *session) want(code proto.ErrCode, op proto.OpCode, body []byte) *proto.Decoder {
	s.t.Helper()
	got, d := s.do(op, body)
	if got != code {
		s.t.Fatalf("%v: error %d, want %d", op, got, code)
	}
	return d
}

func createBody(op proto.OpCode, path string, data []byte, acl []proto.ACL, flags int32) []byte {
	if acl == nil {
		acl = proto.OpenACL
	}
	r := proto.CreateRequest{Path: path, Data: data, ACL: acl, Flags: flags}
	return r.Append(nil, op)
}

func setBody(path string, data []byte, version int32) []byte {
	r := proto.SetDataRequest{Path: path, Data: data, Version: version}
	return r.Append(nil)
}

func deleteBody(path string) []byte {
	r := proto.PathVersion{Path: path, Version: -1}
	return r.Append(nil)
}

func readBody(path string, watch bool) []byte {
	r := proto.PathWatch{Path: path, Watch: watch}
	return r.Append(nil)
}

func (s *session) create(path string, data []byte) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpCreate, createBody(proto.OpCreate, path, data, nil, 0))
}

func (s *session) ephemeral(path string) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpCreate, createBody(proto.OpCreate, path, nil, nil, 1))
}

func (s *session) createWith(acl []proto.ACL, path string) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpCreate, createBody(proto.OpCreate, path, []byte("x"), acl, 0))
}

func (s *session) set(path string, data []byte) proto.Stat {
	s.t.Helper()
	return s.want(proto.ErrOK, proto.OpSetData, setBody(path, data, -1)).Stat()
}

func (s *session) delete(path string) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpDelete, deleteBody(path))
}

func (s *session) get(path string) ([]byte, proto.Stat) {
	s.t.Helper()
	d := s.want(proto.ErrOK, proto.OpGetData, readBody(path, false))
	return d.Buffer(), d.Stat()
}

// stat returns a node's Stat, or false when it does not exist.
func (s *session) stat(path string) (proto.Stat, bool) {
	s.t.Helper()
	code, d := s.do(proto.OpExists, readBody(path, false))
	if code != proto.ErrOK && code != proto.ErrNoNode {
		s.t.Fatalf("exists %s: error %d", path, code)
	}
	if code != proto.ErrOK {
		return proto.Stat{}, false
	}
	return d.Stat(), true
}

func (s *session) list(path string) []string {
	s.t.Helper()
	names := s.want(proto.ErrOK, proto.OpGetChildren, readBody(path, false)).Strings()
	slices.Sort(names)
	return names
}

func (s *session) auth(credentials string) {
	s.t.Helper()
	s.xid++
	p := proto.AuthPacket{Scheme: "digest", Auth: []byte(credentials)}
	if err := s.conn.SendRequest(proto.XidAuth, proto.OpAuth, p.Append(nil)); err != nil {
		s.t.Fatal(err)
	}
	if h, _ := s.reply(); h.Xid != proto.XidAuth || h.Err != proto.ErrOK {
		s.t.Fatalf("auth %s: %+v", credentials, h)
	}
}

// ping goes through the same order as everything else: when it returns, all
// events of earlier requests of this session are in events.
func (s *session) ping() {
	s.t.Helper()
	if err := s.conn.SendRequest(proto.XidPing, proto.OpPing, nil); err != nil {
		s.t.Fatal(err)
	}
	if h, _ := s.reply(); h.Xid != proto.XidPing {
		s.t.Fatalf("ping was answered with xid %d", h.Xid)
	}
}

// seen returns the events since the last call, after a sync: whatever any
// session did before this call has been applied and told.
func (s *session) seen() []string {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpSync, proto.AppendString(nil, "/"))
	var all []string
	for _, e := range s.events {
		all = append(all, e.String())
	}
	s.events = nil
	return all
}

func (s *session) wantEvents(want ...string) {
	s.t.Helper()
	if got := s.seen(); !slices.Equal(got, want) {
		s.t.Errorf("events %q, want %q", got, want)
	}
}

// drop cuts the connection without closing the session.
func (s *session) drop() { s.conn.Close() }

// wantClosed expects the server to close the connection, whatever it sends
// before.
func (s *session) wantClosed() {
	s.t.Helper()
	for {
		_, err := s.conn.Receive(patience)
		if errors.Is(err, peer.ErrClosed) {
			return
		}
		if err != nil {
			s.t.Fatalf("the connection was not closed: %v", err)
		}
	}
}

// until asks again and again until done says so. It is for what a server does
// by time; each question keeps the session alive.
func (s *session) until(what string, done func() bool) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			s.t.Fatalf("%s did not happen within %v", what, patience)
		}
	}
}

// digestACL gives a user of the digest scheme, by its password's hash, perms.
func digestACL(userAndHash string, perms int32) proto.ACL {
	return proto.ACL{Perms: perms, ID: proto.ID{Scheme: "digest", ID: userAndHash}}
}

func world(perms int32) proto.ACL {
	return proto.ACL{Perms: perms, ID: proto.ID{Scheme: "world", ID: "anyone"}}
}

func authACL(perms int32) proto.ACL { return proto.ACL{Perms: perms, ID: proto.ID{Scheme: "auth"}} }

// multiResult is one operation's result in the reply to a multi.
type multiResult struct {
	Type proto.OpCode
	Err  proto.ErrCode
	Path string
	Stat proto.Stat
}

// multi sends a multi and decodes its reply.
func (s *session) multi(ops ...proto.MultiOp) []multiResult {
	s.t.Helper()
	d := s.want(proto.ErrOK, proto.OpMulti, proto.AppendMulti(nil, ops))
	var all []multiResult
	for {
		h := d.MultiHeader()
		if d.Err() != nil {
			s.t.Fatalf("the reply to a multi breaks off: %v", d.Err())
		}
		if h.Done {
			return all
		}
		r := multiResult{Type: h.Type}
		switch h.Type {
		case proto.OpCreate:
			r.Path = d.String()
		case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
			r.Path, r.Stat = d.String(), d.Stat()
		case proto.OpSetData:
			r.Stat = d.Stat()
		case proto.OpError:
			r.Err = proto.ErrCode(d.Int())
		}
		all = append(all, r)
	}
}

func opCreate(op proto.OpCode, path string, flags int32) proto.MultiOp {
	return proto.MultiOp{Type: op, Create: proto.CreateRequest{Path: path, ACL: proto.OpenACL, Flags: flags}}
}

func opSet(path string, data []byte) proto.MultiOp {
	return proto.MultiOp{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: path, Data: data, Version: -1}}
}

func opDelete(path string) proto.MultiOp {
	return proto.MultiOp{Type: proto.OpDelete, Version: proto.PathVersion{Path: path, Version: -1}}
}

func codes(results []multiResult) []proto.ErrCode {
	var all []proto.ErrCode
	for _, r := range results {
		all = append(all, r.Err)
	}
	return all
}
