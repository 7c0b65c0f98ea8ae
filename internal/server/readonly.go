package server

import (
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// Read-only mode (readonlymode.enabled). A server of an ensemble that is
// without a leader serves clients which said that they can do with a read-only
// server: reads from what it has, nothing else. It begins behind the serving
// gate, and ends for all of them at once when there is a leader again: the
// clients look for a server that takes writes by themselves.

// readOnlyPause is the least time without a leader before read-only mode
// begins. Source: Apache's, which waits for the longer of it and a tick.
const readOnlyPause = 2 * time.Second

// awaitReadOnly begins read-only mode after the pause, unless clients are
// served by then.
func (s *Server) awaitReadOnly() {
	if !s.distributed || !s.config.Ensemble.ReadOnlyMode {
		return
	}
	time.AfterFunc(max(readOnlyPause, s.config.Session.TickTime), func() {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		select {
		case <-s.stopped:
			return
		default:
		}
		if !s.serving.Load() && !s.readOnly.Swap(true) {
			s.logger.Warn("there is no leader: clients that can do with a read-only server are served")
		}
	})
}

// endReadOnly requires the gate's lock.
func (s *Server) endReadOnly() {
	if !s.readOnly.Swap(false) {
		return
	}
	s.logger.Info("there is a leader again: read-only mode ends")
	for _, c := range s.conns.all() {
		go c.close(reasonReadOnlyOver, "")
	}
}

// establishReadOnly answers a connect request in read-only mode. It returns
// false if the connection is done with.
func (c *conn) establishReadOnly(req *proto.ConnectRequest, timeoutMillis int32) bool {
	s := c.server
	switch {
	case req.SessionID == 0 && !s.local.enabled():
		// A session of the usual kind is a write. Apache answers with a reply
		// header where a connect answer belongs, and so do we.
		frame := proto.AppendReplyHeader(proto.BeginFrame(nil), proto.ReplyHeader{Zxid: s.state.Zxid(), Err: proto.ErrNotReadOnly})
		c.send(proto.EndFrame(frame, 0))
		c.out.flush()
		c.closeBehind(reasonNotServing)
		return false
	case req.SessionID == 0 || s.local.has(req.SessionID):
		return s.local.establish(c, req, timeoutMillis)
	case s.globalSession(req.SessionID):
		c.close(reasonNotServing, "a session of the ensemble, in read-only mode")
		return false
	}
	c.refuseSession()
	return false
}

// refuseWrite answers what is no read, in read-only mode.
func (c *conn) refuseWrite(h proto.RequestHeader, now time.Duration) bool {
	return c.answerLocally(h, now, localReply{
		header: proto.ReplyHeader{Xid: h.Xid, Zxid: c.server.state.Zxid(), Err: proto.ErrNotReadOnly}})
}

// globalSession tells whether the ensemble knows a session.
func (s *Server) globalSession(id proto.SessionID) (known bool) {
	s.state.View(func(v state.View) { known = v.Table.Get(id) != nil })
	return known
}
