package server

import (
	"crypto/rand"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
)

/*
Local sessions (localSessionsEnabled, in an ensemble). A session that owns no
ephemeral node need not be in the log: only the server that made it knows it,
and to any other it is over. Its writes go through the log like all others, but
no row there holds the number of the last one. So they are proposed one by one:
the next only when the one before has been answered, and not at all once its
fate is unknown, for then the connection closes.

With localSessionsUpgradingEnabled the first ephemeral node makes it a session
like all others, under the same id and password.
*/

// localSession is one of them.
type localSession struct {
	timeoutMillis int32
	password      []byte
	owner         *conn // guarded by localSessions.mu
}

// localSessions are those of this server.
type localSessions struct {
	server  *Server
	tracker *session.Tracker

	mu   sync.Mutex
	byID map[proto.SessionID]*localSession // guarded by mu
}

func newLocalSessions(s *Server) *localSessions {
	return &localSessions{server: s, tracker: session.NewTracker(s.config.Session.TickTime), byID: map[proto.SessionID]*localSession{}}
}

// enabled tells whether new sessions are local.
func (l *localSessions) enabled() bool { return l.server.distributed && l.server.config.Session.Local }

func (l *localSessions) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

func (l *localSessions) has(id proto.SessionID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id] != nil
}

func (l *localSessions) remove(id proto.SessionID) *localSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	delete(l.byID, id)
	l.tracker.Remove(id)
	return s
}

// establish makes a local session for the connection, or makes the connection
// the owner of the one that the client names. It returns false if the
// connection is done with.
func (l *localSessions) establish(c *conn, req *proto.ConnectRequest, timeoutMillis int32) bool {
	if req.LastZxidSeen > l.server.state.Zxid() {
		c.closeBehind(reasonZxidAhead)
		return false
	}
	resp := proto.ConnectResponse{
		TimeoutMillis: timeoutMillis, SessionID: req.SessionID, Password: req.Password,
		HasReadOnly: req.HasReadOnly, ReadOnly: c.readOnly,
	}
	if req.SessionID == 0 {
		resp.SessionID, resp.Password = l.server.mintSession(), make([]byte, proto.PasswordLen)
		_, _ = rand.Read(resp.Password) // never fails, as its documentation says
	}
	former, ok := l.own(c, resp.SessionID, timeoutMillis, resp.Password, req.SessionID == 0)
	if !ok {
		c.refuseSession()
		return false
	}
	if former != nil && former != c {
		former.gone.Store(true)
		former.close(reasonSessionMoved, "")
	}
	c.timeout.Store(timeoutMillis)
	c.local.Store(true)
	c.session.Store(int64(resp.SessionID))
	c.sendConnect(&resp)
	c.out.flush()
	return true
}

// own enters a session, or gives it another owner if the password is right.
func (l *localSessions) own(c *conn, id proto.SessionID, timeoutMillis int32, password []byte, fresh bool) (former *conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	switch {
	case fresh:
		s = &localSession{password: password}
		l.byID[id] = s
	case s == nil || subtle.ConstantTimeCompare(s.password, password) != 1:
		return nil, false
	}
	former, s.owner, s.timeoutMillis = s.owner, c, timeoutMillis
	l.tracker.Track(id, time.Duration(timeoutMillis)*time.Millisecond, 0, l.server.clock.Monotonic())
	return former, true
}

// expire is a goroutine: it ends the sessions that have not been heard in time.
func (l *localSessions) expire() {
	s := l.server
	defer s.running.Done()
	tick := s.config.Session.TickTime
	for s.pause(tick / 2) {
		now := s.clock.Monotonic()
		for _, c := range s.conns.all() {
			if c.local.Load() && !c.Gone() {
				l.tracker.Touch(c.SessionID(), c.lastHeard(now))
			}
		}
		for _, due := range l.tracker.Due(now) {
			s.metrics.staleSessions.Inc()
			if over := l.remove(due.ID); over != nil && over.owner != nil {
				over.owner.close(reasonSessionExpired, "")
			}
		}
	}
}

// sendConnect puts the answer to a connect request into the outbox.
func (c *conn) sendConnect(r *proto.ConnectResponse) {
	c.stats.sent.Add(1)
	c.server.metrics.packetsSent.Add(c.id, 1)
	c.send(proto.EndFrame(r.Append(proto.BeginFrame(nil)), 0))
}

// refuseSession answers that the session is over, and ends the connection.
func (c *conn) refuseSession() {
	c.sendConnect(&proto.ConnectResponse{Password: make([]byte, proto.PasswordLen), HasReadOnly: c.stats.hasReadOnly, ReadOnly: c.readOnly})
	c.closeBehind(reasonSessionUnknown)
}

// closeLocal answers a client that closes its local session.
func (c *conn) closeLocal(h proto.RequestHeader, now time.Duration) bool {
	c.server.local.remove(c.SessionID())
	return c.answerLocally(h, now, localReply{
		header: proto.ReplyHeader{Xid: h.Xid, Zxid: c.server.state.Zxid()}, final: reasonSessionClosed})
}

// upgrade makes the connection's local session a global one. It returns false
// when the connection is done with.
func (c *conn) upgrade() bool {
	c.out.flush()
	c.queue.waitEmpty()
	l := c.server.local
	l.mu.Lock()
	s := l.byID[c.SessionID()]
	l.mu.Unlock()
	if s == nil {
		c.close(reasonSessionExpired, "")
		return false
	}
	body := proto.CreateSessionBody{TimeoutMillis: s.timeoutMillis, Password: s.password}
	t := proto.Txn{TxnHeader: proto.TxnHeader{Session: c.SessionID(), Type: proto.OpCreateSession, Origin: c.origin()}, Body: body.Append(nil)}
	c.upgrading.Store(true)
	defer c.upgrading.Store(false)
	if err := c.server.node.Propose(c.id, c.server.encode(&t)); err != nil {
		c.close(reasonFateUnknown, err.Error())
		return false
	}
	select {
	case r := <-c.answered:
		if r != handshakeDone {
			c.close(reasonSessionUnknown, "")
			return false
		}
	case <-c.server.stopped:
		return false
	}
	l.remove(c.SessionID())
	c.seq = 0
	c.owned.Store(int64(c.server.clock.Monotonic()))
	c.local.Store(false)
	return true
}

// upgraded is told, under the state lock, what became of an upgrade.
func (c *conn) upgraded(o *state.Outcome) {
	if o.Session == nil {
		c.tell(handshakeRefused)
		return
	}
	c.tell(handshakeDone)
}

// wantsEphemeral tells whether a write would make an ephemeral node.
func wantsEphemeral(op proto.OpCode, body []byte) bool {
	ephemeral := func(flags int32) bool {
		return flags == proto.CreateEphemeral || flags == proto.CreateEphemeralSequential
	}
	switch op {
	case proto.OpCreate, proto.OpCreate2:
		d := proto.NewDecoder(body)
		r := d.CreateRequest(op)
		return d.Err() == nil && ephemeral(r.Flags)
	case proto.OpMulti:
		ops, err := proto.DecodeMulti(body)
		for i := range ops {
			if op := &ops[i]; (op.Type == proto.OpCreate || op.Type == proto.OpCreate2) && ephemeral(op.Create.Flags) {
				return err == nil
			}
		}
	}
	return false
}
