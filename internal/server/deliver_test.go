package server

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

// One entry changes a node several times: each of its many watchers has all events
// in order, in front of nothing else, whichever of the goroutines wrote them.
func TestManyWatchersOfSeveralChangesInOneEntryHaveThemInOrder(t *testing.T) {
	const watchers, changes = 3*batchConns + 7, 5
	s := startServer(t, testConfig(t))
	writer := connect(t, s, proto.ConnectRequest{})
	ops := make([]proto.MultiOp, changes)
	for i := range ops {
		path := "/n" + string(rune('0'+i))
		writer.create(path, "", 0)
		ops[i] = proto.MultiOp{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: path, Version: -1}}
	}
	all := make([]*client, watchers)
	for i := range all {
		all[i] = connect(t, s, proto.ConnectRequest{})
		for _, op := range ops {
			all[i].call(proto.OpGetData, pathBody(op.Data.Path, true))
		}
	}
	multi := writer.call(proto.OpMulti, proto.AppendMulti(nil, ops))
	for i, c := range all {
		for _, op := range ops {
			r := c.must()
			if e := r.event(); r.Xid != proto.XidNotification || r.Zxid != multi.Zxid || e.Path != op.Data.Path || e.Type != proto.EventNodeDataChanged {
				t.Fatalf("watcher %d: %v, %+v; want the change of %s by %v", i, r, e, op.Data.Path, multi.Zxid)
			}
		}
		if r := c.call(proto.OpExists, pathBody("/", false)); r.Err != 0 {
			t.Fatalf("watcher %d: %v", i, r)
		}
	}
}

// tcpOutbox is an outbox on a socket of the system, and the other end.
func tcpOutbox(t *testing.T, all *outboxes) (*outbox, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	theirs, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	o := &outbox{}
	o.init(1, ours, 1<<30, all, func(error) {})
	return o, theirs
}

// nudge does not wait for a client that reads nothing, and what its socket did not
// take arrives whole, in order, in front of what came later.
func TestANudgeWaitsForNobodyAndLosesNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, all *outboxes) (*outbox, net.Conn)
	}{
		{"a socket of the system", tcpOutbox},
		{"another connection", func(t *testing.T, all *outboxes) (*outbox, net.Conn) {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = theirs.Close() })
			o := &outbox{}
			o.init(1, ours, 1<<30, all, func(error) {})
			return o, theirs
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
			o, theirs := test.make(t, all)
			w := newPromptWriter()
			var want []byte
			for i := range 64 {
				frame := bytes.Repeat([]byte{byte(i)}, 256<<10)
				want = append(want, frame...)
				if i%2 == 0 {
					o.push(frame)
				} else {
					o.share(frame)
				}
				o.nudge(w) // 16 MiB are more than any two sockets hold
			}
			if got := all.bytes.Load(); got == 0 {
				t.Error("nothing waits for a client that has read nothing")
			}
			_ = theirs.SetReadDeadline(time.Now().Add(waitLimit)) // fails only on a closed socket
			got := make([]byte, len(want))
			if n, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("read %d bytes of %d: %v; equal: %v", n, len(want), err, bytes.Equal(got, want))
			}
			eventually(t, "nothing is left", func() bool { return all.bytes.Load() == 0 })
			o.close()
		})
	}
}

// An outbox that is closed while a goroutine writes for it leaves nothing behind.
func TestANudgeOfAClosedOutboxLeavesNothing(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
	o, _ := tcpOutbox(t, all)
	w := newPromptWriter()
	o.push(make([]byte, 8<<20))
	o.nudge(w)
	o.push(make([]byte, 100))
	o.close()
	o.nudge(w)
	eventually(t, "nothing is left", func() bool { return all.bytes.Load() == 0 })
}

// A frame that many outboxes share is not written behind by any of them.
func TestASharedFrameIsNotWrittenBehind(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
	memory := []byte{1, 2, 3, 0}
	a, b := pipeOutbox(t, 100, all), pipeOutbox(t, 100, all)
	for _, o := range []*outbox{a, b} {
		o.share(memory[:3])
		o.push([]byte{9})
		if !bytes.Equal(o.pending, []byte{1, 2, 3, 9}) || memory[3] != 0 {
			t.Errorf("pending %v, memory %v", o.pending, memory)
		}
		o.close()
	}
}

// What an entry has for one connection only is on its way when the entry is done,
// without another goroutine.
func TestALoneReplyIsWrittenByTheGoroutineThatApplies(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
	k := &hook{entry: 1, processors: 2, writer: newPromptWriter()}
	c := &conn{}
	o, theirs := tcpOutbox(t, all)
	_ = theirs.SetReadDeadline(time.Now().Add(waitLimit)) // fails only on a closed socket
	c.out.init(1, o.conn, 1<<30, all, func(error) {})
	for i := range 3 {
		c.out.push([]byte{1, 2, byte(i)})
		k.markDirty(c)
		k.deliver()
		if n := all.bytes.Load(); n != 0 || c.out.waiting() != 0 || c.dirty || len(k.dirty) != 0 {
			t.Fatalf("after entry %d %d bytes are not written; dirty: %v, %d", i, n, c.dirty, len(k.dirty))
		}
		got := make([]byte, 3)
		if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, []byte{1, 2, byte(i)}) {
			t.Fatalf("the client has %v: %v", got, err)
		}
	}
}
