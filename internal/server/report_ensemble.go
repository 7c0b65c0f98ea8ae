package server

import (
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
)

// isOpen tells whether node is set. Reports are asked for before it is.
func (r *report) isOpen() bool {
	select {
	case <-r.opened:
		return true
	default:
		return false
	}
}

// mode is this server's place as srvr prints it.
func (r *report) mode() string {
	own, member := (*Server)(r).own()
	switch {
	case !r.distributed:
		return admin.ModeStandalone
	case r.readOnly.Load():
		return admin.ModeReadOnly
	case r.leaderID.Load() == int64(r.serverID) && r.isOpen() && !r.node.GivesWay():
		return admin.ModeLeader
	case member && own.Observer:
		return admin.ModeObserver
	}
	return admin.ModeFollower
}

// peerState is mntr's peer_state, with Apache's names of the phases.
func (r *report) peerState() string {
	switch {
	case !r.distributed:
		return ""
	case r.leaderID.Load() < 0:
		return "looking"
	case r.mode() == admin.ModeLeader:
		return "leading - broadcast"
	case r.mode() == admin.ModeObserver:
		return "observing - broadcast"
	}
	return "following - broadcast"
}

// ensembleStats fills in what a server of an ensemble tells in addition.
func (r *report) ensembleStats(st *admin.Stats) {
	if !r.distributed {
		return
	}
	members := r.members.Load()
	st.QuorumSize, st.ReadOnly, st.LocalSessions = members.Voters(), r.readOnly.Load(), int64(r.local.count())
	switch st.Mode {
	case admin.ModeObserver:
		if leader := r.leaderID.Load(); leader >= 0 {
			st.ObserverMaster = &leader
		}
	case admin.ModeLeader:
		l := &admin.LeaderStats{UptimeMilliseconds: (r.clock.Monotonic() - time.Duration(r.leadingSince.Load())).Milliseconds()}
		if r.isOpen() {
			countLearners(l, members, r.node.AttachedServers())
		}
		st.Leader = l
	}
}

// countLearners sorts the servers that follow. Who is no member (any more)
// counts among the followers too, as on Apache's server.
func countLearners(l *admin.LeaderStats, members *proto.Membership, attached []int) {
	l.Learners = len(attached)
	for _, id := range attached {
		m, member := members.Get(int64(id))
		switch {
		case member && m.Observer:
			l.SyncedObservers++
			continue
		case !member:
			l.SyncedNonVoting++
		}
		l.SyncedFollowers++
	}
}

func (r *report) ensembleConf() *admin.EnsembleConf {
	e := &r.config.Ensemble
	conf := &admin.EnsembleConf{
		InitLimit: e.InitLimit, SyncLimit: e.SyncLimit, ElectionAlg: 3, Membership: r.members.Load().String(),
		ReadOnly: r.readOnly.Load(),
	}
	own, ok := (*Server)(r).own()
	if !ok { // a former member: it still is where its configuration says
		own, _ = ownMember(r.config)
	}
	if own.Observer {
		conf.PeerType = 1
	}
	conf.ElectionPorts = own.Ports(func(a proto.PeerAddress) int { return a.ElectionPort })
	conf.QuorumPorts = own.Ports(func(a proto.PeerAddress) int { return a.QuorumPort })
	return conf
}
