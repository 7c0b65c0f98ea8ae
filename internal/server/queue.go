package server

import (
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

const (
	// queueMaxRequests and queueMaxBytes bound what one connection may have in
	// its queue before its requests are no longer read: 10,000 and 64 MiB.
	queueMaxRequests = 10000
	queueMaxBytes    = 64 << 20
	// queueMaxReads bounds how many of them may be reads that wait behind
	// writes: 128. The goroutine that applies answers those, at once and for
	// everybody's account, into an outbox that cannot hold it back.
	queueMaxReads = 128
)

// pending is a request that has no reply yet: a write that has been proposed,
// or a request that waits behind one.
type pending struct {
	header     proto.RequestHeader
	received   time.Duration
	write      bool
	size       int        // bytes of the frame
	admitted   int        // bytes of the command, from when it may be proposed on
	body       []byte     // a copy, for a read
	identities []proto.ID // the connection's when the request came, for a read
	local      *localReply
	loseReply  bool // a test wants the write done and the connection closed instead of the answer
}

// localReply is an answer that needs neither the state nor the log, and waits
// only for its turn.
type localReply struct {
	header proto.ReplyHeader
	body   []byte
	final  reason // close the connection behind the reply; "" goes on
}

// requestQueue holds the requests of one connection that have no reply yet, in
// the order of their arrival. The read loop alone appends; the goroutine that
// applies takes the head when it is answered. Without a write in it the queue
// is empty, for then the read loop answers at once.
type requestQueue struct {
	mu      sync.Mutex // below the state lock
	shorter sync.Cond  // on mu: something was taken, or closed
	items   []pending
	head    int
	bytes   int
	reads   int
	closed  bool
}

func (q *requestQueue) init() { q.shorter.L = &q.mu }

// append adds a request. It says no when the queue is closed.
func (q *requestQueue) append(p pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.items = append(q.items, p)
	q.bytes += p.size
	return true
}

// behind adds a request if others wait before it. If it says no, the queue is
// empty and stays so until the read loop appends: the caller answers at once.
// The two must be one step, or a request could be added just after the last
// one had been answered, and wait for ever.
func (q *requestQueue) behind(p func() pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return false
	}
	item := p()
	q.items = append(q.items, item)
	q.bytes += item.size
	q.reads++
	return true
}

// admit notes that the write that was appended last may be proposed, as a command of
// that many bytes. It says no when the queue is closed.
func (q *requestQueue) admit(bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.items[len(q.items)-1].admitted = bytes
	return true
}

// unappend takes back the write that was appended last and not proposed. It
// tells whether it was still there.
func (q *requestQueue) unappend() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.items) - 1
	if last < q.head {
		return false
	}
	q.bytes -= q.items[last].size
	q.items[last] = pending{}
	q.items = q.items[:last]
	return true
}

// first returns the head without taking it.
func (q *requestQueue) first() (pending, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) || q.closed {
		return pending{}, false
	}
	return q.items[q.head], true
}

// pop takes the head. It tells whether there was one, and whether a request
// that can be answered at once is next.
func (q *requestQueue) pop() (p pending, popped, readsWait bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return p, false, false
	}
	p = q.items[q.head]
	q.bytes -= p.size
	if !p.write {
		q.reads--
	}
	q.items[q.head] = pending{}
	q.head++
	switch {
	case q.head == len(q.items):
		q.head, q.items = 0, q.items[:0]
		if cap(q.items) > 64 {
			q.items = nil
		}
	case q.head >= 1024 && 2*q.head >= len(q.items):
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.head, q.items = 0, q.items[:n]
	}
	q.shorter.Broadcast()
	return p, true, q.head < len(q.items) && !q.items[q.head].write
}

// length is the number of requests in the queue.
func (q *requestQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) - q.head
}

// overfull tells whether the read loop must not read on.
func (q *requestQueue) overfull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.over()
}

// over requires mu.
func (q *requestQueue) over() bool {
	return len(q.items)-q.head >= queueMaxRequests || q.bytes >= queueMaxBytes || q.reads >= queueMaxReads
}

// waitWhile blocks the read loop while the queue is not empty and hold says
// so; hold is asked again whenever the queue has become shorter.
func (q *requestQueue) waitWhile(hold func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && q.head < len(q.items) && hold() {
		q.shorter.Wait()
	}
}

// waitEmpty blocks the read loop until the queue is empty.
func (q *requestQueue) waitEmpty() { q.waitWhile(func() bool { return true }) }

// trim gives memory back that an empty queue holds.
func (q *requestQueue) trim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		q.items, q.head = nil, 0
	}
}

// close drops all requests and returns them. Reads that wait must not run any
// more: a watch that they set would never be forgotten.
func (q *requestQueue) close() []pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	dropped := q.items[q.head:]
	q.closed, q.items, q.head, q.bytes, q.reads = true, nil, 0, 0, 0
	q.shorter.Broadcast()
	return dropped
}
