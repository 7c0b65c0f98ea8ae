package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Options says how to connect. The zero value opens a new session of 30 s.
type Options struct {
	// Timeout is the session timeout to ask for; the server may give another.
	// Default 30 s.
	Timeout time.Duration
	// Session and Password resume a session; zero opens a new one.
	Session  proto.SessionID
	Password []byte
	// LastZxid is the newest zxid seen; a server that is behind it closes the
	// connection. Default 0.
	LastZxid proto.Zxid
	// ReadOnly accepts a server that has no quorum.
	ReadOnly bool
	// Old leaves out the byte that ReadOnly travels in, as clients before
	// ZooKeeper 3.4 do.
	Old bool
	// MaxFrame is the largest frame accepted, in bytes. Default 64 MiB: far more
	// than servers take, because children lists have no limit.
	MaxFrame int
	// EventBuffer is the number of watch events kept for Events; when it is full
	// the connection ends with ErrEventsFull. Default 4096.
	EventBuffer int
	// NoPings leaves the session to expire when nothing is sent.
	NoPings bool
	// TLS, when set, is spoken before the handshake. Default: plain.
	TLS *tls.Config
	// Notify, when set, takes the watch events in place of Events, in the order
	// of the wire among the answers. The read loop calls it: it must not wait.
	Notify func(Event)
}

func (o *Options) fill() {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = 64 << 20
	}
	if o.EventBuffer == 0 {
		o.EventBuffer = 4096
	}
	if o.Password == nil {
		o.Password = make([]byte, proto.PasswordLen)
	}
}

// Event is a watch event.
type Event struct {
	proto.WatcherEvent
	// Zxid is that of the change, or -1 when the server does not say.
	Zxid proto.Zxid
}

// Conn is one connection with one session. Its methods may be called from
// several goroutines; the order of Go and Do calls is the order on the wire.
//
// Two goroutines serve it. The read loop alone reads the socket and completes
// calls; the write loop alone writes it. Both end when the socket closes.
type Conn struct {
	options  Options
	socket   net.Conn
	response proto.ConnectResponse
	events   chan Event
	ended    chan struct{} // closed when the read loop has failed every call

	mu   sync.Mutex
	wake sync.Cond // on mu; out has grown or err is set
	// out is guarded by mu: frames not yet handed to the socket. It has no limit
	// of its own; callers bound it by the calls they have outstanding.
	out     []byte
	spare   []byte // guarded by mu; the buffer that out is swapped with
	xid     int32  // guarded by mu; the last one used
	replies fifo   // guarded by mu; calls in the order of their answers
	auths   fifo   // guarded by mu; answered ahead of replies by Apache
	pings   fifo   // guarded by mu; answered with their own xid
	err     error  // guarded by mu; why the connection ended

	lastZxid atomic.Int64 // newest zxid of an answer
	heard    atomic.Bool  // something came since the last tick
	ping     *time.Timer  // guarded by mu; nil without pings

	silentTicks int // guarded by mu; ticks in a row without a word
}

// Dial connects, shakes hands and returns the connection. The context bounds
// that only.
func Dial(ctx context.Context, addr string, o Options) (*Conn, error) {
	o.fill()
	socket, err := dialSocket(ctx, addr, o.TLS)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	c := &Conn{options: o, socket: socket, events: make(chan Event, o.EventBuffer), ended: make(chan struct{})}
	c.wake.L = &c.mu
	c.lastZxid.Store(int64(o.LastZxid))
	reader := bufio.NewReaderSize(socket, 64<<10)
	if err := c.handshake(ctx, reader); err != nil {
		socket.Close()
		return nil, fmt.Errorf("handshake with %s: %w", addr, err)
	}
	go c.writeLoop()
	go c.readLoop(reader)
	if !o.NoPings {
		c.mu.Lock()
		c.ping = time.AfterFunc(c.Timeout()/3, c.tick)
		c.mu.Unlock()
	}
	return c, nil
}

// dialSocket connects, over TLS when a configuration is given.
func dialSocket(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	if config == nil {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", addr)
	}
	dialer := tls.Dialer{Config: config}
	return dialer.DialContext(ctx, "tcp", addr)
}

func (c *Conn) handshake(ctx context.Context, reader *bufio.Reader) error {
	stop := context.AfterFunc(ctx, func() { c.socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	o := c.options
	request := proto.ConnectRequest{
		LastZxidSeen: o.LastZxid, TimeoutMillis: int32(o.Timeout.Milliseconds()),
		SessionID: o.Session, Password: o.Password, ReadOnly: o.ReadOnly, HasReadOnly: !o.Old,
	}
	frame := proto.EndFrame(request.Append(proto.BeginFrame(nil)), 0)
	if _, err := c.socket.Write(frame); err != nil {
		return cause(ctx, err)
	}
	answer, err := proto.ReadFrame(reader, nil, o.MaxFrame)
	if err != nil {
		return cause(ctx, err)
	}
	if c.response, err = proto.DecodeConnectResponse(answer); err != nil {
		return fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	if c.response.SessionID == 0 || c.response.TimeoutMillis <= 0 {
		return ErrExpired
	}
	if !stop() {
		return ctx.Err()
	}
	return nil
}

// cause prefers the context's error over the one of the socket that the
// context closed.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Session returns the session id that the server gave.
func (c *Conn) Session() proto.SessionID { return c.response.SessionID }

// Password returns the session's password, for a later Dial.
func (c *Conn) Password() []byte { return c.response.Password }

// Timeout returns the negotiated session timeout.
func (c *Conn) Timeout() time.Duration {
	return time.Duration(c.response.TimeoutMillis) * time.Millisecond
}

// Response returns the server's whole answer to the handshake.
func (c *Conn) Response() proto.ConnectResponse { return c.response }

// LastZxid returns the newest zxid that an answer carried.
func (c *Conn) LastZxid() proto.Zxid { return proto.Zxid(c.lastZxid.Load()) }

// Events returns the watch events in the order of the wire. It is closed when
// the connection ends.
func (c *Conn) Events() <-chan Event { return c.events }

// Ended is closed when the connection has ended and every call is complete.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Err returns why the connection ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes the session and then the connection.
func (c *Conn) Close(ctx context.Context) error {
	_, err := c.Do(proto.OpCloseSession, nil).Wait(ctx)
	c.Drop()
	return err
}

// Drop cuts the connection and leaves the session to the server.
func (c *Conn) Drop() {
	c.end(ErrClosed)
	<-c.ended
}

// end records why the connection ends and closes the socket; the loops do the
// rest. The first reason stays.
func (c *Conn) end(reason error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = reason
	}
	if c.ping != nil {
		c.ping.Stop()
	}
	c.wake.Signal()
	c.mu.Unlock()
	c.socket.Close()
}

// tick pings the server and gives up on one that was silent for a timeout.
func (c *Conn) tick() {
	heard := c.heard.Swap(false)
	c.mu.Lock()
	c.silentTicks++
	if heard {
		c.silentTicks = 0
	}
	silent := c.silentTicks >= 3
	if c.err == nil && !silent {
		c.ping.Reset(c.Timeout() / 3)
	}
	c.mu.Unlock()
	if silent {
		c.end(ErrSilent)
		return
	}
	c.Do(proto.OpPing, nil)
}
