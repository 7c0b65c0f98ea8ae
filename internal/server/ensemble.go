package server

import (
	"net"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
)

// ownMember is this server's line of the configuration; ok is false for a
// server alone.
func ownMember(c *config.Config) (m config.Member, ok bool) {
	if !c.Ensemble.Distributed() {
		return m, false
	}
	for _, m := range c.Ensemble.Servers {
		if m.ID == c.Ensemble.MyID {
			return m, true
		}
	}
	return m, false
}

// peers fills in what consensus needs to know of the other servers.
func (s *Server) peers(c *consensus.Config) {
	own, ok := ownMember(s.config)
	if !ok {
		return
	}
	e := &s.config.Ensemble
	c.ServerID = int(own.ID)
	c.MembershipIsSet = e.ReconfigEnabled
	for _, m := range e.Servers {
		c.Peers = append(c.Peers, consensus.Peer{
			ID: int(m.ID), Voter: !m.Observer, Address: m.QuorumAddress(),
		})
	}
	c.PeerListen = peerListen(own, e.ListenOnAllIPs)
	if e.PeerListen != "" {
		c.PeerListen = e.PeerListen
	}
	s.peerListen = c.PeerListen
	c.ElectionTimeout = electionTimeout(s.config.Session.TickTime)
	c.StreamTimeout = max(s.patience(), 100*time.Millisecond)
	// Each server bounds what is on its way from it (writeBytes). What comes all the
	// same must not meet a full queue: the leader could only break the stream by which
	// it came.
	c.MaxQueueBytes, c.MaxQueueCommands = 1<<30, 1<<20
	c.DiskStallLimit = max(s.patience()/2, time.Second)
}

// peerListen is where a server listens for the others: at each address of its
// line, or everywhere at the ports of these.
func peerListen(own proto.Member, everywhere bool) string {
	if !everywhere {
		return own.QuorumAddress()
	}
	anywhere := proto.Member{}
	for _, port := range own.Ports(func(a proto.PeerAddress) int { return a.QuorumPort }) {
		anywhere.Addresses = append(anywhere.Addresses, proto.PeerAddress{QuorumPort: port})
	}
	return anywhere.QuorumAddress()
}

// electionTimeout is a tick, so that an ensemble with a longer one sends fewer
// heartbeats, from 1 s, below which a busy machine costs leaders their lease, to
// 2 s: a leader that is stopped or cut off is replaced in one to two of these.
func electionTimeout(tick time.Duration) time.Duration {
	return min(max(tick, time.Second), 2*time.Second)
}

// PeerAddr is where the other servers connect; nil for a server alone.
func (s *Server) PeerAddr() net.Addr { return s.node.PeerAddr() }

// patience is how long a server may be without a leader, or behind it, before
// its clients are dropped.
func (s *Server) patience() time.Duration {
	return time.Duration(s.config.Ensemble.SyncLimit) * s.config.Session.TickTime
}

// closeUnsettled closes the connections that have a write, or a session, on its
// way. One that is held back until there is a leader has none.
//
// They are closed by goroutines of their own, and in between one of them may
// propose its next write over the next way. Apply then finds that number out of
// turn, so nothing of the connection takes effect behind a write that was lost.
func (s *Server) closeUnsettled() {
	for _, c := range s.conns.all() {
		waiting := c.queue.length()
		if c.SessionID() == 0 {
			waiting = 1
		}
		if c.held.Load() {
			waiting--
		}
		if waiting == 1 && c.reconfiguring.Load() {
			if s.changeAskedBy(c.origin()) {
				continue
			}
		}
		if waiting > 0 {
			go c.close(reasonFateUnknown, "the way to the leader broke")
		}
	}
}

// noLeaderPause is how long a connection waits before it offers a command again
// that found no leader.
const noLeaderPause = 10 * time.Millisecond

// awaitWay holds a connection back whose command found no leader: nothing has
// been sent, so it may wait for the next one. It returns false when the
// connection is closed, at the latest by the serving gate.
func (s *Server) awaitWay(c *conn) bool {
	if !s.distributed || !s.serving.Load() {
		return false
	}
	c.held.Store(true)
	ok := s.pause(noLeaderPause) && !c.Gone()
	c.held.Store(false)
	return ok
}
