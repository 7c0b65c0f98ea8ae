package server

import (
	"fmt"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// A connection that mixes writes and reads without waiting gets its replies in
// the order of its requests, and each read sees just the writes before it.
func TestPipelinedReadsSeeTheirOwnEarlierWritesAndNoLaterOnes(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	if r := c.create("/x", "0", 0); r.Err != 0 {
		t.Fatal(r)
	}
	const rounds = 300
	var batch []byte
	for i := 1; i <= rounds; i++ {
		batch = append(batch, c.frame(proto.OpSetData, setBody("/x", fmt.Sprint(i)))...)
		batch = append(batch, c.frame(proto.OpGetData, pathBody("/x", false))...)
		batch = append(batch, c.frame(proto.OpPing, nil)...)
	}
	first := c.xid - 3*rounds + 1
	c.write(batch)
	for i := 1; i <= rounds; i++ {
		set, get, ping := c.must(), c.must(), c.must()
		if set.Xid != first || get.Xid != first+1 || ping.Xid != proto.XidPing {
			t.Fatalf("round %d: xids %d %d %d, want %d %d %d", i, set.Xid, get.Xid, ping.Xid, first, first+1, proto.XidPing)
		}
		if data := proto.NewDecoder(get.body).Buffer(); string(data) != fmt.Sprint(i) {
			t.Fatalf("round %d: read %q", i, data)
		}
		if get.Zxid != set.Zxid {
			t.Fatalf("round %d: write has zxid %v, the read behind it %v", i, set.Zxid, get.Zxid)
		}
		first += 3
	}
}

// The event of a change comes before the reply of the write that caused it,
// and before any read that shows it; every connection sees events by zxid.
func TestEventsComeBeforeRepliesThatShowTheChange(t *testing.T) {
	s := startServer(t, testConfig(t))
	writer, watcher := connect(t, s, proto.ConnectRequest{}), connect(t, s, proto.ConnectRequest{})
	writer.create("/n", "", 0)
	for i := range 200 {
		watcher.call(proto.OpGetData, pathBody("/n", true))
		writer.call(proto.OpExists, pathBody("/n", true))
		writer.send(proto.OpSetData, setBody("/n", fmt.Sprint(i)))
		if r := writer.must(); r.Xid != proto.XidNotification {
			t.Fatalf("round %d: the writer got %v before its own event", i, r)
		}
		set := writer.must()
		watcher.send(proto.OpGetData, pathBody("/n", false))
		e, get := watcher.must(), watcher.must()
		if e.Xid != proto.XidNotification || e.event().Type != proto.EventNodeDataChanged || e.Zxid != set.Zxid {
			t.Fatalf("round %d: event %v %+v for write %v", i, e, e.event(), set)
		}
		if data := proto.NewDecoder(get.body).Buffer(); string(data) != fmt.Sprint(i) {
			t.Fatalf("round %d: read %q", i, data)
		}
	}
}

// Case 52: reads of one session are answered whatever happens to others that
// write and vanish.
func TestReadsAreAnsweredWhileOthersWriteAndVanish(t *testing.T) {
	s := startServer(t, testConfig(t))
	a := connect(t, s, proto.ConnectRequest{})
	a.create("/a", "", 0)
	var others sync.WaitGroup
	quit := make(chan struct{})
	for g := range 4 {
		others.Add(1)
		go func() {
			defer others.Done()
			for {
				select {
				case <-quit:
					return
				default:
				}
				b := connect(t, s, proto.ConnectRequest{})
				for range 20 {
					b.write(b.frame(proto.OpSetData, setBody("/a", fmt.Sprint(g))))
					b.write(b.frame(proto.OpGetData, pathBody("/a", true)))
				}
				_ = b.net.Close()
			}
		}()
	}
	for i := range 1500 {
		a.send(proto.OpSetData, setBody("/a", "mine"))
		xid := a.send(proto.OpGetData, pathBody("/a", false))
		set, get := a.must(), a.must()
		if set.Err != 0 || get.Xid != xid || get.Zxid < set.Zxid {
			t.Fatalf("round %d: %v then %v", i, set, get)
		}
	}
	close(quit)
	others.Wait()
	eventually(t, "only one connection and no watch left", func() bool {
		return s.conns.count() == 1 && s.state.Watches().Count() == 0
	})
	eventually(t, "nothing in work", func() bool { return s.outstanding.Load() == 0 })
}

// Writes of many connections that end in one entry are each answered.
func TestManyConnectionsWritePipelined(t *testing.T) {
	s := startServer(t, testConfig(t))
	const clients, writes = 24, 200
	var wg sync.WaitGroup
	for g := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := connect(t, s, proto.ConnectRequest{})
			var batch []byte
			for i := range writes {
				batch = append(batch, c.frame(proto.OpCreate, createBody(fmt.Sprintf("/n-%d-%d", g, i), "v", 0))...)
			}
			c.write(batch)
			var last proto.Zxid
			for i := range writes {
				r := c.must()
				if r.Err != 0 || r.Xid != int32(i+1) || r.Zxid <= last {
					t.Errorf("client %d, write %d: %v after zxid %v", g, i, r, last)
					return
				}
				last = r.Zxid
			}
		}()
	}
	wg.Wait()
	c := connect(t, s, proto.ConnectRequest{})
	r := c.call(proto.OpGetAllChildrenNumber, proto.AppendString(nil, "/"))
	if n := proto.NewDecoder(r.body).Int(); n != clients*writes+3 {
		t.Fatalf("%d nodes, want %d", n, clients*writes+3)
	}
}

// A reconfig that is refused, or behind other writes, is no change under way: a
// ping keeps its turn.
func TestAPingDoesNotOvertakeAReconfigThatIsNotUnderWay(t *testing.T) {
	s := startServer(t, testConfig(t))
	client := connect(t, s, proto.ConnectRequest{})
	reconfigBody := (&proto.ReconfigRequest{CurConfigID: -1}).Append(nil)
	for range 20 {
		write := client.send(proto.OpSetData, setBody("/", "x"))
		reconfig := client.send(proto.OpReconfig, reconfigBody)
		client.send(proto.OpPing, nil)
		for _, want := range []int32{write, reconfig, proto.XidPing} {
			if r := client.must(); r.Xid != want {
				t.Fatalf("got %v, want xid %d", r, want)
			}
		}
	}
}

// A client that waits for the end of a reconfig has its pings answered while the
// change is under way, and what else it sends comes behind the reconfig's answer.
func TestPingsAreAnsweredWhileAReconfigIsUnderWay(t *testing.T) {
	s := startServer(t, testConfig(t))
	s.changeAskedBy = func(proto.Origin) bool { return true }
	client := connect(t, s, proto.ConnectRequest{})
	const asked = 1000
	c := s.conns.all()[0]
	p := pending{header: proto.RequestHeader{Xid: asked, Type: proto.OpReconfig}, write: true}
	c.count(&p)
	if !c.queue.append(p) {
		t.Fatal("the connection is closed")
	}
	c.reconfiguring.Store(true)
	for range 3 {
		client.send(proto.OpPing, nil)
		if r := client.must(); r.Xid != proto.XidPing {
			t.Fatalf("a ping is answered by %v", r)
		}
	}
	before := c.stats.received.Load()
	read := client.send(proto.OpExists, pathBody("/", false))
	eventually(t, "the read has arrived", func() bool { return c.stats.received.Load() > before })
	c.Push(proto.EndFrame(proto.AppendReplyHeader(proto.BeginFrame(nil), proto.ReplyHeader{Xid: asked}), 0))
	c.taken()
	for _, want := range []int32{asked, read} {
		if r := client.must(); r.Xid != want {
			t.Errorf("got %v, want xid %d", r, want)
		}
	}
}
