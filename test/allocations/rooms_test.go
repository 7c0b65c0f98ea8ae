package allocations

import (
	"fmt"
	"testing"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/internal/watch"
)

// silent takes part in everything and keeps nothing: a hook, an asker, a
// watcher.
type silent struct{}

func (silent) Applied(*proto.TxnHeader, *state.Outcome) bool    { return false }
func (silent) ServeReads(proto.Origin)                          {}
func (silent) OutOfTurn(proto.Origin)                           {}
func (silent) SessionMoved(*session.Session, proto.Origin)      {}
func (silent) SessionClosed(proto.SessionID, proto.Origin)      {}
func (silent) MembershipChanged()                               {}
func (silent) Restored()                                        {}
func (silent) EntryApplied(int64)                               {}
func (silent) Reset()                                           {}
func (silent) SessionID() proto.SessionID                       { return 1 }
func (silent) Push([]byte)                                      {}
func (silent) Replay(proto.WatcherEvent)                        {}
func (silent) Notify(proto.WatcherEvent, proto.Zxid, watch.ACL) {}
func (silent) Gone() bool                                       { return false }

var anyone = []proto.ID{{Scheme: "world", ID: "anyone"}, {Scheme: "ip", ID: "127.0.0.1"}}

const path = "/app/dir-1/node-0000000001"

// commands makes one connection's, in turn.
type commands struct{ seq uint64 }

func (c *commands) next(dst []byte, op proto.OpCode, body []byte) []byte {
	t := proto.Txn{TxnHeader: proto.TxnHeader{
		Session: 1, Type: op, Origin: proto.Origin{Server: 1, Conn: 1}, Seq: c.seq, Identities: anyone,
	}, Body: body}
	c.seq++
	return t.Append(dst, proto.CommandVersion)
}

// machine is a state with one session and one node of 1 KiB.
func machine(t testing.TB) (m *state.Machine, c *commands, apply func(command []byte)) {
	t.Helper()
	m = state.New(silent{}, watch.New(watch.NewMetrics(metrics.NewRegistry())))
	c = &commands{}
	index := uint64(0)
	entry := make([][]byte, 1)
	apply = func(command []byte) {
		index++
		entry[0] = command
		if err := m.Apply(index, 1, 1_700_000_000_000, 0, entry); err != nil {
			t.Fatal(err)
		}
	}
	create := proto.CreateSessionBody{TimeoutMillis: 4000, Password: make([]byte, proto.PasswordLen)}
	apply(c.next(nil, proto.OpCreateSession, create.Append(nil)))
	for _, path := range []string{"/app", "/app/dir-1", path} {
		apply(c.next(nil, proto.OpCreate, createBody(path)))
	}
	m.View(func(v state.View) {
		if _, known := v.Tree.Stat(path); !known {
			t.Fatal("the node was not made")
		}
	})
	return m, c, apply
}

func createBody(path string) []byte {
	request := proto.CreateRequest{Path: path, Data: make([]byte, 1024), ACL: proto.OpenACL, TTL: -1}
	return request.Append(nil, proto.OpCreate)
}

func setBody() []byte {
	request := proto.SetDataRequest{Path: path, Data: make([]byte, 1024), Version: -1}
	return request.Append(nil)
}

// operation is one step of a hot path. Most is how often it allocated before.
type operation struct {
	name string
	most float64
	do   func()
}

func operations(tb testing.TB) []operation {
	_, c, apply := machine(tb)
	reading, _, _ := machine(tb)
	buffer := make([]byte, 0, 8192)
	set, create := setBody(), createBody("/app/dir-1/other")
	remove := (&proto.PathVersion{Path: "/app/dir-1/other", Version: -1}).Append(nil)
	read := func(op proto.OpCode, body []byte) func() {
		r := state.ReadRequest{Header: proto.RequestHeader{Type: op}, Body: body, Identities: anyone}
		var scratch []byte
		return func() { _, scratch = reading.Read(silent{}, &r, scratch) }
	}
	watches := watch.New(watch.NewMetrics(metrics.NewRegistry()))
	for range 1000 {
		watches.AddPersistent(path, &struct{ silent }{})
	}
	changed := watch.Trigger{Type: proto.EventNodeDataChanged, Path: path}
	lone := &struct{ silent }{}
	nodes := tree.New()
	for _, p := range []string{"/app", "/app/dir-1", path} {
		nodes.Apply(tree.Txn{Zxid: 1, TimeMillis: 1}, proto.OpCreate, createBody(p), nil)
	}
	changes := make([]tree.Change, 0, 8)
	command := (&commands{}).next(nil, proto.OpSetData, set)
	return []operation{
		{"codec: encode a command", 0, func() { buffer = (&commands{}).next(buffer[:0], proto.OpSetData, set) }},
		{"codec: decode a command", 6, func() { _, _ = proto.DecodeTxn(command, proto.CommandVersion) }},
		{"codec: decode setData", 1, func() { proto.NewDecoder(set).SetDataRequest() }},
		{"tree: get", 0, func() { nodes.Get(tree.Reader{Identities: anyone}, path) }},
		{"tree: set", 3, func() { nodes.Apply(tree.Txn{Zxid: 2, TimeMillis: 1}, proto.OpSetData, set, changes) }},
		{"watch: fire without watchers", 0, func() { watches.Fire(watch.Trigger{Type: proto.EventNodeDataChanged, Path: "/app"}, 1) }},
		{"watch: fire to a thousand persistent watchers", 0, func() { watches.Fire(changed, 1) }},
		{"watch: add one that fires once", 2, func() {
			watches.AddData("/app/x", lone)
			watches.Fire(watch.Trigger{Type: proto.EventNodeDataChanged, Path: "/app/x"}, 1)
		}},
		{"state: getData", 2, read(proto.OpGetData, (&proto.PathWatch{Path: path}).Append(nil))},
		{"state: exists", 2, read(proto.OpExists, (&proto.PathWatch{Path: path}).Append(nil))},
		{"state: getChildren", 2, read(proto.OpGetChildren2, (&proto.PathWatch{Path: "/app/dir-1"}).Append(nil))},
		{"state: setData", 11, func() { buffer = c.next(buffer[:0], proto.OpSetData, set); apply(buffer) }},
		{"state: create and delete", 25, func() {
			buffer = c.next(buffer[:0], proto.OpCreate, create)
			apply(buffer)
			buffer = c.next(buffer[:0], proto.OpDelete, remove)
			apply(buffer)
		}},
	}
}

func TestTheRoomsAllocateNoMoreThanTheyDid(t *testing.T) {
	for _, o := range operations(t) {
		if got := testing.AllocsPerRun(1000, o.do); got > o.most {
			t.Errorf("%s: %v allocations, %v before", o.name, got, o.most)
		} else {
			t.Logf("%s: %v allocations of %v", o.name, got, o.most)
		}
	}
}

// BenchmarkRooms has the same operations for make bench-compare.
func BenchmarkRooms(b *testing.B) {
	for _, o := range operations(b) {
		b.Run(o.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.do()
			}
		})
	}
}

// BenchmarkReadsOfManyGoroutines shows what the state's lock costs readers that
// are many: a read by so many goroutines on each processor. A time that grows
// with them is waiting.
func BenchmarkReadsOfManyGoroutines(b *testing.B) {
	m, _, _ := machine(b)
	r := state.ReadRequest{
		Header: proto.RequestHeader{Type: proto.OpGetData}, Body: (&proto.PathWatch{Path: path}).Append(nil), Identities: anyone,
	}
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetParallelism(n)
			b.RunParallel(func(pb *testing.PB) {
				var scratch []byte
				for pb.Next() {
					_, scratch = m.Read(silent{}, &r, scratch)
				}
			})
		})
	}
}
