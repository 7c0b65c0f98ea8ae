package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/zooraft/zooraft/internal/config"
)

// registry holds the open connections by id, and counts them by host.
type registry struct {
	mu     sync.RWMutex // below the state lock
	byID   map[uint64]*conn
	byHost map[netip.Addr]int

	filesMax int // most connections that leave files for everything else
}

func newRegistry(filesMax int) *registry {
	return &registry{byID: map[uint64]*conn{}, byHost: map[netip.Addr]int{}, filesMax: filesMax}
}

// filesReserved is how many open files clients leave for the log, snapshots,
// peers and the admin channel: 64. Connections without a limit would else take
// the last ones, and a server that cannot open its next log segment ends.
const filesReserved = 64

// connectionsFor is how many connections go with a limit on open files.
func connectionsFor(files uint64) int {
	return int(min(files-min(filesReserved, files/2), math.MaxInt32))
}

// openFilesMax is this process's limit on open files.
func openFilesMax() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt32
	}
	return uint64(limit.Cur)
}

func (r *registry) get(id uint64) *conn {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

func (r *registry) all() []*conn {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]*conn, 0, len(r.byID))
	for _, c := range r.byID {
		out = append(out, c)
	}
	return out
}

func (r *registry) count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byID)
}

// add registers a connection unless a limit forbids it.
func (r *registry) add(c *conn, l *config.Listen) (refused reason) {
	host := c.remote.Addr()
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.MaxConnections > 0 && len(r.byID) >= l.MaxConnections || len(r.byID) >= r.filesMax {
		return reasonTooMany
	}
	if l.MaxConnectionsPerHost > 0 && r.byHost[host] >= l.MaxConnectionsPerHost {
		return reasonTooManyFromHost
	}
	r.byID[c.id] = c
	r.byHost[host]++
	return ""
}

func (r *registry) remove(c *conn) {
	host := c.remote.Addr()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[c.id] != c {
		return
	}
	delete(r.byID, c.id)
	if r.byHost[host]--; r.byHost[host] == 0 {
		delete(r.byHost, host)
	}
}

// listen opens the client port.
func (s *Server) listen() error {
	if s.embedding.Listener != nil {
		s.listener.Store(&s.embedding.Listener)
		return nil
	}
	l := &s.config.Listen
	ln, err := s.listenAt(net.JoinHostPort(l.Host, strconv.Itoa(l.Port)))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrListen, err)
	}
	s.listener.Store(&ln)
	return nil
}

// listenAt opens a client port.
func (s *Server) listenAt(address string) (net.Listener, error) {
	l := &s.config.Listen
	keepAlive := time.Duration(-1) // off
	if l.KeepAlive {
		keepAlive = 0 // the system's
	}
	lc := net.ListenConfig{KeepAlive: keepAlive}
	return lc.Listen(context.Background(), "tcp", address)
}

// moveListener changes the client port of a running server to where its line of
// the membership has it now. Connections that there are stay, as on Apache's
// server. Only the goroutine that follows the membership calls it.
func (s *Server) moveListener(host string, port int) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	ln, err := s.listenAt(address)
	if err != nil {
		s.logger.Error("the new client port cannot be opened; the former one stays", "address", address, "error", err)
		return
	}
	former := s.listener.Swap(&ln)
	s.running.Add(1) // the caller is counted, so nobody has stopped waiting yet
	go s.accept(ln)
	_ = (*former).Close() // ends its accept loop
	select {
	case <-s.stopped:
		_ = ln.Close()
	default:
	}
	s.logger.Info("clients connect at another address now", "address", ln.Addr().String())
}

// acceptPause is how long accepting rests after an error such as too many open
// files.
const acceptPause = 50 * time.Millisecond

// accept is the accept loop.
func (s *Server) accept(ln net.Listener) {
	defer s.running.Done()
	var warned time.Duration // when a failure was logged
	for {
		nc, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if now := s.clock.Monotonic(); warned == 0 || now-warned >= burst {
				s.logger.Warn("accepting a connection failed", "error", err)
				warned = now
			}
			if !s.pause(acceptPause) {
				return
			}
			continue
		}
		s.admit(nc)
	}
}

// admit starts the read loop of a new connection, unless a limit refuses it.
func (s *Server) admit(nc net.Conn) {
	remote, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		_ = nc.Close() // gone before it was accepted
		return
	}
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	c := newConn(s, s.lastConn.Add(1), nc, remote)
	if refused := s.conns.add(c, &s.config.Listen); refused != "" {
		s.metrics.connectionRejected.Inc()
		c.close(refused, "")
		return
	}
	s.heard.appear()
	select {
	case <-s.stopped:
		c.close(reasonStopping, "") // accepted while the others were closed
	default:
	}
	s.running.Add(1)
	go c.begin()
}

// forget is the end of a connection.
func (s *Server) forget(c *conn) {
	c.reader.release()
}
