package server

import (
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

const (
	// outboxSoftBytes is how much may wait for the socket before the
	// connection's own requests are no longer read: 1 MiB.
	outboxSoftBytes = 1 << 20
	// outboxKeepBytes is the largest buffer for a reply under construction that a
	// connection uses again: 64 KiB. A longer one goes over to the outbox.
	outboxKeepBytes = 64 << 10
	// lingerTimeout is how long a client has to take the last bytes before its
	// connection is closed.
	lingerTimeout = 5 * time.Second
)

// outbox holds what goes to one socket, in order. Replies, events and the
// connect answer are put in while the state lock is held, so that their order
// is the order of the state's changes; order on the wire is order in here.
//
// Bytes are written by whoever has them: the read loop after the requests that
// arrived together; one of the goroutines that write what an entry has put into
// many outboxes, as far as the socket takes it at once; else a goroutine that lives
// while there is something to write. An idle connection has neither goroutine nor
// buffer here.
type outbox struct {
	who      uint64 // the connection's number
	conn     net.Conn
	socket   syscall.RawConn // of conn; nil if it is no socket of the system
	maxBytes int             // most that may wait; above it the connection is closed
	all      *outboxes       // what all outboxes hold
	failed   func(error)     // told, without mu, that a write failed

	mu      sync.Mutex // below the state lock
	changed sync.Cond  // on mu: writing ended
	pending []byte
	large   *[]byte // pooled; what pending lies in, nil if it has its own memory
	flying  int     // bytes that a goroutine is writing
	writing bool    // a goroutine is in conn.Write
	final   bool    // close the socket once pending is empty; takes nothing more
	full    bool    // has refused a frame; takes nothing more
	closed  bool    // the socket is closed
}

// outboxes bounds what waits in all outboxes of a server together. When it is
// too much, those that have most of it, more than outboxSoftBytes, are full.
type outboxes struct {
	maxBytes int64
	bytes    metrics.Spread
}

func (o *outbox) init(who uint64, conn net.Conn, maxBytes int, all *outboxes, failed func(error)) {
	o.who, o.conn, o.maxBytes, o.all, o.failed = who, conn, maxBytes, all, failed
	o.changed.L = &o.mu
	if s, ok := conn.(syscall.Conn); ok {
		o.socket, _ = s.SyscallConn() // fails only on a closed socket
	}
}

// push appends a frame. It returns false if that would exceed a limit; then
// nothing is appended, what waits is let go, and the caller must close the
// connection. It does so once: the frames that come until then are dropped, for
// one command can bring a hundred thousand. A frame longer than outboxKeepBytes is
// not copied, and must not be written again: lists of children have megabytes.
func (o *outbox) push(frame []byte) bool { return o.put(frame, false) }

// share is push for a frame of any length that is not copied and not written again:
// an event that goes to ten thousand outboxes lies in memory once.
func (o *outbox) share(frame []byte) bool { return o.put(frame, true) }

func (o *outbox) put(frame []byte, shared bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.final || o.closed || o.full {
		return true
	}
	waits := len(o.pending) + o.flying + len(frame)
	if len(o.pending) > 0 && (waits > o.maxBytes ||
		waits > outboxSoftBytes && o.all.bytes.Load()+int64(len(frame)) > o.all.maxBytes) {
		o.full = true
		o.drop()
		return false
	}
	o.all.bytes.Add(o.who, int64(len(frame)))
	o.add(frame, shared)
	return true
}

// add appends a frame. It requires mu. A lone frame gets memory of its size; a
// second one moves both into a pooled buffer, as growing one anew for each batch of
// replies is what reads would cost most.
func (o *outbox) add(frame []byte, shared bool) {
	need := len(o.pending) + len(frame)
	if o.pending == nil && (shared || len(frame) > outboxKeepBytes) {
		o.pending = slices.Clip(frame) // what is appended must not be written behind it
		return
	}
	if need <= cap(o.pending) || o.pending == nil {
		o.pending = append(o.pending, frame...)
		return
	}
	if o.large == nil && need <= largeReadBytes {
		o.large = largeBuffers.Get().(*[]byte)
		o.pending = append(append((*o.large)[:0], o.pending...), frame...)
		return
	}
	former := o.large
	o.pending, o.large = append(o.pending, frame...), nil // grows into memory of its own
	giveBack(former)
}

// giveBack returns a buffer that nothing lies in any more to the pool.
func giveBack(large *[]byte) {
	if large != nil {
		largeBuffers.Put(large)
	}
}

// drop lets go what is pending. It requires mu.
func (o *outbox) drop() {
	o.all.bytes.Add(o.who, -int64(len(o.pending)))
	giveBack(o.large)
	o.pending, o.large = nil, nil
}

// finish makes what is in the outbox the last that is written; the socket is
// closed behind it.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.final = true
	_ = o.conn.SetDeadline(time.Now().Add(lingerTimeout)) // fails only on a closed socket
}

// kick has a goroutine write what is pending, unless one is at it.
func (o *outbox) kick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing || o.closed || (len(o.pending) == 0 && !o.final) {
		return
	}
	o.writing = true
	go o.drain()
}

// flush writes what is pending in the caller, waiting for another writer.
func (o *outbox) flush() {
	o.mu.Lock()
	for o.writing {
		o.changed.Wait()
	}
	if o.closed || (len(o.pending) == 0 && !o.final) {
		o.mu.Unlock()
		return
	}
	o.writing = true
	o.mu.Unlock()
	o.drain()
}

// nudge writes what is pending as far as the socket takes it at once, in the
// caller. A goroutine writes the rest, and meets the error if there is one: the
// caller has other outboxes to write.
func (o *outbox) nudge(w *promptWriter) {
	o.mu.Lock()
	if o.writing || o.closed || (len(o.pending) == 0 && !o.final) {
		o.mu.Unlock()
		return
	}
	o.writing = true
	if len(o.pending) > 0 && o.socket != nil {
		buf, large := o.take()
		o.mu.Unlock()
		n := w.write(o.socket, buf)
		o.mu.Lock()
		o.taken(n)
		if n == len(buf) {
			giveBack(large)
		} else {
			o.putBack(buf[n:], large)
		}
	}
	if len(o.pending) > 0 || o.final {
		go o.drain()
	} else {
		o.rest()
	}
	o.mu.Unlock()
}

// drain writes until nothing is pending. The caller has set writing.
func (o *outbox) drain() {
	var failure error
	o.mu.Lock()
	for len(o.pending) > 0 && !o.closed {
		buf, large := o.take()
		o.mu.Unlock()
		_, err := o.conn.Write(buf)
		giveBack(large)
		o.mu.Lock()
		o.taken(len(buf))
		if failure = err; err != nil {
			o.shut()
			break
		}
	}
	if o.final {
		o.shut()
	}
	o.rest()
	o.mu.Unlock()
	if failure != nil {
		// The read loop may be far from its next read.
		o.failed(failure)
	}
}

// take gives what is pending to the caller, to be written. It requires mu.
func (o *outbox) take() (buf []byte, large *[]byte) {
	buf, large = o.pending, o.large
	o.pending, o.large, o.flying = nil, nil, len(buf)
	return buf, large
}

// taken tells that the caller has done with what it took: n bytes of it are not
// here any more. It requires mu.
func (o *outbox) taken(n int) {
	o.flying = 0
	o.all.bytes.Add(o.who, -int64(n))
}

// putBack puts the rest of what was taken before what has come since. It requires
// mu.
func (o *outbox) putBack(rest []byte, large *[]byte) {
	switch {
	case o.closed: // what is pending is lost
		o.all.bytes.Add(o.who, -int64(len(rest)))
		giveBack(large)
	case len(o.pending) == 0:
		o.pending, o.large = rest, large
	default:
		later, former := o.pending, o.large
		o.pending, o.large = slices.Concat(rest, later), nil
		giveBack(large)
		giveBack(former)
	}
}

// rest is the end of writing. It requires mu.
func (o *outbox) rest() {
	o.writing = false
	o.changed.Broadcast()
}

// waiting is the number of bytes that wait for the socket.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending)
}

// close closes the socket at once; what is pending is lost.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut()
}

// shut requires mu. Sending the end of stream before closing lets the client
// read what was written even if requests of it were never read here.
func (o *outbox) shut() {
	if o.closed {
		return
	}
	o.closed = true
	o.drop()
	if t, ok := o.conn.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite() // the peer may be gone already
	}
	_ = o.conn.Close() // likewise; the read loop learns of it by its own error
}
