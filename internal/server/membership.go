package server

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// configured is the membership that the configuration names.
func configured(e *config.Ensemble) *proto.Membership {
	return &proto.Membership{Members: slices.Clone(e.Servers), Version: e.Version}
}

// own is this server's line of the membership in force; false where it is no
// member.
func (s *Server) own() (proto.Member, bool) {
	return s.members.Load().Get(int64(s.serverID))
}

// publishMembership makes the configured membership known, if it is not. With
// reconfig allowed only the first one comes from the configuration.
func (s *Server) publishMembership() {
	if !s.distributed {
		return
	}
	now, _ := s.membership()
	want := configured(&s.config.Ensemble)
	if s.config.Ensemble.ReconfigEnabled && now.Version != 0 || now.String() == want.String() {
		return
	}
	s.duties.propose(proto.Txn{TxnHeader: proto.TxnHeader{Type: proto.OpReconfig}, Body: state.PublishBody(*want)})
}

// membership is what /zookeeper/config says, and the change under way.
func (s *Server) membership() (now proto.Membership, r *state.Reconfig) {
	s.state.View(func(v state.View) { now, r = state.Membership(v.Tree), v.Reconfig })
	return now, r
}

// reconfiguring is the change of the membership under way, or nil.
func (s *Server) reconfiguring() (r *state.Reconfig) {
	s.state.View(func(v state.View) { r = v.Reconfig })
	return r
}

// changeIsOf is what the state says to changeAskedBy.
func (s *Server) changeIsOf(o proto.Origin) (is bool) {
	s.state.View(func(v state.View) { is = v.Reconfig.AskedBy(o) })
	return is
}

// MembershipChanged implements state.Hook.
func (k *hook) MembershipChanged() {
	for _, moved := range []chan struct{}{k.membershipMoved, k.reconfigMoved} {
		select {
		case moved <- struct{}{}:
		default:
		}
	}
}

// followMembership is a goroutine: it takes over what /zookeeper/config says.
// Without reconfig each server goes by its own configuration, as on Apache's.
func (s *Server) followMembership() {
	defer s.running.Done()
	for {
		select {
		case <-s.stopped:
			return
		case <-s.membershipMoved:
		}
		if !s.config.Ensemble.ReconfigEnabled {
			continue
		}
		now, _ := s.membership()
		if len(now.Members) == 0 {
			continue
		}
		if !s.leading.Load() {
			s.wanted.want(nil) // a leader's duty does it, with the servers that have gone and still follow
		}
		former := s.members.Swap(&now)
		_, member := now.Get(int64(s.serverID))
		if former.String() != now.String() || member && now.Version != s.config.Ensemble.Version {
			s.writeMembership(&now)
		}
		s.followClientPort(former, &now)
		s.followPeerPort(&now)
	}
}

// followPeerPort moves the peer port if this server's line has other ones, or
// another number of addresses. Who listens everywhere goes on to, and who listens
// elsewhere than the line says, by peerListenAddress, stays there. Other hosts
// under the same ports may be other names of the same machine: that is left to
// the next start.
func (s *Server) followPeerPort(now *proto.Membership) {
	own, member := now.Get(int64(s.serverID))
	if !member || s.config.Ensemble.PeerListen != "" || s.embedding.PeerListener != nil {
		return
	}
	address := peerListen(own, listensEverywhere(s.peerListen))
	if slices.Equal(portsOf(address), portsOf(s.peerListen)) {
		return
	}
	if err := s.node.MovePeerPort(address); err != nil {
		s.logger.Error("the new peer port cannot be opened; the former one stays until the next start", "address", address, "error", err)
		return
	}
	s.peerListen = address
	s.logger.Info("the other servers connect at another address now", "address", address)
}

// portsOf are the ports of what peerListen returns, sorted.
func portsOf(address string) (ports []string) {
	for one := range strings.SplitSeq(address, "|") {
		_, port, _ := net.SplitHostPort(one) // an address of ours always splits
		ports = append(ports, port)
	}
	slices.Sort(ports)
	return ports
}

// listensEverywhere tells of what peerListen returns whether it names no host.
func listensEverywhere(address string) bool {
	for one := range strings.SplitSeq(address, "|") {
		host, _, _ := net.SplitHostPort(one) // an address of ours always splits
		if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
			return false
		}
	}
	return true
}

// followClientPort moves the client port if this server's line has another one.
func (s *Server) followClientPort(former, now *proto.Membership) {
	before, was := former.Get(int64(s.serverID))
	own, member := now.Get(int64(s.serverID))
	if !member || own.ClientPort <= 0 || s.embedding.Listener != nil ||
		own.ClientPort == before.ClientPort && own.ClientHost == before.ClientHost {
		return
	}
	if at, ok := s.Addr().(*net.TCPAddr); ok && (!was || before.ClientPort < 0) && at.Port == own.ClientPort {
		return // zoo.cfg has said so already, or the line that this server had before it was removed
	}
	s.moveListener(own.ClientHost, own.ClientPort)
}

// writeMembership keeps the configuration files, from which this server starts
// next time, up to date. A server that is no member any more keeps its last
// ones: started again it waits to be added, instead of refusing its own file.
func (s *Server) writeMembership(m *proto.Membership) {
	if _, member := m.Get(int64(s.serverID)); !member {
		s.logger.Warn("this server is no member of the ensemble any more", "version", strconv.FormatInt(m.Version, 16))
		return
	}
	if s.config.File == "" {
		return
	}
	if err := config.WriteMembership(s.config.File, *m, int64(s.serverID)); err != nil {
		s.logger.Error("the membership could not be written into the configuration files; "+
			"it is in the data, and this server goes by that", "error", err)
	}
}

// wanted is the membership that consensus was last told to move to. It differs
// from what /zookeeper/config says while a change is under way, and keeps
// servers that have been removed as long as they follow: like Apache's they
// stay in touch, without a vote, until they are stopped.
type wanted struct {
	server *Server
	mu     sync.Mutex
	last   []consensus.Peer // guarded by mu
}

// want tells consensus what is wanted now. Former are servers beside the
// members that still follow.
func (w *wanted) want(former []consensus.Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, r := w.server.membership()
	members := now.Members
	if r != nil && r.Accepted {
		members = r.Next.Members
		for _, m := range now.Members {
			if _, stays := r.Next.Get(m.ID); !stays {
				former = append(former, consensus.Peer{ID: int(m.ID), Address: m.QuorumAddress()})
			}
		}
	}
	var peers []consensus.Peer
	for _, m := range members {
		peers = append(peers, consensus.Peer{ID: int(m.ID), Voter: !m.Observer, Address: m.QuorumAddress()})
	}
	for _, p := range former {
		if !slices.ContainsFunc(peers, func(q consensus.Peer) bool { return q.ID == p.ID }) {
			peers = append(peers, consensus.Peer{ID: p.ID, Address: p.Address})
		}
	}
	if len(members) == 0 || slices.Equal(peers, w.last) {
		return
	}
	if err := w.server.node.SetMembership(peers); err != nil {
		w.server.logger.Warn("the membership cannot be had", "error", err)
		return
	}
	w.last = peers
}
