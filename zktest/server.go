package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/server"
)

var (
	// ErrDown is returned by what needs a server that runs.
	ErrDown = errors.New("zktest: the server is down")
	// ErrStarted is returned by Restart when the server runs.
	ErrStarted = errors.New("zktest: the server runs already")
	// ErrNotReady is returned when servers do not serve in time.
	ErrNotReady = errors.New("zktest: the servers do not serve")
	// ErrNoSession is returned when there is no such session, or it has no
	// connection where one is needed.
	ErrNoSession = errors.New("zktest: there is no such session")
	// ErrClock is returned by Advance without ManualClock.
	ErrClock = errors.New("zktest: the clock is not a manual one")
	// ErrTimeout is returned when what is waited for does not come.
	ErrTimeout = errors.New("zktest: it did not happen in time")
)

// waitLimit bounds what the package waits for by itself: 30 s, far more than
// anything here takes.
const waitLimit = 30 * time.Second

// poll is the pause between two looks at what is waited for.
const poll = time.Millisecond

// Server is one server, alone or of an Ensemble. Its methods may be called from
// any goroutine.
type Server struct {
	id       int // 0 alone, else from 1
	ensemble *Ensemble
	config   *config.Config
	memory   *server.Memory // nil on disk
	client   *port
	peer     *port // nil for a server alone

	life    sync.Mutex // held through a start and a kill
	mu      sync.Mutex
	running *server.Server // guarded by mu; nil while down
}

// TB is the part of testing.TB that is used here; test frameworks have it too.
type TB interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
	Cleanup(func())
}

// NewServer starts a server that serves when NewServer returns, and stops it
// when the test ends.
func NewServer(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := Start(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Start is NewServer outside of tests. Stop must be called.
func Start(opts ...Option) (*Server, error) {
	e, err := StartEnsemble(1, opts...)
	if err != nil {
		return nil, err
	}
	return e.servers[0], nil
}

// ID is the server's number: 0 for one alone, else from 1 (ZooKeeper's myid).
func (s *Server) ID() int { return s.id }

// Addr is where clients connect, host:port. It never changes.
func (s *Server) Addr() string { return s.client.listener.Addr().String() }

// Running tells whether the server is there: it is, except between Kill and
// Restart.
func (s *Server) Running() bool { _, err := s.up(); return err == nil }

// Paused tells whether the server is held up by Pause.
func (s *Server) Paused() bool { return s.ensemble.wire.isPaused(s.id) }

// AdminHandler answers what the local admin channel of a server answers: health,
// the four-letter words, metrics. While the server is down it answers 503.
func (s *Server) AdminHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running, err := s.up()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		running.AdminHandler().ServeHTTP(w, r)
	})
}

// Stop ends the server, and the ensemble that it is of, for good.
func (s *Server) Stop() error { return s.ensemble.Stop() }

// start starts or restarts the process, as it were.
func (s *Server) start() error {
	s.life.Lock()
	defer s.life.Unlock()
	if _, err := s.up(); err == nil {
		return ErrStarted
	}
	e := s.ensemble
	o := server.Options{
		Config: s.config, Logger: e.options.logger.With("server", s.id),
		Embedding: server.Embedding{
			Memory: s.memory, Listener: s.client.open(),
			Intercept: func(r server.Request, done <-chan struct{}) server.Verdict { return e.faults.intercept(s, r, done) },
		},
	}
	if e.clock != nil {
		o.Clock = e.clock.server()
		o.Embedding.Connected = e.connected
	}
	o.Clock = e.wire.pausing(s.id, o.Clock)
	if s.peer != nil {
		o.Embedding.PeerListener = s.peer.open()
		o.Embedding.PeerDial = func(to int, address string, timeout time.Duration) (net.Conn, error) {
			return e.wire.dial(s.id, to, address, timeout)
		}
		o.Embedding.ElectionTimeout = e.options.election
	}
	e.wire.change(func() { delete(e.wire.down, s.id) })
	running, err := server.Start(o)
	if err != nil {
		e.wire.change(func() { e.wire.down[s.id] = true })
		_ = o.Embedding.Listener.Close()
		if o.Embedding.PeerListener != nil {
			_ = o.Embedding.PeerListener.Close()
		}
		return fmt.Errorf("zktest: %w", err)
	}
	s.set(running)
	return nil
}

func (s *Server) set(running *server.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
}

// up returns the running server.
func (s *Server) up() (*server.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, fmt.Errorf("%w: server %d", ErrDown, s.id)
	}
	return s.running, nil
}

// serves tells whether clients are served.
func (s *Server) serves() bool {
	running, err := s.up()
	return err == nil && running.Serving()
}

// Kill ends the server as kill -9 ends a process: connections break, sessions
// stay, and what was acknowledged is there after Restart.
func (s *Server) Kill() error {
	s.life.Lock()
	defer s.life.Unlock()
	running, err := s.up()
	if err != nil {
		return err
	}
	s.set(nil)
	w := s.ensemble.wire
	w.change(func() {
		w.down[s.id] = true
		delete(w.paused, s.id)
	})
	return running.Stop()
}

// Restart starts a server that was killed, at the same address with its data,
// and returns when it serves.
func (s *Server) Restart() error {
	if err := s.start(); err != nil {
		return err
	}
	return s.ensemble.await("server "+strconv.Itoa(s.id)+" serves", s.serves)
}

// Pause holds the server up as a long garbage collection, or SIGSTOP, would: no
// byte goes in or out, and what it does by time waits.
func (s *Server) Pause() {
	w := s.ensemble.wire
	w.change(func() { w.paused[s.id] = true })
}

// Resume ends a Pause.
func (s *Server) Resume() {
	w := s.ensemble.wire
	w.change(func() { delete(w.paused, s.id) })
}

// DropConnection breaks the connection of a session to this server. The client
// will come back, and has its session.
func (s *Server) DropConnection(session int64) error {
	running, err := s.up()
	if err != nil {
		return err
	}
	if !running.DropConnection(proto.SessionID(session)) {
		return fmt.Errorf("%w: %#x is not connected to server %d", ErrNoSession, session, s.id)
	}
	return nil
}

// ExpireSession ends a session as if its client had been silent for too long,
// and returns when its ephemeral nodes are gone and its connection is being
// closed. The client learns of it when it comes back.
func (s *Server) ExpireSession(session int64) error { return s.ensemble.ExpireSession(session) }

// Inject has an action done to the requests of this server's clients that
// match.
func (s *Server) Inject(m Match, a Action) *Fault { return s.ensemble.faults.inject(s, m, a) }

// Advance moves a manual clock: see Ensemble.Advance.
func (s *Server) Advance(d time.Duration) error { return s.ensemble.Advance(d) }

// newConfig is the configuration of server id of n.
func (e *Ensemble) newConfig(id int) *config.Config {
	c := e.options.config()
	if e.options.onDisk {
		c.Storage.DataDir = filepath.Join(e.dir, "server"+strconv.Itoa(id))
		c.Storage.LogDir = c.Storage.DataDir
	}
	if id == 0 {
		return c
	}
	c.Ensemble.MyID = int64(id)
	for _, s := range e.servers {
		// The election port is for Apache's algorithm; nobody listens there.
		c.Ensemble.Servers = append(c.Ensemble.Servers, config.Member{
			ID:         int64(s.id),
			Addresses:  []config.PeerAddress{{Host: "127.0.0.1", QuorumPort: s.peer.number(), ElectionPort: s.peer.number()}},
			ClientHost: "127.0.0.1", ClientPort: s.client.number(),
		})
	}
	return c
}

// await waits for a condition.
func (e *Ensemble) await(what string, ok func() bool) error {
	return within(waitLimit, what, ok)
}

func within(limit time.Duration, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ErrTimeout, what)
		}
	}
	return nil
}

// openDir makes the directory of servers on disk.
func (e *Ensemble) openDir() (err error) {
	if !e.options.onDisk {
		return nil
	}
	if e.dir = e.options.dir; e.dir == "" {
		e.dir, err = os.MkdirTemp("", "zktest-")
		e.ownsDir = err == nil
	}
	return err
}
