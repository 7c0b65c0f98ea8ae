package proto_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// update captures the golden frames anew:
//
//	go test ./internal/proto -run TestCapture -update
var update = flag.Bool("update", false, "capture testdata/frames.txt from the real server")

const framesFile = "testdata/frames.txt"

const framesHead = `# Frames as Apache ZooKeeper 3.9.5 sent and took them, with their lengths, nothing masked.
# Captured by: go test ./internal/proto -run TestCapture -update
# Columns: exchange, kind (connect, connected, request, reply, event, closed), op code, frame in hex.
`

// capture is a connection whose frames are written down.
type capture struct {
	t    *testing.T
	conn *peer.Conn
	out  *strings.Builder
	xid  int32
}

const patience = 20 * time.Second

func (c *capture) write(exchange, kind string, op proto.OpCode, payload []byte) {
	fmt.Fprintf(c.out, "%s %s %d %08x%x\n", exchange, kind, op, len(payload), payload)
}

func (c *capture) connect(name string, req proto.ConnectRequest) proto.ConnectResponse {
	c.t.Helper()
	body := req.Append(nil)
	c.write(name, "connect", 0, body)
	if err := c.conn.Send(body); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	b, err := c.conn.Receive(patience)
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	c.write(name, "connected", 0, b)
	resp, err := proto.DecodeConnectResponse(b)
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return resp
}

// call sends a request and writes down all frames up to its reply.
func (c *capture) call(name string, op proto.OpCode, body []byte) {
	c.t.Helper()
	c.xid++
	xid := c.xid
	switch op {
	case proto.OpPing:
		xid = proto.XidPing
	case proto.OpAuth:
		xid = proto.XidAuth
	case proto.OpSetWatches, proto.OpSetWatches2:
		xid = proto.XidSetWatches
	}
	c.write(name, "request", op, append(proto.AppendInt(proto.AppendInt(nil, xid), int32(op)), body...))
	if err := c.conn.SendRequest(xid, op, body); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	for {
		b, err := c.conn.Receive(patience)
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		if h := proto.NewDecoder(b).ReplyHeader(); h.Xid == proto.XidNotification {
			c.write(name, "event", 0, b)
			continue
		}
		c.write(name, "reply", op, b)
		return
	}
}

// closed waits for the server's close.
func (c *capture) closed(name string) {
	c.t.Helper()
	if b, err := c.conn.Receive(patience); !errors.Is(err, peer.ErrClosed) {
		c.t.Fatalf("%s: %x, %v; want a close", name, b, err)
	}
	c.write(name, "closed", 0, nil)
}

func TestCapture(t *testing.T) {
	if !*update {
		return // captured already; TestFramesOfTheRealServer reads them
	}
	s := peer.StartApache(t, peer.Options{Defines: map[string]string{
		"zookeeper.extendedTypesEnabled": "true", "zookeeper.forceSync": "no"}})
	var out strings.Builder
	out.WriteString(framesHead)
	open := func() *capture { return &capture{t: t, conn: peer.Dial(t, s.Address), out: &out} }
	captureConnects(open)
	captureWrites(open)
	captureReads(open)
	captureWatches(open)
	captureEnds(open)
	if err := os.WriteFile(framesFile, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fresh is a connect request of a new session.
var fresh = proto.ConnectRequest{TimeoutMillis: 30000, Password: make([]byte, proto.PasswordLen), HasReadOnly: true}

func captureConnects(open func() *capture) {
	without := fresh
	without.HasReadOnly = false
	open().connect("connect-44", without)
	readOnly := fresh
	readOnly.ReadOnly = true
	open().connect("connect-45-read-only", readOnly)
	null := fresh
	null.Password = nil
	open().connect("connect-null-password", null)
	c := open()
	resp := c.connect("connect-45", fresh)
	again := fresh
	again.SessionID, again.Password = resp.SessionID, resp.Password
	open().connect("reconnect", again)
	again.Password = make([]byte, proto.PasswordLen)
	c = open()
	c.connect("reconnect-refused", again)
	c.closed("reconnect-refused")
}

func create(op proto.OpCode, path string, data []byte, flags int32, ttl int64) []byte {
	r := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL, Flags: flags, TTL: ttl}
	return r.Append(nil, op)
}

func version(path string, v int32) []byte {
	r := proto.PathVersion{Path: path, Version: v}
	return r.Append(nil)
}

func set(path string, data []byte, v int32) []byte {
	r := proto.SetDataRequest{Path: path, Data: data, Version: v}
	return r.Append(nil)
}

func watch(path string, on bool) []byte {
	r := proto.PathWatch{Path: path, Watch: on}
	return r.Append(nil)
}

func typed(path string, kind int32) []byte {
	r := proto.PathType{Path: path, Type: kind}
	return r.Append(nil)
}

func captureWrites(open func() *capture) {
	c := open()
	c.connect("writer", fresh)
	auth := proto.AuthPacket{Scheme: "digest", Auth: []byte("ben:secret")}
	c.call("auth", proto.OpAuth, auth.Append(nil))
	c.call("create", proto.OpCreate, create(proto.OpCreate, "/golden", []byte("data"), proto.CreatePersistent, 0))
	c.call("create-exists", proto.OpCreate, create(proto.OpCreate, "/golden", nil, proto.CreatePersistent, 0))
	c.call("create-null-data", proto.OpCreate, create(proto.OpCreate, "/golden/null", nil, proto.CreatePersistent, 0))
	c.call("create-empty-data", proto.OpCreate, create(proto.OpCreate, "/golden/empty", []byte{}, proto.CreatePersistent, 0))
	c.call("create-sequential", proto.OpCreate, create(proto.OpCreate, "/golden/s-", nil, proto.CreatePersistentSequential, 0))
	c.call("create2", proto.OpCreate2, create(proto.OpCreate2, "/golden/two", []byte("2"), proto.CreateEphemeral, 0))
	c.call("createContainer", proto.OpCreateContainer, create(proto.OpCreateContainer, "/golden/c", nil, proto.CreateContainer, 0))
	c.call("createTTL", proto.OpCreateTTL, create(proto.OpCreateTTL, "/golden/ttl", nil, proto.CreatePersistentTTL, 60000))
	c.call("create-bad-path", proto.OpCreate, create(proto.OpCreate, "/golden/\U0001f600", nil, 0, 0))
	c.call("create-cut-short", proto.OpCreate, create(proto.OpCreate, "/golden/x", nil, 0, 0)[:20])
	c.call("setData", proto.OpSetData, set("/golden/null", []byte("now some"), 0))
	c.call("setData-bad-version", proto.OpSetData, set("/golden/null", nil, 7))
	acl := proto.SetACLRequest{Path: "/golden/empty", Version: -1, ACL: []proto.ACL{
		{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}, {Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}}
	c.call("setACL", proto.OpSetACL, acl.Append(nil))
	c.call("delete", proto.OpDelete, version("/golden/c", 0))
	c.call("delete-not-empty", proto.OpDelete, version("/golden", -1))
	c.call("sync", proto.OpSync, proto.AppendString(nil, "/golden"))
	reconfig := proto.ReconfigRequest{Joining: "server.2=x:1:2;3", Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1}
	c.call("reconfig", proto.OpReconfig, reconfig.Append(nil))
	op := func(t proto.OpCode, path string, flags int32) proto.MultiOp {
		return proto.MultiOp{Type: t, Create: proto.CreateRequest{Path: path, ACL: proto.OpenACL, Flags: flags, TTL: 9000},
			Version: proto.PathVersion{Path: path, Version: -1}, Data: proto.SetDataRequest{Path: path, Data: []byte("m"), Version: -1}}
	}
	c.call("multi", proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
		op(proto.OpCreate, "/golden/m", proto.CreatePersistent), op(proto.OpCreate2, "/golden/m/2-", proto.CreateEphemeralSequential),
		op(proto.OpCreateContainer, "/golden/m/c", proto.CreateContainer), op(proto.OpCreateTTL, "/golden/m/t", proto.CreatePersistentTTL),
		op(proto.OpSetData, "/golden/m", 0), op(proto.OpCheck, "/golden/m", 0), op(proto.OpDelete, "/golden/m/c", 0)}))
	c.call("multi-failed", proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
		op(proto.OpSetData, "/golden", 0), op(proto.OpCheck, "/golden/none", 0), op(proto.OpDelete, "/golden/null", 0)}))
	c.call("multi-empty", proto.OpMulti, proto.AppendMulti(nil, nil))
	c.call("multi-with-read", proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
		op(proto.OpDelete, "/golden/null", 0), {Type: proto.OpGetData, Read: proto.PathWatch{Path: "/golden"}}}))
}

func captureReads(open func() *capture) {
	c := open()
	c.connect("reader", fresh)
	auth := proto.AuthPacket{Scheme: "digest", Auth: []byte("ben:secret")}
	c.call("auth-again", proto.OpAuth, auth.Append(nil))
	c.call("ping", proto.OpPing, nil)
	c.call("exists", proto.OpExists, watch("/golden", false))
	c.call("exists-ephemeral", proto.OpExists, watch("/golden/two", false))
	c.call("exists-none", proto.OpExists, watch("/none", false))
	c.call("getData", proto.OpGetData, watch("/golden", false))
	c.call("getData-null", proto.OpGetData, watch("/golden/s-0000000002", false))
	c.call("getData-empty", proto.OpGetData, watch("/golden/empty", false))
	c.call("getACL", proto.OpGetACL, proto.AppendString(nil, "/golden/empty"))
	c.call("getChildren", proto.OpGetChildren, watch("/golden", false))
	c.call("getChildren-none", proto.OpGetChildren, watch("/golden/null", false))
	c.call("getChildren2", proto.OpGetChildren2, watch("/golden", false))
	c.call("getAllChildrenNumber", proto.OpGetAllChildrenNumber, proto.AppendString(nil, "/golden"))
	c.call("create-ephemeral", proto.OpCreate, create(proto.OpCreate, "/golden/mine", nil, proto.CreateEphemeral, 0))
	c.call("getEphemerals", proto.OpGetEphemerals, proto.AppendString(nil, "/"))
	c.call("whoAmI", proto.OpWhoAmI, nil)
	read := func(op proto.OpCode, path string) proto.MultiOp {
		return proto.MultiOp{Type: op, Read: proto.PathWatch{Path: path}}
	}
	c.call("multiRead", proto.OpMultiRead, proto.AppendMulti(nil, []proto.MultiOp{
		read(proto.OpGetData, "/golden"), read(proto.OpGetData, "/none"), read(proto.OpGetChildren, "/golden/m")}))
	c.call("multiRead-empty", proto.OpMultiRead, proto.AppendMulti(nil, nil))
	c.call("multiRead-with-write", proto.OpMultiRead, proto.AppendMulti(nil, []proto.MultiOp{
		{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/golden", Version: -1}}}))
	c.call("sasl", proto.OpSASL, proto.AppendBuffer(nil, []byte("token")))
}

func captureWatches(open func() *capture) {
	c := open()
	c.connect("watcher", fresh)
	c.call("watch-data", proto.OpGetData, watch("/golden", true))
	c.call("watch-children", proto.OpGetChildren, watch("/golden", true))
	c.call("watch-missing", proto.OpExists, watch("/golden/w", true))
	c.call("addWatch-persistent", proto.OpAddWatch, typed("/golden", proto.AddWatchPersistent))
	c.call("addWatch-recursive", proto.OpAddWatch, typed("/golden/w", proto.AddWatchPersistentRecursive))
	c.call("addWatch-bad-mode", proto.OpAddWatch, typed("/golden", 2))
	c.call("checkWatches", proto.OpCheckWatches, typed("/golden", int32(proto.WatcherPersistent)))
	c.call("events-of-create", proto.OpCreate, create(proto.OpCreate, "/golden/w", nil, 0, 0))
	c.call("events-of-set", proto.OpSetData, set("/golden", []byte("w"), -1))
	c.call("events-of-delete", proto.OpDelete, version("/golden/w", -1))
	c.call("removeWatches", proto.OpRemoveWatches, typed("/golden/w", int32(proto.WatcherPersistentRecursive)))
	c.call("removeWatches-none", proto.OpRemoveWatches, typed("/golden/w", int32(proto.WatcherAny)))
	old := proto.SetWatches{RelativeZxid: 1, Data: []string{"/golden", "/none"}, Exist: []string{"/golden/null", "/none"},
		Child: []string{"/golden", "/none"}, Persistent: []string{"/p"}, PersistentRecur: []string{"/r"}}
	c.call("setWatches", proto.OpSetWatches, old.Append(nil, false))
	c.call("setWatches2", proto.OpSetWatches2, old.Append(nil, true))
}

func captureEnds(open func() *capture) {
	c := open()
	c.connect("ending", fresh)
	c.call("closeSession", proto.OpCloseSession, nil)
	c.closed("closeSession")
	c = open()
	c.connect("unknown", fresh)
	c.call("unknown-op", 999, nil)
	c.closed("unknown-op")
	c = open()
	c.connect("stranger", fresh)
	auth := proto.AuthPacket{Scheme: "none", Auth: []byte("x")}
	c.call("auth-refused", proto.OpAuth, auth.Append(nil))
	c.closed("auth-refused")
}
