package server

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/auth"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/watch"
)

// conn is one client connection. Its read loop is the only goroutine that
// reads from the socket, proposes for the session, and appends to the queue.
//
// One request's way: readLoop → handle → (a read) state.Read → Push → outbox;
// (a write) queue, consensus.Propose ⇢ state.Apply → Server.Applied → answer →
// outbox.
type conn struct {
	server *Server
	id     uint64 // unique among all connections of all runs of this server
	net    net.Conn
	remote netip.AddrPort
	since  time.Time

	out   outbox
	queue requestQueue
	stats connStats

	session       atomic.Int64               // 0 until the session is established
	timeout       atomic.Int32               // negotiated, ms
	behindReads   atomic.Bool                // the read loop waits for its turn with a costly read
	heard         atomic.Int64               // monotonic time of the last request, ns
	owned         atomic.Int64               // monotonic time when the handshake that made it the owner began, ns
	held          atomic.Bool                // its read loop holds a command back until there is a leader
	identities    atomic.Pointer[[]proto.ID] // replaced as a whole by the read loop
	gone          atomic.Bool                // being closed
	local         atomic.Bool                // its session is a local one
	reconfiguring atomic.Bool                // its last request was a reconfig, which may still be unanswered
	upgrading     atomic.Bool                // its local session is becoming a global one
	readOnly      bool                       // of read-only mode; read loop only
	dirty         bool                       // has got something from the entry being applied; the goroutine that applies only
	handed        uint64                     // the last entry in which it was handed over early; likewise
	closeOnce     sync.Once                  // guards the closing's one record
	forgetOnce    sync.Once                  // who closes waits until the watches are forgotten
	answered      chan handshakeResult       // capacity 1: the outcome of create- or renew-session
	reader        frameReader                // read loop only
	parked        atomic.Bool                // no goroutine reads; who makes it false is the read loop's next start
	known         bool                       // read loop only: has been parked before
	unparkable    bool                       // read loop only: waits in its reads
	scratch       []byte                     // read loop only: reply under construction
	seq           uint64                     // read loop only: number of the last command proposed
}

func newConn(s *Server, id uint64, nc net.Conn, remote netip.AddrPort) *conn {
	c := &conn{server: s, id: id, net: nc, remote: remote, since: s.clock.Wall(),
		answered: make(chan handshakeResult, 1)}
	c.out.init(id, nc, s.outboxMaxBytes, &s.outboxes, func(err error) { c.clientGone(err.Error()) })
	c.queue.init()
	c.stats.lastOp = unasked
	c.reader.init(nc, s.config.Limits.MaxFrame)
	c.identities.Store(&[]proto.ID{auth.Connection(remote.Addr())})
	return c
}

// SessionID implements state.Asker.
func (c *conn) SessionID() proto.SessionID { return proto.SessionID(c.session.Load()) }

// Gone implements watch.Watcher.
func (c *conn) Gone() bool { return c.gone.Load() }

// origin names this connection in a command's envelope.
func (c *conn) origin() proto.Origin {
	return proto.Origin{Server: c.server.serverID, Conn: c.id}
}

// Push implements state.Asker. It may be called under the state lock.
func (c *conn) Push(frame []byte) {
	c.stats.sent.Add(1)
	c.server.metrics.pushed(c.id, frame)
	c.send(frame)
}

// reusable is the buffer of a reply that was sent, for the next one; nil if the
// outbox may have kept it.
func reusable(buffer []byte) []byte {
	if cap(buffer) > outboxKeepBytes {
		return nil
	}
	return buffer[:0]
}

// send puts a frame into the outbox.
func (c *conn) send(frame []byte) {
	if !c.out.push(frame) {
		c.overflow()
	}
}

// overflow ends a connection whose outbox is full.
func (c *conn) overflow() {
	// Closing does I/O, and the state lock may be held.
	go c.close(reasonOutboxFull, "")
}

// Notify implements watch.Watcher: an event goes out if the connection may
// read the node that it is about. Only the goroutine that applies calls it.
func (c *conn) Notify(e proto.WatcherEvent, zxid proto.Zxid, acl watch.ACL) {
	if !c.server.config.Security.SkipACL && !acl.Allowed(proto.PermRead, *c.identities.Load()) {
		return
	}
	c.pushEvent(c.server.hook.event.of(e, zxid))
	c.server.hook.markDirty(c)
}

// Replay implements state.Asker: events that a client missed have no zxid, and
// are not judged by an ACL, as on Apache's server.
func (c *conn) Replay(e proto.WatcherEvent) { c.pushEvent(frameOf(e, -1)) }

// pushEvent takes a frame that is not written again.
func (c *conn) pushEvent(frame []byte) {
	c.stats.sent.Add(1)
	c.server.metrics.pushed(c.id, frame)
	if !c.out.share(frame) {
		c.overflow()
	}
}

// eventFrame is the last event that was made into a frame: most of them go to many
// connections.
type eventFrame struct {
	event proto.WatcherEvent
	zxid  proto.Zxid
	frame []byte
}

func (f *eventFrame) of(e proto.WatcherEvent, zxid proto.Zxid) []byte {
	if f.frame == nil || zxid != f.zxid || e != f.event {
		*f = eventFrame{event: e, zxid: zxid, frame: frameOf(e, zxid)}
	}
	return f.frame
}

func frameOf(e proto.WatcherEvent, zxid proto.Zxid) []byte {
	frame := proto.BeginFrame(make([]byte, 0, 48+len(e.Path)))
	frame = proto.AppendReplyHeader(frame, proto.ReplyHeader{Xid: proto.XidNotification, Zxid: zxid})
	return proto.EndFrame(proto.AppendWatcherEvent(frame, e), 0)
}

// begin is the goroutine of a new connection: it becomes the read loop once the
// session is established.
func (c *conn) begin() {
	defer c.server.running.Done()
	switch established, quiet := c.greet(); {
	case !established:
		c.finish()
	case !quiet || !c.park():
		c.readLoop()
	}
}

// serve is the goroutine of a connection that was parked.
func (c *conn) serve() {
	defer c.server.running.Done()
	c.readLoop()
}

// greet takes the first frame, and waits a moment for the next one: most clients
// that connect ask for something at once. Without a session the connection is
// done with.
func (c *conn) greet() (established, quiet bool) {
	deadline := func(t time.Time) bool {
		err := c.net.SetReadDeadline(t)
		if err != nil {
			c.close(reasonClientGone, err.Error())
		}
		return err == nil
	}
	if !deadline(time.Now().Add(c.server.config.Listen.SessionlessTimeout)) || !c.firstFrame() || !deadline(time.Now().Add(lull)) {
		return false, false
	}
	quiet = errors.Is(c.reader.await(), os.ErrDeadlineExceeded) // another error comes again
	return deadline(time.Time{}), quiet
}

// readLoop serves the connection until its socket closes, or it is parked.
func (c *conn) readLoop() {
	for {
		frame, more, err := c.reader.next()
		if err != nil {
			c.readFailed(err)
			break
		}
		now := c.server.clock.Monotonic()
		quiet := now - time.Duration(c.heard.Swap(int64(now)))
		if !c.handle(frame, now) {
			// The reply that ends the connection may wait its turn.
			c.queue.waitEmpty()
			break
		}
		if !more || c.out.waiting() > outboxSoftBytes {
			c.out.flush()
		}
		c.holdBack()
		if quiet > lull && c.reader.empty() && c.park() {
			return
		}
	}
	c.finish()
}

// finish is the end of the read loop: what is in the outbox may still go out,
// then nothing of the connection is left.
func (c *conn) finish() {
	c.out.flush()
	c.close(reasonClientGone, "")
	c.server.forget(c)
}

func (c *conn) readFailed(err error) {
	var timeout net.Error
	switch {
	case errors.Is(err, proto.ErrFrameLength):
		c.close(reasonFrameLength, err.Error()+" (jute.maxbuffer)")
	case errors.As(err, &timeout) && timeout.Timeout():
		if !c.Gone() { // else the time that its last reply was given is over
			c.server.metrics.sessionlessExpired.Inc()
		}
		c.close(reasonSessionless, "")
	case errors.Is(err, io.EOF):
		c.clientGone("")
	default:
		c.clientGone(err.Error())
	}
}

// clientGone is the end of a connection from which nothing more can be read. If
// it is being closed from here, that is why.
func (c *conn) clientGone(detail string) {
	if !c.Gone() {
		c.server.metrics.dropped.Inc()
	}
	c.close(reasonClientGone, detail)
}

// close closes the socket at once. It may be called by any goroutine, but not
// under the state lock.
func (c *conn) close(r reason, detail string) {
	c.depart(r, detail)
	c.out.close()
}

// closeBehind closes the socket once all that is in the outbox is written. Like
// close it is not called under the state lock.
func (c *conn) closeBehind(r reason) {
	c.depart(r, "")
	c.out.finish()
}

// depart takes the connection out of everything but its outbox: nothing that
// waits is answered any more, and no watch is kept. Who sees the socket close
// finds the connection in no list and no count any more.
func (c *conn) depart(r reason, detail string) {
	c.leave(r, detail)
	c.forgetOnce.Do(func() { c.server.state.Watches().Forget(c) })
}

// leave is what of depart may be done under the state lock: all but forgetting
// the watches, of which there may be some hundred thousand.
func (c *conn) leave(r reason, detail string) {
	c.closeOnce.Do(func() {
		c.gone.Store(true)
		c.server.conns.remove(c)
		c.tell(handshakeRefused)
		c.server.closings.record(r, c.remote.String(), c.SessionID().String(), detail)
		for _, p := range c.queue.close() {
			c.uncount(&p)
		}
	})
}

// closeApplying is closeBehind for the goroutine that applies, under the state
// lock: nothing more is answered. The goroutine that does the rest writes the
// outbox, too.
func (c *conn) closeApplying(r reason) {
	c.leave(r, "")
	go func() {
		c.closeBehind(r)
		c.out.flush()
	}()
}

// firstFrame takes what a connection begins with: a four-letter word, or a
// connect request. It returns false if the connection is done with.
func (c *conn) firstFrame() bool {
	head, err := c.reader.head()
	if err != nil {
		c.readFailed(err)
		return false
	}
	if w, ok := c.server.words.Word(head); ok {
		c.answerWord(w, int64(len(head)))
		return false
	}
	frame, err := c.reader.body(int32(binary.BigEndian.Uint32(head[:])))
	if err != nil {
		c.readFailed(err)
		return false
	}
	c.stats.received.Add(1)
	c.server.metrics.packetsReceived.Add(c.id, 1)
	c.server.metrics.bytesReceived.AddBy(c.id, int64(prefixBytes+len(frame)))
	return c.handshake(frame)
}

// state.Asker is what a conn is to a read.
var _ state.Asker = (*conn)(nil)
