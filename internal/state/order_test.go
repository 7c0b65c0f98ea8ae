package state

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/tree"
)

// wire makes a machine push its replies into the outbox of the connection that
// asked, as a server does.
func wire(m *machine, conns map[uint64]*outbox) {
	m.hook.onApplied = func(h *proto.TxnHeader, o *Outcome) bool {
		if b := conns[h.Origin.Conn]; b != nil {
			frame := proto.AppendReplyHeader(proto.BeginFrame(nil), proto.ReplyHeader{Xid: h.Cxid, Zxid: o.Zxid, Err: o.Result.Err})
			if frame = tree.AppendResult(frame, h.Type, &o.Result); h.Type == proto.OpSync && o.Result.Err == proto.ErrOK {
				frame = proto.AppendString(frame, o.Result.Path)
			}
			b.Push(proto.EndFrame(frame, 0))
		}
		return false
	}
}

// Guarantee 1.10(2): an event is in the outbox before the reply of the write
// that caused it; 1.10(3): events come in zxid order, within a multi in the
// order of its ops.
func TestEventsComeBeforeTheReplyOfTheirWriteAndInOrder(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	box := &outbox{session: a.session}
	wire(m, map[uint64]*outbox{1: box})
	m.entry(a.create(), a.make("/a", 0))
	box.take()
	for _, b := range [][]byte{watchBody("/a", true), watchBody("/a/1", true)} {
		m.read(box, proto.OpExists, b)
	}
	m.read(box, proto.OpGetChildren, watchBody("/a", true))
	recursive := proto.PathType{Path: "/a", Type: proto.AddWatchPersistentRecursive}
	m.read(box, proto.OpAddWatch, recursive.Append(nil))
	box.take()
	m.entry(a.make("/a/1", 0), a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
		{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: "/a/1", Version: -1}},
		{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/a/2", ACL: proto.OpenACL}},
		{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: "/a", Version: -1}},
		{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/a/2", Version: -1}},
	})), a.command(proto.OpDelete, deleteBody("/a/1")))
	var got []string
	for _, it := range box.take() {
		if it.Xid == proto.XidNotification {
			got = append(got, fmt.Sprintf("%v %s %v", it.event.Type, it.event.Path, it.Zxid))
		} else {
			got = append(got, fmt.Sprintf("reply %v", it.Zxid))
		}
	}
	want := []string{
		"NodeCreated /a/1 0x100000003", "NodeChildrenChanged /a 0x100000003", "reply 0x100000003",
		"NodeDataChanged /a/1 0x100000004", "NodeCreated /a/2 0x100000004", "NodeDataChanged /a 0x100000004",
		"NodeDeleted /a/2 0x100000004", "reply 0x100000004",
		"NodeDeleted /a/1 0x100000005", "reply 0x100000005",
	}
	if !slices.Equal(got, want) {
		t.Errorf("outbox:\n%q\nwant:\n%q", got, want)
	}
}

// Case 17: a multi that is rolled back fires nothing and leaves its watches
// set; one that is committed fires each once.
func TestAMultiThatFailsFiresNoWatch(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	box := &outbox{session: a.session}
	m.entry(a.create(), a.make("/test", 0))
	m.read(box, proto.OpGetData, watchBody("/test", true))
	m.read(box, proto.OpGetChildren, watchBody("/test", true))
	box.take()
	create := func(path string) proto.MultiOp {
		return proto.MultiOp{Type: proto.OpCreate, Create: proto.CreateRequest{Path: path, ACL: proto.OpenACL}}
	}
	set := proto.MultiOp{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: "/test", Version: -1}}
	remove := proto.MultiOp{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/test/x", Version: -1}}
	var codes []proto.ErrCode
	m.hook.onApplied = func(_ *proto.TxnHeader, o *Outcome) bool {
		for _, s := range o.Result.Sub {
			codes = append(codes, s.Err)
		}
		return false
	}
	m.entry(a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{create("/test/x"), create("/test"), set})))
	if want := []proto.ErrCode{proto.ErrOK, proto.ErrNodeExists, proto.ErrRuntimeInconsistency}; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	if got := box.events(); len(got) != 0 {
		t.Errorf("a failed multi fired %q", got)
	}
	for range 2 {
		m.entry(a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{create("/test/x"), set, remove})))
	}
	if got, want := box.events(), []string{"NodeChildrenChanged /test", "NodeDataChanged /test"}; !slices.Equal(got, want) {
		t.Errorf("two committed multis fired %q, want %q", got, want)
	}
}

// Reads that wait behind a write run before the next command applies.
func TestReadsThatWaitBehindAWriteSeeExactlyThatWrite(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	box := &outbox{session: a.session}
	m.hook.onApplied = func(h *proto.TxnHeader, _ *Outcome) bool { return h.Type == proto.OpSetData }
	m.hook.onReads = func(o proto.Origin) {
		if o != a.origin {
			t.Errorf("reads of %+v asked for", o)
		}
		m.ReadApplying(box, &ReadRequest{Header: proto.RequestHeader{Xid: 77, Type: proto.OpGetData},
			Body: watchBody("/a", false), Identities: anyone}, nil)
	}
	m.entry(a.create(), a.make("/a", 0), a.command(proto.OpSetData, setBody("/a", "1")),
		a.command(proto.OpSetData, setBody("/a", "2")), a.make("/b", 0))
	items := box.take()
	if len(items) != 2 {
		t.Fatalf("%d replies, want 2", len(items))
	}
	for i, it := range items {
		d := proto.NewDecoder(it.body)
		if got, want := string(d.Buffer()), strconv.Itoa(i+1); got != want || it.Zxid != proto.MakeZxid(1, uint32(3+i)) {
			t.Errorf("read %d gave %q at %v, want %q", i, got, it.Zxid, want)
		}
	}
}

// A value and its watch are taken together: between two replies with different
// values there is always an event, and the event comes first. With the race
// detector this also shows that readers and the writer share nothing else.
func TestAReadTakesValueAndWatchTogether(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/a", 0), a.command(proto.OpSetData, setBody("/a", "0")))
	const readers, writes = 4, 2000
	boxes := make([]*outbox, readers)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range boxes {
		boxes[i] = &outbox{session: proto.SessionID(100 + i)}
		running.Add(1)
		go func() {
			defer running.Done()
			var scratch []byte
			r := ReadRequest{Header: proto.RequestHeader{Xid: 1, Type: proto.OpGetData}, Body: watchBody("/a", true), Identities: anyone}
			for {
				_, scratch = m.Read(boxes[i], &r, scratch)
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	for i := range writes {
		m.entry(a.command(proto.OpSetData, setBody("/a", strconv.Itoa(i+1))))
	}
	close(stop)
	running.Wait()
	for i, b := range boxes {
		checkValuesAndEvents(t, i, b.take())
	}
}

func checkValuesAndEvents(t *testing.T, reader int, items []item) {
	value, armed, changes := -1, false, 0
	var zxid proto.Zxid
	for n, it := range items {
		if it.Zxid < zxid {
			t.Fatalf("reader %d, frame %d: zxid %v after %v", reader, n, it.Zxid, zxid)
		}
		zxid = it.Zxid
		if it.Xid == proto.XidNotification {
			if !armed {
				t.Fatalf("reader %d, frame %d: an event without a watch", reader, n)
			}
			armed, changes = false, changes+1
			continue
		}
		d := proto.NewDecoder(it.body)
		got, err := strconv.Atoi(string(d.Buffer()))
		if err != nil {
			t.Fatal(err)
		}
		if armed && got != value {
			t.Fatalf("reader %d, frame %d: value %d after %d, and no event between", reader, n, got, value)
		}
		if !armed && value >= 0 && got <= value {
			t.Fatalf("reader %d, frame %d: value %d again after the event that it changed", reader, n, got)
		}
		value, armed = got, true
	}
	if changes == 0 {
		t.Logf("reader %d saw no change", reader)
	}
}

func TestAReadAnswersIntoTheScratchThatItIsGiven(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create())
	box := &outbox{session: a.session}
	scratch := make([]byte, 0, 4096)
	h, used := m.Read(box, &ReadRequest{Header: proto.RequestHeader{Xid: 5, Type: proto.OpPing}}, scratch)
	if h != (proto.ReplyHeader{Xid: proto.XidPing, Zxid: m.Zxid()}) {
		t.Errorf("header %+v", h)
	}
	if &used[0] != &scratch[:1][0] || !bytes.Equal(used, proto.EndFrame(proto.AppendReplyHeader(proto.BeginFrame(nil), h), 0)) {
		t.Errorf("scratch %x", used)
	}
}
