package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// sessionTimeout is what the clients ask for.
const sessionTimeout = 4 * time.Second

// callTimeout is how long a client waits for an answer before it drops the
// connection, as every client library does.
const callTimeout = 6 * time.Second

// dial connects within a second and a half; zero ids open a new session.
func dial(address string, id proto.SessionID, password []byte, seen proto.Zxid) (*client.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	return client.Dial(ctx, address, client.Options{
		Timeout: sessionTimeout, Session: id, Password: password, LastZxid: seen})
}

// world is one run: the ensemble, what its clients noted, and what was wrong.
type world struct {
	e    *ensemble
	seed uint64
	stop chan struct{} // closed: no new work
	work sync.WaitGroup

	begin time.Time

	mu       sync.Mutex
	problems []string // guarded by mu
	notes    notes    // guarded by mu
}

func newWorld(e *ensemble, seed uint64) *world {
	return &world{e: e, seed: seed, stop: make(chan struct{}), begin: time.Now(), notes: newNotes()}
}

// wrong notes a broken promise.
func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < 50 {
		w.problems = append(w.problems, fmt.Sprintf("%8.3fs ", w.now().Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) now() time.Duration { return time.Since(w.begin) }

func (w *world) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// rest paces a worker; false when the run ends.
func (w *world) rest(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.stop:
		return false
	}
}

// worker starts a goroutine with random numbers of its own.
func (w *world) worker(number int, run func(s *session)) {
	s := &session{world: w, number: number, rng: rand.New(rand.NewPCG(w.seed, uint64(number)))}
	w.work.Add(1)
	go func() {
		defer w.work.Done()
		defer s.drop() // its session is left to expire
		run(s)
	}()
}

// session is a client that keeps its session over connections, as client
// libraries do. It belongs to one goroutine.
type session struct {
	world  *world
	number int
	rng    *rand.Rand

	conn     *client.Conn
	server   int // that conn leads to
	conns    int // connections so far
	id       proto.SessionID
	password []byte
	seen     proto.Zxid // newest zxid of an answer
	// ended is told when the session is learned to be over.
	ended func(id proto.SessionID)
	over  map[proto.SessionID]bool // former sessions of this client
}

// connected returns a connection, the one that there is or a new one; nil when
// the run ends.
func (s *session) connected() *client.Conn {
	for {
		if s.conn != nil && s.conn.Err() == nil {
			return s.conn
		}
		if s.world.stopped() || !s.world.rest(time.Duration(5+s.rng.IntN(20))*time.Millisecond) {
			return nil
		}
		doors := s.world.e.doors()
		s.connectTo(doors[s.rng.IntN(len(doors))])
	}
}

// connectTo tries one server; s.conn is nil if that fails.
func (s *session) connectTo(at door) {
	s.drop()
	c, err := dial(at.address, s.id, s.password, s.seen)
	if errors.Is(err, client.ErrExpired) {
		old := s.id
		s.id, s.password = 0, nil
		if s.ended != nil {
			s.ended(old)
		}
		return
	}
	if err != nil {
		return
	}
	if s.id != 0 && c.Session() != s.id {
		s.world.wrong("server %d answered session %v with session %v", at.id, s.id, c.Session())
	}
	s.conn, s.server, s.id, s.password = c, at.id, c.Session(), c.Password()
	s.conns++
	s.world.mu.Lock()
	s.world.notes.passwords[s.id] = s.password
	s.world.mu.Unlock()
}

func (s *session) drop() {
	if s.conn != nil {
		s.conn.Drop()
		s.conn = nil
	}
}

// errNoConnection is returned by do when the run ends first.
var errNoConnection = errors.New("faults: no connection")

// do sends one request and waits. An error other than the server's own means
// that the request's fate is unknown; the connection is then dropped.
func (s *session) do(op proto.OpCode, body []byte) (*client.Call, error) {
	c := s.connected()
	if c == nil {
		return nil, errNoConnection
	}
	return s.wait(c.Do(op, body))
}

func (s *session) wait(call *client.Call) (*client.Call, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := call.Wait(ctx)
	var answered *client.ServerError
	if err != nil && !errors.As(err, &answered) {
		s.drop()
		return call, err
	}
	if call.Header.Zxid > 0 {
		if call.Header.Zxid < s.seen {
			s.world.wrong("worker %d, session %v: server %d answered %v with zxid %v after the client had seen %v",
				s.number, s.id, s.server, call.Op, call.Header.Zxid, s.seen)
		}
		s.seen = max(s.seen, call.Header.Zxid)
	}
	if call.Header.Err == proto.ErrSessionExpired {
		s.drop() // the next handshake says the same
		return call, errSessionOver
	}
	return call, err
}

// errSessionOver is returned by do when the answer says so: the request had no
// effect.
var errSessionOver = errors.New("faults: the session is over")

// known tells whether the request's fate is known.
func known(err error) bool {
	var answered *client.ServerError
	return err == nil || errors.As(err, &answered) || errors.Is(err, errSessionOver)
}

func createBody(path string, data []byte, flags int32) []byte {
	r := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL, Flags: flags, TTL: -1}
	return r.Append(nil, proto.OpCreate)
}

func setBody(path string, data []byte, version int32) []byte {
	r := proto.SetDataRequest{Path: path, Data: data, Version: version}
	return r.Append(nil)
}

func deleteBody(path string, version int32) []byte {
	r := proto.PathVersion{Path: path, Version: version}
	return r.Append(nil)
}

func readBody(path string, watch bool) []byte {
	r := proto.PathWatch{Path: path, Watch: watch}
	return r.Append(nil)
}

func syncBody() []byte { return proto.AppendString(nil, "/") }
