package consensus

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// helloTimeout bounds the exchange of hello and welcome, on both sides.
const helloTimeout = 2 * time.Second

// peerPort is where all servers of an ensemble reach each other, at each of this
// server's addresses. It exchanges hello and welcome, then hands the connection to Raft's
// transport or to the streams.
type peerPort struct {
	node   *Node
	raft   chan net.Conn // to Raft's transport
	closed chan struct{}

	moving sync.Mutex // held by MovePeerPort; taken before mu

	mu        sync.Mutex
	listeners map[string]net.Listener // guarded by mu; by address as it was asked for
	first     string                  // guarded by mu; of the addresses, the one that PeerAddr tells
	conns     map[net.Conn]struct{}   // guarded by mu; all open ones, in and out
	shut      bool                    // guarded by mu
	muted     bool                    // guarded by mu; no connection is taken or made
	// pending are connections whose hello has not come, the oldest first.
	pending []net.Conn // guarded by mu; ≤ pendingHellos
}

func (n *Node) openPeerPort() (*peerPort, error) {
	addresses := addressesOf(n.cfg.PeerListen)
	p := &peerPort{node: n, raft: make(chan net.Conn), closed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	if l := n.cfg.PeerListener; l != nil {
		p.listeners, p.first = map[string]net.Listener{"": l}, ""
		return p, nil
	}
	open, err := n.listenAt(addresses, false)
	if err != nil {
		return nil, err
	}
	p.listeners = open
	for _, one := range slices.Backward(addresses) {
		if open[one] != nil {
			p.first = one
		}
	}
	return p, nil
}

// PeerAddr is where the other servers connect, the first address of several; nil
// for a server alone.
func (n *Node) PeerAddr() net.Addr {
	if n.port == nil {
		return nil
	}
	return n.port.addr()
}

func (p *peerPort) addr() net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listeners[p.first].Addr()
}

// accept is a goroutine, one for each listener.
func (p *peerPort) accept(l net.Listener) {
	defer p.node.workers.Done()
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if !p.node.disk.wait(50 * time.Millisecond) {
				return
			}
			continue
		}
		go p.welcome(conn)
	}
}

// welcome reads the hello and hands the connection on.
func (p *peerPort) welcome(conn net.Conn) {
	if !p.expect(conn) {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	first := &opening{Reader: conn}
	h, err := first.hello()
	if !p.heard(conn) {
		_ = conn.Close()
		return
	}
	if err != nil {
		p.node.refusals.warn(p.node.logger, conn.RemoteAddr().String(), noHello(first.bytes, err))
		_ = conn.Close()
		return
	}
	w := p.node.answer(h)
	if w.Refused == "" && h.Kind == kindRaft {
		if err := p.node.joined(h.ClusterID, h.Founders); err != nil {
			w.Refused = err.Error()
		}
	}
	if err := writeMessage(conn, w); err != nil || w.Refused != "" || h.Kind == kindProbe || h.Kind == kindConfirm {
		if w.Refused != "" {
			p.node.refusals.warn(p.node.logger, conn.RemoteAddr().String(), w.Refused)
		}
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	p.node.noteOwnLine(h.From, h.Peers)
	tracked, ok := p.track(conn)
	if !ok {
		return
	}
	if h.Kind == kindStream {
		p.node.serveStream(tracked, &h)
		return
	}
	select {
	case p.raft <- tracked:
	case <-p.closed:
		_ = tracked.Close()
	}
}

// trackedConn leaves the port's list when it is closed.
type trackedConn struct {
	net.Conn
	port *peerPort
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.port.mu.Lock()
	delete(c.port.conns, c)
	c.port.mu.Unlock()
	return c.Conn.Close()
}

func (p *peerPort) track(conn net.Conn) (net.Conn, bool) {
	c := &trackedConn{Conn: conn, port: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut || p.muted {
		_ = conn.Close()
		return nil, false
	}
	p.conns[c] = struct{}{}
	return c, true
}

// mute ends all connections and takes and makes none until it is called again
// with false. It tells whether that was a change.
func (p *peerPort) mute(on bool) (changed bool) {
	p.mu.Lock()
	changed = p.muted != on
	p.muted = on
	var open []net.Conn
	if on {
		for c := range p.conns {
			open = append(open, c.(*trackedConn).Conn)
		}
		clear(p.conns)
	}
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	return changed
}

func (p *peerPort) isMuted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.muted
}

// close ends the port and all connections.
func (p *peerPort) close() {
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		return
	}
	p.shut = true
	open, pending := p.conns, p.pending
	p.conns, p.pending = map[net.Conn]struct{}{}, nil
	listeners := slices.Collect(maps.Values(p.listeners))
	p.mu.Unlock()
	for _, c := range pending {
		_ = c.Close()
	}
	close(p.closed)
	for _, l := range listeners {
		_ = l.Close()
	}
	for c := range open {
		_ = c.(*trackedConn).Conn.Close()
	}
}

// streamLayer is the port as Raft's network transport sees it.
type streamLayer struct{ port *peerPort }

var _ raft.StreamLayer = streamLayer{}

// Accept implements net.Listener.
func (s streamLayer) Accept() (net.Conn, error) {
	select {
	case c := <-s.port.raft:
		return c, nil
	case <-s.port.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener; the node closes the port itself.
func (s streamLayer) Close() error { return nil }

// Addr implements net.Listener.
func (s streamLayer) Addr() net.Addr { return s.port.addr() }

// Dial implements raft.StreamLayer. The address is what ServerAddr returned:
// the Raft id, an at sign, the server's address.
func (s streamLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, where, _ := strings.Cut(string(address), "@")
	n := s.port.node
	conn, _, err := n.greet(kindRaft, id, where, min(timeout, helloTimeout))
	if own := n.ownLineOf(id); err != nil && own != "" && own != where {
		conn, _, err = n.greet(kindRaft, id, own, min(timeout, helloTimeout))
	}
	if err != nil {
		return nil, err
	}
	c, ok := s.port.track(conn)
	if !ok {
		return nil, net.ErrClosed
	}
	return newPatientConn(c), nil
}

// addressBook tells Raft's transport where a server is, so that a server whose
// address has changed is found under its name.
type addressBook struct{ node *Node }

// ServerAddr implements raft.ServerAddressProvider.
func (a addressBook) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	known := ""
	for _, s := range a.node.raftServers() {
		if s.ID == id {
			known = string(s.Address)
		}
	}
	where := a.node.addressOf(string(id), known)
	if where == "" {
		return "", errors.New("consensus: no address of server " + string(id) + " is known")
	}
	return raft.ServerAddress(string(id) + "@" + where), nil
}
