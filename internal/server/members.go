package server

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/consensus"
)

var _ admin.EnsembleServer = (*report)(nil)

// Ensemble implements admin.EnsembleServer.
func (r *report) Ensemble() (s admin.EnsembleStatus, err error) {
	if err := r.inEnsemble(); err != nil {
		return s, err
	}
	status, m := r.node.Status(), r.node.Membership()
	s = admin.EnsembleStatus{
		Server: int64(r.serverID), Leader: int64(status.LeaderID), Cluster: status.ClusterID,
		Settled: m.Settled, WaitsFor: m.WaitsFor, Warning: status.Differs, Reason: status.NotReady,
		CommandLevel: int(r.state.CommandLevel()),
	}
	if status.Leading {
		if all, waitsFor := r.node.CommonLevel(); all < int(r.state.Supports()) {
			s.LevelWaitsFor = waitsFor
		}
	}
	attached := r.node.AttachedServers()
	for _, p := range slices.Concat(m.Current, m.Wanted) {
		if slices.ContainsFunc(s.Members, func(e admin.EnsembleMember) bool { return e.ID == int64(p.ID) }) {
			continue
		}
		s.Members = append(s.Members, admin.EnsembleMember{
			ID: int64(p.ID), Address: p.Address, Role: roleIn(m.Current, p.ID), Wanted: roleIn(m.Wanted, p.ID),
			Follows: slices.Contains(attached, p.ID),
		})
	}
	return s, nil
}

func roleIn(peers []consensus.Peer, id int) string {
	for _, p := range peers {
		switch {
		case p.ID == id && p.Voter:
			return "participant"
		case p.ID == id:
			return "observer"
		}
	}
	return "none"
}

func (r *report) inEnsemble() error {
	if !r.distributed {
		return admin.ErrNoEnsemble
	}
	if !r.isOpen() {
		return errors.New("the data are being loaded")
	}
	return nil
}

// TransferLeadership implements admin.EnsembleServer.
func (r *report) TransferLeadership(to int64) error {
	if err := r.inEnsemble(); err != nil {
		return err
	}
	if to < 0 {
		return r.nameLeader(r.node.TransferLeadership())
	}
	return r.nameLeader(r.node.TransferLeadershipTo(int(to)))
}

// RemoveMember implements admin.EnsembleServer.
func (r *report) RemoveMember(id int64) error {
	if err := r.inEnsemble(); err != nil {
		return err
	}
	return r.nameLeader(r.node.RemoveDead(int(id)))
}

// nameLeader says who can do what only a leader can.
func (r *report) nameLeader(err error) error {
	if !errors.Is(err, consensus.ErrNotLeader) {
		return err
	}
	if leader := r.node.Status().LeaderID; leader >= 0 && leader != int(r.serverID) {
		return fmt.Errorf("only the leader can do this: run it where server %d is", leader)
	}
	return fmt.Errorf("only a leader can do this: %w", err)
}
