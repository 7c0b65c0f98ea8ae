package zktest

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/zooraft/zooraft/internal/server"
)

// wire is the network of one ensemble: which servers are down or paused, and
// between which no byte passes. Every connection asks it before it reads or
// writes. Bytes are held back, not lost, and ends of streams with them: that
// is what TCP makes of a partition.
type wire struct {
	mu      sync.Mutex
	down    map[int]bool    // guarded by mu
	paused  map[int]bool    // guarded by mu
	cut     map[[2]int]bool // guarded by mu; both orders of a pair
	late    []*gated        // guarded by mu; closed while blocked
	changed chan struct{}   // guarded by mu; closed and replaced at each change
}

func newWire() *wire {
	return &wire{down: map[int]bool{}, paused: map[int]bool{}, cut: map[[2]int]bool{}, changed: make(chan struct{})}
}

// change alters the network and wakes everybody who waits for it.
func (w *wire) change(alter func()) {
	w.mu.Lock()
	alter()
	close(w.changed)
	w.changed = make(chan struct{})
	var still []*gated
	for _, c := range w.late {
		if w.blockedLocked(c.from, c.to) {
			still = append(still, c)
		} else {
			_ = c.Conn.Close() // its owner has closed it long ago
		}
	}
	w.late = still
	w.mu.Unlock()
}

func (w *wire) blockedLocked(from, to int) bool {
	return w.paused[from] || w.paused[to] || w.cut[[2]int{from, to}]
}

func (w *wire) blocked(from, to int) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.blockedLocked(from, to), w.changed
}

func (w *wire) isPaused(id int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused[id]
}

// dial connects two servers. To one that is down it is refused at once.
func (w *wire) dial(from, to int, address string, timeout time.Duration) (net.Conn, error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		blocked, gone, refused, changed := w.blockedLocked(from, to), w.down[from], w.down[to], w.changed
		w.mu.Unlock()
		switch {
		case gone:
			return nil, net.ErrClosed
		case blocked:
			select {
			case <-changed:
				continue
			case <-deadline.C:
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
			}
		case refused:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		conn, err := net.DialTimeout("tcp", address, timeout)
		if err != nil {
			return nil, err
		}
		return w.gate(conn, from, to), nil
	}
}

// gate puts a connection under the wire. For a client's, from and to are the
// server's number.
func (w *wire) gate(conn net.Conn, from, to int) *gated {
	return &gated{Conn: conn, wire: w, from: from, to: to, closed: make(chan struct{}), moved: make(chan struct{})}
}

// gated is a connection that reads and writes only while the wire lets it.
type gated struct {
	net.Conn
	wire     *wire
	from, to int
	once     sync.Once // guards closed
	closed   chan struct{}
	held     []byte // read while blocked; the one reader only

	mu        sync.Mutex
	readBy    time.Time     // guarded by mu
	writeBy   time.Time     // guarded by mu
	moved     chan struct{} // guarded by mu; closed and replaced when a deadline moves
	withdrawn bool          // guarded by mu; closed here, not yet on the wire
}

// pass waits until bytes may pass.
func (c *gated) pass(deadline *time.Time) error {
	for {
		select {
		case <-c.closed:
			return net.ErrClosed
		default:
		}
		blocked, changed := c.wire.blocked(c.from, c.to)
		if !blocked {
			return nil
		}
		c.mu.Lock()
		by, moved := *deadline, c.moved
		c.mu.Unlock()
		var expired <-chan time.Time
		if !by.IsZero() {
			timer := time.NewTimer(time.Until(by))
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-changed:
		case <-moved:
		case <-c.closed:
		case <-expired:
			return os.ErrDeadlineExceeded
		}
	}
}

// Read implements net.Conn.
func (c *gated) Read(b []byte) (int, error) {
	if err := c.pass(&c.readBy); err != nil {
		return 0, err
	}
	if len(c.held) > 0 {
		n := copy(b, c.held)
		c.held = c.held[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b)
	if blocked := c.pass(&c.readBy); blocked != nil {
		c.held = append(c.held, b[:n]...)
		return 0, blocked
	}
	return n, err
}

// Write implements net.Conn.
func (c *gated) Write(b []byte) (int, error) {
	if err := c.pass(&c.writeBy); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn.
func (c *gated) SetDeadline(t time.Time) error {
	c.note(func() { c.readBy, c.writeBy = t, t })
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *gated) SetReadDeadline(t time.Time) error {
	c.note(func() { c.readBy = t })
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *gated) SetWriteDeadline(t time.Time) error {
	c.note(func() { c.writeBy = t })
	return c.Conn.SetWriteDeadline(t)
}

func (c *gated) note(set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set()
	close(c.moved)
	c.moved = make(chan struct{})
}

// CloseWrite sends the end of the stream, unless nothing passes.
func (c *gated) CloseWrite() error {
	if blocked, _ := c.wire.blocked(c.from, c.to); blocked {
		return nil
	}
	if t, ok := c.Conn.(*net.TCPConn); ok {
		return t.CloseWrite()
	}
	return nil
}

// Close implements net.Conn. While nothing passes, the other end does not
// learn of it.
func (c *gated) Close() error {
	c.once.Do(func() { close(c.closed) })
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.blockedLocked(c.from, c.to) {
		return c.Conn.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.withdrawn {
		c.withdrawn = true
		w.late = append(w.late, c)
		_ = c.Conn.SetDeadline(time.Unix(1, 0)) // wakes whoever is in a call
	}
	return nil
}

// pausePoll is how long a sleeper of a paused server goes on sleeping at a time.
const pausePoll = 10 * time.Millisecond

// pausing is a clock by which nobody wakes up while the server is paused.
func (w *wire) pausing(id int, base server.Clock) server.Clock {
	base = base.Filled()
	asleep := base.SleepUntil
	base.SleepUntil = func(at time.Duration, quit <-chan struct{}) bool {
		for asleep(at, quit) {
			if !w.isPaused(id) {
				return true
			}
			at = base.Monotonic() + pausePoll
		}
		return false
	}
	return base
}
