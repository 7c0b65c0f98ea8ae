package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/server"
)

// Ensemble is one or more servers with one network and one clock.
type Ensemble struct {
	options options
	servers []*Server
	wire    *wire
	faults  *faults
	clock   *clock // nil unless it is moved by hand
	dir     string // of servers on disk
	ownsDir bool

	stopOnce sync.Once // guards stopErr
	stopErr  error
}

// NewEnsemble starts n servers that serve, with a leader, when NewEnsemble
// returns, and stops them when the test ends.
func NewEnsemble(tb TB, n int, opts ...Option) *Ensemble {
	tb.Helper()
	e, err := StartEnsemble(n, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// StartEnsemble is NewEnsemble outside of tests. Stop must be called.
func StartEnsemble(n int, opts ...Option) (*Ensemble, error) {
	e := &Ensemble{options: makeOptions(opts), wire: newWire(), faults: &faults{}}
	if e.options.manualClock {
		e.clock = newClock()
	}
	err := e.build(n)
	if err == nil {
		err = e.startAll()
	}
	if err == nil {
		err = within(waitLimit, "all servers serve and one leads", func() bool {
			for _, s := range e.servers {
				if !s.serves() {
					return false
				}
			}
			return e.Leader() != nil
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNotReady, err), e.Stop())
	}
	return e, nil
}

// build takes all ports, and then makes the membership of them.
func (e *Ensemble) build(n int) error {
	if n < 1 || n > 255 {
		return fmt.Errorf("zktest: %d is not a number of servers", n)
	}
	if err := e.openDir(); err != nil {
		return err
	}
	if n > 1 && e.options.listen != freePort {
		return fmt.Errorf("zktest: %d servers cannot share the address %s", n, e.options.listen)
	}
	for i := range n {
		s := &Server{ensemble: e, id: i + 1}
		if n == 1 {
			s.id = 0
		}
		e.servers = append(e.servers, s)
		var err error
		s.client, err = openPort(e.options.listen, func(c net.Conn) net.Conn { return e.wire.gate(c, s.id, s.id) })
		if err == nil && n > 1 {
			// What the other servers dial is under the wire at their end.
			s.peer, err = openPort(freePort, func(c net.Conn) net.Conn { return c })
		}
		if err != nil {
			return err
		}
	}
	for _, s := range e.servers {
		s.config = e.newConfig(s.id)
		if !e.options.onDisk {
			s.memory = server.NewMemory()
		}
	}
	return nil
}

func (e *Ensemble) startAll() error {
	for _, s := range e.servers {
		if err := s.start(); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends all servers for good. A second call does nothing.
func (e *Ensemble) Stop() error {
	e.stopOnce.Do(func() {
		w := e.wire
		w.change(func() {
			clear(w.paused)
			clear(w.cut)
			for _, s := range e.servers {
				w.down[s.id] = true
			}
		})
		errs := make([]error, len(e.servers)+1)
		var all sync.WaitGroup
		for i, s := range e.servers {
			all.Go(func() {
				if err := s.Kill(); !errors.Is(err, ErrDown) {
					errs[i] = err
				}
				for _, p := range []*port{s.client, s.peer} {
					if p != nil {
						p.close()
					}
				}
			})
		}
		all.Wait()
		if e.ownsDir {
			errs[len(e.servers)] = os.RemoveAll(e.dir)
		}
		e.stopErr = errors.Join(errs...)
	})
	return e.stopErr
}

// Servers lists the servers in the order of their numbers.
func (e *Ensemble) Servers() []*Server { return append([]*Server(nil), e.servers...) }

// ConnectString is what clients connect with: host:port,host:port….
func (e *Ensemble) ConnectString() string { return strings.Join(e.Addrs(), ",") }

// Addrs are the addresses for clients, one for each server.
func (e *Ensemble) Addrs() []string {
	var all []string
	for _, s := range e.servers {
		all = append(all, s.Addr())
	}
	return all
}

// Leader is the server that leads, nil while none does. Of two that think so,
// as across a partition or when the lead was just handed over, it is the one with
// the later Raft term.
func (e *Ensemble) Leader() *Server { return e.leaderAmong(e.servers) }

// leaderAmong is Leader with a choice of servers.
func (e *Ensemble) leaderAmong(servers []*Server) *Server {
	var leader *Server
	var latest uint64
	for _, s := range servers {
		running, err := s.up()
		if err != nil || e.wire.isPaused(s.id) {
			continue
		}
		if term := running.LeadingTerm(); term > latest {
			leader, latest = s, term
		}
	}
	return leader
}

// AwaitLeader waits for a leader among some servers; without any, among all.
func (e *Ensemble) AwaitLeader(among ...*Server) (*Server, error) {
	if len(among) == 0 {
		among = e.servers
	}
	var leader *Server
	err := e.await("one of the servers leads", func() bool {
		leader = e.leaderAmong(among)
		return leader != nil
	})
	return leader, err
}

// MoveLeader hands leadership to a server, and returns when it leads.
func (e *Ensemble) MoveLeader(to *Server) error {
	leader, err := e.AwaitLeader()
	if err != nil || leader == to {
		return err
	}
	running, err := leader.up()
	if err != nil {
		return err
	}
	if err := running.MoveLeader(to.id); err != nil {
		return err
	}
	_, err = e.AwaitLeader(to)
	return err
}

// Partition cuts the network between servers into groups. Servers that are in
// no group are a group of their own together. Clients reach every server.
func (e *Ensemble) Partition(groups ...[]*Server) {
	side := map[int]int{}
	for i, group := range groups {
		for _, s := range group {
			side[s.id] = i + 1
		}
	}
	w := e.wire
	w.change(func() {
		clear(w.cut)
		for _, a := range e.servers {
			for _, b := range e.servers {
				if side[a.id] != side[b.id] {
					w.cut[[2]int{a.id, b.id}] = true
				}
			}
		}
	})
}

// Heal ends all partitions.
func (e *Ensemble) Heal() {
	w := e.wire
	w.change(func() { clear(w.cut) })
}

// ExpireSession is Server.ExpireSession, wherever the client is connected.
func (e *Ensemble) ExpireSession(session int64) error {
	leader, err := e.AwaitLeader()
	if err != nil {
		return err
	}
	running, err := leader.up()
	if err != nil {
		return err
	}
	id := proto.SessionID(session)
	if err := running.ExpireSession(id); err != nil {
		return errors.Join(fmt.Errorf("%w: %#x", ErrNoSession, session), err)
	}
	return e.await("the session is gone", func() bool {
		for _, row := range running.Dump().Sessions {
			if row.ID == id {
				return false
			}
		}
		return true
	})
}

// DropConnection is Server.DropConnection, wherever the client is connected.
func (e *Ensemble) DropConnection(session int64) error {
	for _, s := range e.servers {
		if err := s.DropConnection(session); !errors.Is(err, ErrNoSession) && !errors.Is(err, ErrDown) {
			return err
		}
	}
	return fmt.Errorf("%w: %#x is connected nowhere", ErrNoSession, session)
}

// Inject has an action done to the requests that match, whichever server they
// come to.
func (e *Ensemble) Inject(m Match, a Action) *Fault { return e.faults.inject(nil, m, a) }

// connected implements server.Embedding.Connected.
func (e *Ensemble) connected() []proto.SessionID {
	var all []proto.SessionID
	for _, s := range e.servers {
		if running, err := s.up(); err == nil && !e.wire.isPaused(s.id) {
			all = append(all, running.ConnectedSessions()...)
		}
	}
	return all
}

// Advance moves a manual clock and returns when everything that was due is
// applied at the leader. Clients that are connected count as heard all the
// while, as if they had pinged; sessions without a connection run out. A leader
// that is new gives every session its whole timeout again, as in production;
// without a leader nothing is due until there is one.
func (e *Ensemble) Advance(d time.Duration) error {
	if e.clock == nil {
		return ErrClock
	}
	e.clock.advance(d)
	leader := e.Leader()
	if leader == nil {
		return nil
	}
	running, err := leader.up()
	if err != nil {
		return nil // killed meanwhile: nobody leads
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := running.Settle(ctx); err != nil && running.LeadingTerm() != 0 {
		return fmt.Errorf("zktest: after the clock was moved: %w", err)
	}
	return nil
}
