package server

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
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
	for _, m := range e.Servers {
		c.Peers = append(c.Peers, consensus.Peer{
			ID: int(m.ID), Voter: !m.Observer,
			Address: net.JoinHostPort(m.Addresses[0].Host, strconv.Itoa(m.Addresses[0].QuorumPort)),
		})
	}
	host := own.Addresses[0].Host
	if e.ListenOnAllIPs {
		host = ""
	}
	c.PeerListen = net.JoinHostPort(host, strconv.Itoa(own.Addresses[0].QuorumPort))
	if e.PeerListen != "" {
		c.PeerListen = e.PeerListen
	}
	c.StreamTimeout = max(s.patience(), 100*time.Millisecond)
}

// patience is how long a server may be without a leader, or behind it, before
// its clients are dropped.
func (s *Server) patience() time.Duration {
	return time.Duration(s.config.Ensemble.SyncLimit) * s.config.Session.TickTime
}

// membership is the text of /zookeeper/config.
func membership(e *config.Ensemble) string {
	var b strings.Builder
	for _, m := range e.Servers {
		b.WriteString("server." + strconv.FormatInt(m.ID, 10) + "=" + m.String() + "\n")
	}
	b.WriteString("version=" + strconv.FormatInt(e.Version, 16))
	return b.String()
}

// publishMembership proposes the membership text if it is not what
// /zookeeper/config says.
func (s *Server) publishMembership() {
	if !s.distributed {
		return
	}
	want := membership(&s.config.Ensemble)
	same := false
	s.state.View(func(v state.View) { same = string(v.Tree.ConfigText()) == want })
	if same {
		return
	}
	s.duties.propose(proto.Txn{TxnHeader: proto.TxnHeader{Type: proto.OpReconfig}, Body: []byte(want)})
}

// reportHeard is a goroutine of an ensemble's server: twice a tick it tells
// the leader which of the sessions connected here it has heard since, and how
// long ago. Requests of any kind count.
func (s *Server) reportHeard() {
	defer s.running.Done()
	last := time.Duration(-1)
	for s.pause(s.config.Session.TickTime / 2) {
		now := s.clock.Monotonic()
		var report []byte
		for _, c := range s.conns.all() {
			heard := time.Duration(c.heard.Load())
			if id := c.SessionID(); id != 0 && heard > last && !c.Gone() {
				report = proto.AppendLong(proto.AppendLong(report, int64(id)), int64(now-heard))
			}
		}
		last = now
		if len(report) > 0 {
			s.node.Send(report)
		}
	}
}

// takeReport is the leader's side of reportHeard.
func (s *Server) takeReport(report []byte) {
	now := s.clock.Monotonic()
	d := proto.NewDecoder(report)
	for len(d.Rest()) >= 16 {
		id, ago := proto.SessionID(d.Long()), time.Duration(d.Long())
		s.tracker.Touch(id, now-max(ago, 0))
	}
}

// closeUnsettled closes the connections that have a write on its way.
func (s *Server) closeUnsettled() {
	for _, c := range s.conns.all() {
		if c.queue.length() > 0 || c.SessionID() == 0 {
			go c.close(reasonFateUnknown, "the way to the leader broke")
		}
	}
}
