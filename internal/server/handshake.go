package server

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// handshakeResult is what the apply of create- or renew-session told the
// waiting read loop.
type handshakeResult uint8

const (
	handshakeDone    handshakeResult = iota // the session is established, and the answer is in the outbox
	handshakeRefused                        // the answer, if any, is in the outbox; the connection ends
	handshakeIDTaken                        // the minted id exists; mint another
)

// handshake takes the connect request and waits until the session is
// established or refused. Meanwhile nothing more is read from the socket, so
// that requests sent ahead wait their turn. It returns false if the connection
// is done with.
func (c *conn) handshake(frame []byte) bool {
	req, err := proto.DecodeConnectRequest(frame)
	if err != nil {
		c.close(reasonBadFrame, "no connect request")
		return false
	}
	c.readOnly = req.ReadOnly && c.server.readOnly.Load()
	if !c.server.serves() && !c.readOnly || c.server.restoring.Load() {
		c.server.metrics.closedNotServing.Inc()
		c.close(reasonNotServing, "")
		return false
	}
	if !c.server.connectThrottle.take(req.SessionID) {
		c.server.metrics.connectionRejected.Inc()
		c.close(reasonConnectThrottle, "")
		return false
	}
	c.server.metrics.connectionRequests.Inc()
	limits := &c.server.config.Session
	timeout := min(max(time.Duration(req.TimeoutMillis)*time.Millisecond, limits.MinTimeout), limits.MaxTimeout)
	c.heard.Store(int64(c.server.clock.Monotonic()))
	c.owned.Store(c.heard.Load())
	c.stats.hasReadOnly = req.HasReadOnly
	switch local := c.server.local; {
	case c.readOnly:
		return c.establishReadOnly(&req, int32(timeout.Milliseconds()))
	case req.SessionID == 0 && local.enabled(), local.has(req.SessionID):
		return local.establish(c, &req, int32(timeout.Milliseconds()))
	}
	for {
		err := c.proposeSession(&req, int32(timeout.Milliseconds()))
		if errors.Is(err, consensus.ErrNotLeader) && c.server.awaitWay(c) {
			c.owned.Store(int64(c.server.clock.Monotonic()))
			continue
		}
		if err != nil {
			c.close(reasonFateUnknown, "no session could be proposed")
			return false
		}
		select {
		case r := <-c.answered:
			switch r {
			case handshakeDone:
				c.out.flush()
				return true
			case handshakeRefused:
				return false
			}
		case <-c.server.stopped:
			return false
		}
		if c.Gone() {
			return false
		}
	}
}

// proposeSession proposes to create a session, or to make this connection the
// owner of the one that the client names.
func (c *conn) proposeSession(req *proto.ConnectRequest, timeoutMillis int32) error {
	t := proto.Txn{TxnHeader: proto.TxnHeader{
		Session: req.SessionID, Type: proto.OpRenewSession, Origin: c.origin(),
	}}
	body := proto.CreateSessionBody{TimeoutMillis: timeoutMillis, LastZxidSeen: req.LastZxidSeen, Password: req.Password}
	if req.SessionID == 0 {
		t.Session, t.Type = c.server.mintSession(), proto.OpCreateSession
		body.Password = make([]byte, proto.PasswordLen)
		_, _ = rand.Read(body.Password) // never fails, as its documentation says
	} else {
		c.server.metrics.revalidated.Inc()
		if len(body.Password) > proto.PasswordLen {
			body.Password = nil // it is no password; the log need not hold it
		}
	}
	t.Body = body.Append(nil)
	return c.server.node.Propose(c.id, c.server.encode(&t))
}

// tell wakes the handshake. It never blocks: what comes second finds the
// connection closed, or nobody who waits.
func (c *conn) tell(r handshakeResult) {
	select {
	case c.answered <- r:
	default:
	}
}

// sessionApplied is called by the goroutine that applies, under the state
// lock, when this connection's create- or renew-session has been applied.
func (c *conn) sessionApplied(h *proto.TxnHeader, o *state.Outcome) {
	switch {
	case c.Gone():
		return
	case c.upgrading.Load():
		c.upgraded(o)
		return
	case o.ZxidAhead:
		// Apache closes without a word; the client then tries another server.
		c.closeBehind(reasonZxidAhead)
		c.tell(handshakeRefused)
		return
	case o.Result.Err == proto.ErrNodeExists:
		c.tell(handshakeIDTaken)
		return
	}
	resp := proto.ConnectResponse{Password: make([]byte, proto.PasswordLen), HasReadOnly: c.stats.hasReadOnly}
	if o.Session != nil {
		resp.TimeoutMillis, resp.SessionID, resp.Password = o.Session.TimeoutMillis, h.Session, o.Session.Password
		c.timeout.Store(resp.TimeoutMillis)
		c.session.Store(int64(h.Session))
		if h.Type == proto.OpCreateSession {
			now := c.server.clock.Monotonic()
			latency := now - time.Duration(c.heard.Load())
			c.stats.replied(h.Type, 0, proto.ReplyHeader{Zxid: o.Zxid}, now, latency)
			c.server.metrics.observe(c.id, h.Type, latency)
		}
	}
	c.sendConnect(&resp)
	if o.Session == nil {
		c.server.hook.markDirty(c)
		c.closeBehind(reasonSessionUnknown)
		c.tell(handshakeRefused)
		return
	}
	c.tell(handshakeDone)
}

// mintSession returns a fresh session id: the server id in the top byte, then
// the time of the process's start in milliseconds, counting on from there, as
// Apache's are made.
func (s *Server) mintSession() proto.SessionID {
	for {
		id := s.lastSession.Add(1)
		if id != proto.ContainerOwner && id != 0 {
			return proto.SessionID(id)
		}
	}
}

// firstSession is where a process starts to count session ids.
func firstSession(serverID int32, wall time.Time) int64 {
	return int64(uint64(wall.UnixMilli())<<24>>8 | uint64(serverID)<<56)
}
