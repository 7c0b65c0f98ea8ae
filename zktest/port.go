package zktest

import (
	"net"
	"sync"
)

// port is a listening socket that outlives the server behind it: a server that
// is killed and started again has the same address, and nobody can take it in
// between. While there is no server, connections are reset.
type port struct {
	listener net.Listener
	wrap     func(net.Conn) net.Conn
	ended    chan struct{} // closed when the accept loop has ended

	mu   sync.Mutex
	door *door // guarded by mu; nil while there is no server
}

// freePort has the system choose.
const freePort = "127.0.0.1:0"

func openPort(address string, wrap func(net.Conn) net.Conn) (*port, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &port{listener: l, wrap: wrap, ended: make(chan struct{})}
	go p.accept()
	return p, nil
}

func (p *port) number() int { return p.listener.Addr().(*net.TCPAddr).Port }

// accept hands connections to the server there is.
func (p *port) accept() {
	defer close(p.ended)
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed; loopback has no other lasting error
		}
		p.mu.Lock()
		d := p.door
		p.mu.Unlock()
		if d == nil || !d.hand(p.wrap(conn)) {
			reset(conn)
		}
	}
}

// reset refuses a connection that the system has taken already.
func reset(conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // a reset instead of an end; either tells the client
	}
	_ = conn.Close()
}

// open gives a server its listener. It ends when the server closes it.
func (p *port) open() net.Listener {
	d := &door{addr: p.listener.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.door = d
	return d
}

func (p *port) close() {
	_ = p.listener.Close()
	<-p.ended
}

// door is one server's time at a port.
type door struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once // guards closed
	closed chan struct{}
}

var _ net.Listener = (*door)(nil)

func (d *door) hand(conn net.Conn) bool {
	select {
	case d.conns <- conn:
		return true
	case <-d.closed:
		return false
	}
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// Addr implements net.Listener.
func (d *door) Addr() net.Addr { return d.addr }
