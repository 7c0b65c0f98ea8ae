package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// State is where a Session stands, named as ZooKeeper's clients name it.
type State string

// The states of a Session.
const (
	StateConnecting        State = "CONNECTING"
	StateConnected         State = "CONNECTED"
	StateConnectedReadOnly State = "CONNECTEDREADONLY"
	StateAuthFailed        State = "AUTH_FAILED"
	StateClosed            State = "CLOSED"
)

// Alive tells whether the session can still be used.
func (s State) Alive() bool { return s != StateClosed && s != StateAuthFailed }

// Connected tells whether a request would be sent at once.
func (s State) Connected() bool { return s == StateConnected || s == StateConnectedReadOnly }

// SessionOptions says how a Session connects.
type SessionOptions struct {
	// Servers are tried in this order, each as host:port.
	Servers []string
	// Chroot is put before every path; empty for none.
	Chroot string
	// Timeout is the session timeout to ask for. Default 30 s.
	Timeout time.Duration
	// DialTimeout bounds one attempt at one server. Default 5 s.
	DialTimeout time.Duration
	// ReadOnly accepts a server that has no quorum.
	ReadOnly bool
	// TLS, when set, is spoken to every server.
	TLS *tls.Config
	// Auths are added on every connection, before anything else is sent.
	Auths []proto.AuthPacket
	// Patient makes a request wait for a connection as long as its context
	// lets it. Without it the request fails once every server has been tried
	// in vain.
	Patient bool
	// Notify takes watch events (below the chroot) and changes of the state, in
	// order; it must not wait. Default: nobody is told.
	Notify func(Event)
	// WatchesLost is called when a connection that had watches came back: what
	// changed meanwhile below a persistent watch was not told.
	WatchesLost func()
}

// Keeper states of an Event whose type is proto.EventNone.
const (
	KeeperDisconnected      int32 = 0
	KeeperSyncConnected     int32 = 3
	KeeperAuthFailed        int32 = 4
	KeeperConnectedReadOnly int32 = 5
	KeeperExpired           int32 = -112
	KeeperClosed            int32 = 7
)

// maxReconnectPause is the longest pause between two rounds over all servers.
const maxReconnectPause = time.Second

// Session is a session that goes over several servers. One goroutine, the
// keeper, connects and connects again; everything else is the Conn's.
type Session struct {
	options SessionOptions
	ctx     context.Context
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the keeper is gone

	mu       sync.Mutex
	state    State              // guarded by mu
	changed  chan struct{}      // guarded by mu; closed and replaced when state or rounds change
	conn     *Conn              // guarded by mu; nil without a connection
	server   string             // guarded by mu; the server of conn
	rounds   int                // guarded by mu; rounds over all servers that found none
	lastErr  error              // guarded by mu; why the last attempt failed
	auths    []proto.AuthPacket // guarded by mu
	watches  watchTable         // guarded by mu
	id       proto.SessionID    // guarded by mu
	password []byte             // guarded by mu
	lastZxid proto.Zxid         // guarded by mu
	patient  bool               // guarded by mu; see SessionOptions.Patient
}

// NewSession starts to connect and returns at once.
func NewSession(options SessionOptions) *Session {
	if options.Timeout == 0 {
		options.Timeout = 30 * time.Second
	}
	if options.DialTimeout == 0 {
		options.DialTimeout = 5 * time.Second
	}
	if options.Notify == nil {
		options.Notify = func(Event) {}
	}
	if options.WatchesLost == nil {
		options.WatchesLost = func() {}
	}
	options.Chroot = strings.TrimSuffix(options.Chroot, "/")
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		options: options, ctx: ctx, cancel: cancel, ended: make(chan struct{}),
		state: StateConnecting, changed: make(chan struct{}),
		auths: append([]proto.AuthPacket(nil), options.Auths...), watches: newWatchTable(), patient: options.Patient,
	}
	s.watches.chroot = options.Chroot
	go s.keep()
	return s
}

// keep connects, stays while the connection lasts, and connects again.
func (s *Session) keep() {
	defer close(s.ended)
	pause := 50 * time.Millisecond
	for s.ctx.Err() == nil {
		for _, server := range s.options.Servers {
			conn, err := s.connect(server)
			if err != nil {
				if s.failed(err) {
					return
				}
				continue
			}
			pause = 50 * time.Millisecond
			<-conn.Ended()
			if s.disconnected(conn) {
				return
			}
		}
		s.mu.Lock()
		s.rounds++
		s.tell()
		s.mu.Unlock()
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, maxReconnectPause)
	}
}

// connect makes a connection ready for requests: identities first, because the
// server judges events and reads by them, then watches.
func (s *Session) connect(server string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.DialTimeout)
	defer cancel()
	s.mu.Lock()
	options := Options{
		Timeout: s.options.Timeout, Session: s.id, Password: s.password, LastZxid: s.lastZxid,
		ReadOnly: s.options.ReadOnly, TLS: s.options.TLS, Notify: s.notify,
	}
	auths := append([]proto.AuthPacket(nil), s.auths...)
	s.mu.Unlock()
	conn, err := Dial(ctx, server, options)
	if err != nil {
		return nil, err
	}
	for _, auth := range auths {
		if err := conn.AddAuth(ctx, auth.Scheme, auth.Auth); err != nil {
			conn.Drop()
			return nil, fmt.Errorf("%s: scheme %s: %w", server, auth.Scheme, err)
		}
	}
	s.mu.Lock()
	requests := s.watches.setWatches(conn.options.LastZxid)
	s.mu.Unlock()
	for _, request := range requests {
		if _, err := conn.Do(proto.OpSetWatches2, request).Wait(ctx); err != nil {
			conn.Drop()
			return nil, fmt.Errorf("%s: watches: %w", server, err)
		}
	}
	if !s.connected(conn, server) {
		conn.Drop()
		return nil, ErrClosed
	}
	if len(requests) > 0 {
		s.options.WatchesLost()
	}
	return conn, nil
}

// connected puts a connection into use, unless the session was closed while it
// was made.
func (s *Session) connected(conn *Conn, server string) bool {
	state, keeper := StateConnected, KeeperSyncConnected
	if conn.Response().ReadOnly {
		state, keeper = StateConnectedReadOnly, KeeperConnectedReadOnly
	}
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return false
	}
	s.conn, s.server, s.state, s.rounds, s.lastErr = conn, server, state, 0, nil
	s.id, s.password = conn.Session(), conn.Password()
	s.tell()
	s.mu.Unlock()
	s.options.Notify(stateEvent(keeper))
	return true
}

// failed records why an attempt failed and tells whether the session is over.
func (s *Session) failed(err error) (over bool) {
	s.mu.Lock()
	s.lastErr = err
	state, keeper := s.state, int32(0)
	switch {
	case s.id != 0 && errors.Is(err, ErrExpired):
		state, keeper = StateClosed, KeeperExpired
	case Code(err) == proto.ErrAuthFailed:
		state, keeper = StateAuthFailed, KeeperAuthFailed
	}
	over = !state.Alive() || s.ctx.Err() != nil
	s.state = state
	if over {
		s.tell()
	}
	s.mu.Unlock()
	if keeper != 0 {
		s.options.Notify(stateEvent(keeper))
	}
	return over
}

// disconnected takes a connection that has ended out of use.
func (s *Session) disconnected(conn *Conn) (over bool) {
	s.mu.Lock()
	s.conn, s.lastErr, s.rounds = nil, conn.Err(), 0
	s.lastZxid = max(s.lastZxid, conn.LastZxid())
	if s.state.Alive() {
		s.state = StateConnecting
	}
	over = !s.state.Alive() || s.ctx.Err() != nil
	if over && s.state.Alive() {
		s.state = StateClosed
	}
	s.tell()
	s.mu.Unlock()
	if !over {
		s.options.Notify(stateEvent(KeeperDisconnected))
	}
	return over
}

// tell wakes who waits for the state; it needs s.mu.
func (s *Session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func stateEvent(keeper int32) Event {
	return Event{WatcherEvent: proto.WatcherEvent{Type: proto.EventNone, State: keeper}, Zxid: -1}
}

// Ready waits for a connection and returns it. How long it waits is what
// SessionOptions.Patient says.
func (s *Session) Ready(ctx context.Context) (*Conn, error) {
	for {
		s.mu.Lock()
		conn, state, lastErr, changed := s.conn, s.state, s.lastErr, s.changed
		hopeless := s.rounds > 0 && !s.patient
		s.mu.Unlock()
		switch {
		case conn != nil && state.Alive():
			return conn, nil
		case state == StateAuthFailed:
			return nil, &ServerError{Op: proto.OpAuth, Code: proto.ErrAuthFailed}
		case !state.Alive() && errors.Is(lastErr, ErrExpired):
			return nil, &ServerError{Op: proto.OpCreateSession, Code: proto.ErrSessionExpired}
		case !state.Alive():
			return nil, ErrClosed
		case hopeless:
			return nil, fmt.Errorf("%w: %w", ErrNoServer, lastErr)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if lastErr != nil {
				return nil, fmt.Errorf("%w: %w", ErrNoServer, lastErr)
			}
			return nil, fmt.Errorf("%w: %w", ErrNoServer, ctx.Err())
		}
	}
}

// SetPatient changes what SessionOptions.Patient said.
func (s *Session) SetPatient(patient bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patient = patient
}

// State returns where the session stands.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Server returns the server that the session is or was last connected to.
func (s *Session) Server() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// ID returns the session's id; 0 before the first connection.
func (s *Session) ID() proto.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Chroot returns what is put before every path.
func (s *Session) Chroot() string { return s.options.Chroot }

// Close closes the session at the server, if there is a connection, and ends
// the keeper.
func (s *Session) Close(ctx context.Context) error {
	s.cancel()
	s.mu.Lock()
	conn, was := s.conn, s.state
	s.state = StateClosed
	s.tell()
	s.mu.Unlock()
	var err error
	if conn != nil {
		err = conn.Close(ctx)
	}
	<-s.ended
	if was.Alive() {
		s.options.Notify(stateEvent(KeeperClosed))
	}
	return err
}

// Drop ends the keeper and leaves the session to the server.
func (s *Session) Drop() {
	s.cancel()
	s.mu.Lock()
	conn := s.conn
	s.state = StateClosed
	s.tell()
	s.mu.Unlock()
	if conn != nil {
		conn.Drop()
	}
	<-s.ended
}

// AddAuth adds an identity to this connection and every later one.
func (s *Session) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	conn, err := s.Ready(ctx)
	if err != nil {
		return err
	}
	if err := conn.AddAuth(ctx, scheme, auth); err != nil {
		if Code(err) == proto.ErrAuthFailed {
			s.mu.Lock()
			s.state = StateAuthFailed
			s.tell()
			s.mu.Unlock()
			s.options.Notify(stateEvent(KeeperAuthFailed))
		}
		return err
	}
	s.mu.Lock()
	s.auths = append(s.auths, proto.AuthPacket{Scheme: scheme, Auth: auth})
	s.mu.Unlock()
	return nil
}
