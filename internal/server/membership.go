package server

import (
	"slices"

	"github.com/zooraft/zooraft/internal/config"
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
	var now proto.Membership
	s.state.View(func(v state.View) { now = state.Membership(v.Tree) })
	want := configured(&s.config.Ensemble)
	if s.config.Ensemble.ReconfigEnabled && now.Version != 0 || now.String() == want.String() {
		return
	}
	s.duties.propose(proto.Txn{TxnHeader: proto.TxnHeader{Type: proto.OpReconfig}, Body: state.PublishBody(*want)})
}

// MembershipChanged implements state.Hook.
func (k *hook) MembershipChanged() {
	select {
	case k.membershipMoved <- struct{}{}:
	default:
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
		var now proto.Membership
		s.state.View(func(v state.View) { now = state.Membership(v.Tree) })
		if len(now.Members) > 0 {
			s.members.Store(&now)
		}
	}
}
