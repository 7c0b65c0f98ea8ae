package state

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/internal/watch"
)

// seedFlag replays one random history: go test ./internal/state -run Histories -seed N.
var seedFlag = flag.Uint64("seed", 0, "replay the random history of this seed")

// seeds returns the seeds of a random test, and prints how to replay them.
func seeds(t *testing.T, count uint64) []uint64 {
	t.Helper()
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	first := uint64(time.Now().UnixNano())
	out := []uint64{1, 2, 3}
	for i := range count {
		out = append(out, first+i)
	}
	t.Logf("seeds 1, 2, 3 and %d from %d; replay one with -run %s -seed N", count, first, t.Name())
	return out
}

// recorder is a Hook that writes down what it is told.
type recorder struct {
	lines []string
	// onClosed, onApplied and onReads look in at the moment of the call.
	onClosed  func(id proto.SessionID)
	onApplied func(h *proto.TxnHeader, o *Outcome) bool
	onReads   func(o proto.Origin)
	onReset   func()
	entries   int
	resets    int
	restored  int
}

func (r *recorder) note(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// last returns the newest line, "" if there is none.
func (r *recorder) last() string {
	if len(r.lines) == 0 {
		return ""
	}
	return r.lines[len(r.lines)-1]
}

// Applied notes the bytes of the reply, and all else of the outcome.
func (r *recorder) Applied(h *proto.TxnHeader, o *Outcome) bool {
	reply := proto.AppendReplyHeader(nil, proto.ReplyHeader{Xid: h.Cxid, Zxid: o.Zxid, Err: o.Result.Err})
	reply = tree.AppendResult(reply, h.Type, &o.Result)
	line := fmt.Sprintf("applied %v conn %d/%d err %d reply %x", h.Type, h.Origin.Server, h.Origin.Conn, o.Result.Err, reply)
	if o.ZxidAhead {
		line += " zxid ahead"
	}
	if o.Session != nil {
		line += fmt.Sprintf(" row %x", o.Session.Append(nil))
	}
	if h.Type == proto.OpSync {
		line += " path " + o.Result.Path
	}
	r.note("%s", line)
	return r.onApplied != nil && r.onApplied(h, o)
}

func (r *recorder) ServeReads(o proto.Origin) {
	if r.onReads != nil {
		r.onReads(o)
	}
}

func (r *recorder) OutOfTurn(o proto.Origin) { r.note("out of turn conn %d/%d", o.Server, o.Conn) }

func (r *recorder) SessionMoved(s *session.Session, former proto.Origin) {
	r.note("moved %v generation %d to conn %d/%d from %d/%d",
		s.ID, s.Generation, s.Owner.Server, s.Owner.Conn, former.Server, former.Conn)
}

func (r *recorder) SessionClosed(id proto.SessionID, owner proto.Origin) {
	r.note("closed %v of conn %d/%d", id, owner.Server, owner.Conn)
	if r.onClosed != nil {
		r.onClosed(id)
	}
}

func (r *recorder) EntryApplied(int64) { r.entries++ }

func (r *recorder) MembershipChanged() {}

func (r *recorder) Restored() { r.restored++ }

func (r *recorder) Reset() {
	r.resets++
	if r.onReset != nil {
		r.onReset()
	}
}

// outbox is an Asker that keeps what it is sent, in order.
type outbox struct {
	session proto.SessionID
	gone    atomic.Bool

	mu    sync.Mutex
	items []item // guarded by mu
}

// item is one frame: a reply, or an event (Xid is then XidNotification).
type item struct {
	proto.ReplyHeader
	body  []byte
	event proto.WatcherEvent
}

func (b *outbox) Notify(e proto.WatcherEvent, zxid proto.Zxid, _ watch.ACL) { b.event(e, zxid) }
func (b *outbox) Replay(e proto.WatcherEvent)                               { b.event(e, -1) }
func (b *outbox) Gone() bool                                                { return b.gone.Load() }
func (b *outbox) SessionID() proto.SessionID                                { return b.session }

func (b *outbox) event(e proto.WatcherEvent, zxid proto.Zxid) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, item{ReplyHeader: proto.ReplyHeader{Xid: proto.XidNotification, Zxid: zxid}, event: e})
}

func (b *outbox) Push(frame []byte) {
	d := proto.NewDecoder(frame)
	if n := d.Int(); int(n) != len(frame)-4 {
		panic(fmt.Sprintf("a frame of %d bytes says %d", len(frame)-4, n))
	}
	it := item{ReplyHeader: d.ReplyHeader()}
	it.body = bytes.Clone(d.Rest())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
}

// take returns all frames so far and forgets them.
func (b *outbox) take() []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}

// events prints the events so far, without zxids, and forgets all frames.
func (b *outbox) events() []string {
	var out []string
	for _, it := range b.take() {
		if it.Xid == proto.XidNotification {
			out = append(out, it.event.Type.String()+" "+it.event.Path)
		}
	}
	return out
}

// machine is a Machine under test with a log of its own.
type machine struct {
	*Machine
	t           testing.TB
	hook        *recorder
	index, term uint64
	now         int64
	switches    uint32
}

func newMachine(t testing.TB) *machine {
	hook := &recorder{}
	m := New(hook, watch.New(watch.NewMetrics(metrics.NewRegistry())))
	return &machine{Machine: m, t: t, hook: hook, term: 1, now: 1_700_000_000_000}
}

// entry applies one log entry and fails the test if it cannot be read.
func (m *machine) entry(commands ...[]byte) {
	m.t.Helper()
	m.index++
	m.now++
	if err := m.Apply(m.index, m.term, m.now, m.switches, commands); err != nil {
		m.t.Fatalf("entry %d: %v", m.index, err)
	}
}

// read asks and returns the reply.
func (m *machine) read(a *outbox, op proto.OpCode, body []byte) item {
	m.t.Helper()
	m.Read(a, &ReadRequest{Header: proto.RequestHeader{Xid: 77, Type: op}, Body: body, Identities: anyone}, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.items[len(a.items)-1]
}

var anyone = []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}

// client makes the commands of one connection, in turn.
type client struct {
	session  proto.SessionID
	origin   proto.Origin
	password []byte
	seq      uint64
	cxid     int32
	ids      []proto.ID
}

func newClient(id proto.SessionID, conn uint64) *client {
	return &client{
		session: id, origin: proto.Origin{Server: 1, Conn: conn},
		password: fmt.Appendf(nil, "%016x", uint64(id)), ids: anyone,
	}
}

// on returns the same session's next connection.
func (c *client) on(conn uint64) *client {
	return &client{session: c.session, origin: proto.Origin{Server: 1, Conn: conn}, password: c.password, ids: c.ids}
}

func (c *client) connect(op proto.OpCode, seen proto.Zxid) []byte {
	body := proto.CreateSessionBody{TimeoutMillis: 4000, LastZxidSeen: seen, Password: c.password}
	t := proto.Txn{TxnHeader: proto.TxnHeader{Session: c.session, Type: op, Origin: c.origin}, Body: body.Append(nil)}
	return t.Append(nil, 1)
}

func (c *client) create() []byte { return c.connect(proto.OpCreateSession, 0) }
func (c *client) renew() []byte  { return c.connect(proto.OpRenewSession, 0) }

// command is the connection's next one.
func (c *client) command(op proto.OpCode, body []byte) []byte {
	c.seq++
	return c.numbered(c.seq, op, body)
}

func (c *client) numbered(seq uint64, op proto.OpCode, body []byte) []byte {
	c.cxid++
	t := proto.Txn{TxnHeader: proto.TxnHeader{
		Session: c.session, Cxid: c.cxid, Type: op, Origin: c.origin, Seq: seq, Identities: c.ids}, Body: body}
	return t.Append(nil, 1)
}

// make is the command that creates a node.
func (c *client) make(path string, flags int32) []byte {
	return c.command(proto.OpCreate, createBody(path, flags, "x"))
}

// own is a command of the server itself.
func own(op proto.OpCode, id proto.SessionID, body []byte) []byte {
	t := proto.Txn{TxnHeader: proto.TxnHeader{Session: id, Type: op}, Body: body}
	return t.Append(nil, 1)
}

func expire(id proto.SessionID, generation uint64) []byte {
	return own(proto.OpExpireSession, id, ExpireBody(generation))
}

func createBody(path string, flags int32, data string) []byte {
	r := proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL, Flags: flags}
	return r.Append(nil, proto.OpCreate)
}

func setBody(path, data string) []byte {
	r := proto.SetDataRequest{Path: path, Data: []byte(data), Version: -1}
	return r.Append(nil)
}

func deleteBody(path string) []byte {
	r := proto.PathVersion{Path: path, Version: -1}
	return r.Append(nil)
}

func watchBody(path string, watched bool) []byte {
	r := proto.PathWatch{Path: path, Watch: watched}
	return r.Append(nil)
}

// dump is all that is replicated, as text: equal dumps are equal states.
func dump(t testing.TB, m *Machine) string {
	t.Helper()
	var lines []string
	m.View(func(v View) {
		if got, want := v.Tree.Digest(), v.Tree.DigestFull(); got != want {
			t.Fatalf("digest %x, recomputed %x", got, want)
		}
		frozen := v.Tree.Freeze()
		defer frozen.Release()
		err := frozen.Nodes(func(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
			lines = append(lines, fmt.Sprintf("%s %q null %t %v %+v", path, data, data == nil, acl, st))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(lines)
		lines = append(lines, fmt.Sprintf("zxid %v term %d level %d digest %x sessions %x nodes %d ephemerals %d size %d",
			v.Zxid, m.lastTerm, m.CommandLevel(), v.Tree.Digest(), v.Table.Hash(), v.Tree.NodeCount(), v.Tree.EphemeralCount(), v.Tree.ApproximateDataSize()))
		for _, s := range v.Table.All() {
			lines = append(lines, fmt.Sprintf("%+v owns %q", s, v.Tree.Ephemerals(s.ID, "")))
		}
	})
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// frozen writes the state as a snapshot.
func frozen(t testing.TB, m *Machine) []byte {
	t.Helper()
	persist, release := m.Freeze()
	defer release()
	var b bytes.Buffer
	if err := persist(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
