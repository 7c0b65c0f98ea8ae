package server

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

// pipeOutbox is an outbox whose peer does not read.
func pipeOutbox(t *testing.T, maxBytes int, all *outboxes) *outbox {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	o := &outbox{}
	o.init(1, ours, maxBytes, all, func(error) {})
	return o
}

// A command can bring a hundred thousand events to a client that does not
// read: only the first that finds no room closes the connection.
func TestAFullOutboxSaysSoOnceAndHoldsNothing(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
	o := pipeOutbox(t, 100, all)
	for i, want := range []bool{true, true, false, true, true} {
		if got := o.push(make([]byte, 50)); got != want {
			t.Errorf("push %d: %v, want %v", i, got, want)
		}
	}
	if o.waiting() != 0 || all.bytes.Load() != 0 {
		t.Errorf("%d bytes wait, %d in all", o.waiting(), all.bytes.Load())
	}
	o.close()
}

// What waits in all outboxes is bounded; those that are behind most pay.
func TestAllOutboxesTogetherAreBounded(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 3 * outboxSoftBytes}
	far, near := pipeOutbox(t, 1<<30, all), pipeOutbox(t, 1<<30, all)
	for i := range 3 {
		if !far.push(make([]byte, outboxSoftBytes)) {
			t.Fatalf("push %d was refused", i)
		}
	}
	for range 2 {
		if !near.push(make([]byte, 2000)) {
			t.Error("an outbox with little in it was refused")
		}
	}
	if far.push(make([]byte, 1)) {
		t.Error("the outbox with most in it was not refused")
	}
	if got := all.bytes.Load(); got != 4000 {
		t.Errorf("%d bytes in all, want 4000", got)
	}
	far.close()
	near.close()
	if got := all.bytes.Load(); got != 0 {
		t.Errorf("%d bytes in all after the end", got)
	}
}

// A long frame is not copied; what follows it is not written into its memory.
func TestALongFrameIsKeptAndNotWrittenBehind(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
	o := pipeOutbox(t, 1<<30, all)
	memory := make([]byte, outboxKeepBytes+2)
	long := memory[:outboxKeepBytes+1]
	o.push(long)
	if &o.pending[0] != &long[0] {
		t.Error("the long frame was copied")
	}
	o.push([]byte{1})
	if o.waiting() != len(long)+1 || memory[len(long)] != 0 {
		t.Errorf("%d bytes wait, and %d was written behind the frame", o.waiting(), memory[len(long)])
	}
	o.close()
}

// Bytes that are being written count until the write has ended.
func TestBytesOnTheirWayCountUntilTheyAreWritten(t *testing.T) {
	all := &outboxes{bytes: metrics.NewSpread(), maxBytes: 1 << 30}
	o := pipeOutbox(t, 100, all)
	o.push(make([]byte, 60))
	o.kick()
	eventually(t, "the write has begun", func() bool { return o.waiting() == 0 })
	if !o.push(make([]byte, 30)) {
		t.Error("30 bytes behind 60 were refused")
	}
	if o.push(make([]byte, 30)) {
		t.Error("30 more were taken")
	}
	if got := all.bytes.Load(); got != 60 {
		t.Errorf("%d bytes in all, want the 60 on their way", got)
	}
	o.close()
	eventually(t, "nothing is left", func() bool { return all.bytes.Load() == 0 })
}

// The read loop stops at each of the queue's limits.
func TestAQueueIsOverfullByCountBytesOrWaitingReads(t *testing.T) {
	write := pending{write: true, size: 8}
	for _, c := range []struct {
		name                 string
		writes, reads, bytes int
		want                 bool
	}{
		{"a few", 5, 5, 0, false},
		{"writes up to the limit", queueMaxRequests, 0, 0, true},
		{"many writes", queueMaxRequests - 1, 0, 0, false},
		{"reads up to the limit", 1, queueMaxReads, 0, true},
		{"many reads", 1, queueMaxReads - 1, 0, false},
		{"a large read", 1, 1, queueMaxBytes, true},
	} {
		var q requestQueue
		q.init()
		for range c.writes {
			q.append(write)
		}
		for range c.reads {
			q.behind(func() pending { return pending{size: c.bytes} })
		}
		if got := q.overfull(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		for range c.writes + c.reads {
			q.pop()
		}
		if q.overfull() || q.reads != 0 || q.bytes != 0 {
			t.Errorf("%s: after all is taken: %d reads, %d bytes", c.name, q.reads, q.bytes)
		}
	}
}

// A client that reads what it asks for is never cut off for it, however much
// it asks behind a write.
func TestAWriteAndManyLargeReadsBehindItAreAllAnswered(t *testing.T) {
	s := startServerWith(t, Options{Config: testConfig(t), OutboxMaxBytes: 4 << 20})
	c := connect(t, s, proto.ConnectRequest{})
	c.create("/n", string(make([]byte, 20<<10)), 0)
	const rounds, reads = 3, 1000
	var batch []byte
	first := c.xid + 1
	for range rounds {
		batch = append(batch, c.frame(proto.OpSetData, setBody("/n", string(make([]byte, 20<<10))))...)
		for range reads {
			batch = append(batch, c.frame(proto.OpGetData, pathBody("/n", false))...)
		}
	}
	go func() { _, _ = c.net.Write(batch) }()
	for i := range int32(rounds * (1 + reads)) {
		if r := c.must(); r.Err != 0 || r.Xid != first+i {
			t.Fatalf("reply %d: %v", i, r)
		}
	}
}

// Reads whose cost is not bounded by their size keep their place behind the
// connection's writes although the goroutine that applies does not do them.
func TestCostlyReadsKeepTheirPlaceBehindWrites(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	c.create("/p", "", 0)
	const rounds = 50
	var batch []byte
	first := c.xid + 1
	for i := range rounds {
		batch = append(batch, c.frame(proto.OpCreate, createBody(fmt.Sprintf("/p/%d", i), "", proto.CreateEphemeral))...)
		batch = append(batch, c.frame(proto.OpGetAllChildrenNumber, proto.AppendString(nil, "/p"))...)
		batch = append(batch, c.frame(proto.OpGetEphemerals, proto.AppendString(nil, "/p/"))...)
		batch = append(batch, c.frame(proto.OpGetChildren, pathBody("/p", false))...)
	}
	c.write(batch)
	for i := int32(1); i <= rounds; i++ {
		create, number, ephemerals, children := c.must(), c.must(), c.must(), c.must()
		for k, r := range []reply{create, number, ephemerals, children} {
			if r.Xid != first+4*(i-1)+int32(k) || r.Err != 0 {
				t.Fatalf("round %d: %v", i, r)
			}
		}
		for _, r := range []reply{number, ephemerals, children} {
			if n := proto.NewDecoder(r.body).Int(); n != i {
				t.Fatalf("round %d: %v tells of %d nodes", i, r, n)
			}
		}
	}
}

// Every write carries the identities of its connection through the log.
func TestIdentitiesOfOneConnectionAreBounded(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	var batch []byte
	for i := range 1000 {
		p := proto.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "user%d:secret", i)}
		batch = append(batch, c.frame(proto.OpAuth, p.Append(nil))...)
	}
	go func() { _, _ = c.net.Write(batch) }()
	all := c.gone()
	for i, r := range all[:len(all)-1] {
		if r.Err != 0 {
			t.Fatalf("packet %d: %v", i, r)
		}
	}
	if last := all[len(all)-1]; len(all) < 100 || last.Err != proto.ErrAuthFailed {
		t.Fatalf("after %d packets: %v", len(all), last)
	}
	if n := s.metrics.closed.Key(string(reasonTooManyIdentities)).Value(); n != 1 {
		t.Fatalf("closings for too many identities: %d", n)
	}
}

// A connection whose requests are in work may not be read from, and its pings
// wait in the socket: its session must not end for that.
func TestASessionWithRequestsInWorkIsHeard(t *testing.T) {
	s := startServer(t, testConfig(t))
	held := connect(t, s, proto.ConnectRequest{TimeoutMillis: 500})
	stuck := s.session(t, held.resp.SessionID)
	p := pending{write: true}
	stuck.count(&p)
	stuck.queue.append(p)
	silent := connect(t, s, proto.ConnectRequest{TimeoutMillis: 2000})
	silent.gone()
	if stuck.Gone() || s.state.Zxid() == 0 {
		t.Fatal("the session that waits for its write has ended")
	}
	for _, p := range stuck.queue.close() {
		stuck.uncount(&p)
	}
	if got := held.gone(); len(got) != 0 {
		t.Fatalf("then %v", got)
	}
}

// session returns the connection that has the session.
func (s *Server) session(t *testing.T, id proto.SessionID) *conn {
	t.Helper()
	for _, c := range s.conns.all() {
		if c.SessionID() == id {
			return c
		}
	}
	t.Fatalf("no connection has session %v", id)
	return nil
}

// Clients do not get the files that the log needs.
func TestConnectionsLeaveOpenFilesForTheLog(t *testing.T) {
	for files, want := range map[uint64]int{0: 0, 10: 5, 100: 50, 128: 64, 256: 192, 1024: 960, 1 << 63: 1<<31 - 1} {
		if got := connectionsFor(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
	c := testConfig(t)
	r := newRegistry(2)
	s := startServer(t, c)
	s.conns.mu.Lock()
	s.conns.filesMax = r.filesMax
	s.conns.mu.Unlock()
	connect(t, s, proto.ConnectRequest{})
	connect(t, s, proto.ConnectRequest{})
	if got := dial(t, s).gone(); len(got) != 0 {
		t.Fatalf("a third connection got %v", got)
	}
}

// The last reply of a connection has a time of its own; when that is over, no
// connection without a session has timed out.
func TestTheEndOfALingeringConnectionIsNoSessionlessTimeout(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	server := s.session(t, c.resp.SessionID)
	server.depart(reasonAuthFailed, "")
	if err := server.net.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	c.gone()
	if n := s.metrics.sessionlessExpired.Value(); n != 0 {
		t.Fatalf("%d sessionless timeouts", n)
	}
}

// A client that has gone is not worked for: a failed write ends its connection
// although the read loop has requests in hand, or waits.
func TestAFailedWriteEndsTheConnectionAtOnce(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	server := s.session(t, c.resp.SessionID)
	p := pending{write: true}
	server.count(&p)
	server.queue.append(p)
	// The read loop takes this and waits for the write, which never comes.
	c.send(proto.OpGetChildren, pathBody("/", true))
	eventually(t, "the request is being worked on", func() bool { return server.stats.received.Load() == 2 })
	if err := c.net.Close(); err != nil {
		t.Fatal(err)
	}
	event := make([]byte, 1<<10)
	eventually(t, "a write has failed and nothing is left", func() bool {
		server.Push(proto.EndFrame(append(proto.BeginFrame(nil), event...), 0))
		server.out.kick()
		return server.Gone() && s.conns.count() == 0 && s.outstanding.Load() == 0 && s.state.Watches().Count() == 0
	})
}
