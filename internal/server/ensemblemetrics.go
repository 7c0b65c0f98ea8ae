package server

import (
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// ensembleMetrics are Apache's metrics of a member of an ensemble. A server alone
// shows them, but for propagation, with 0, as Apache's does.
type ensembleMetrics struct {
	member bool // of an ensemble
	now    func() time.Duration

	looking           *metrics.Counter
	electionTime      *metrics.Summary
	unavailable       *metrics.Summary
	leaderUnavailable *metrics.Summary
	proposals         *metrics.Counter
	commits           *metrics.Counter
	quorumAck         *metrics.AdvancedSummary
	proposalsReceived *metrics.Counter
	commitsReceived   *metrics.Counter
	commitPropagation *metrics.AdvancedSummary
	propagation       *metrics.AdvancedSummary
	followerSync      *metrics.Summary
	observerSync      *metrics.Summary
	snapshots         *metrics.Counter

	leader    int           // leaderChanged's own; −1 while none is known
	looksFrom time.Duration // leaderChanged's own; when this server last began to look
	wayless   atomic.Int64  // monotonic ns: since when this server has a leader, and no way to it
	away      atomic.Int64  // monotonic ns: since when the gate has neither leadership nor a way
}

func newEnsembleMetrics(r *metrics.Registry, now func() time.Duration, member bool) *ensembleMetrics {
	m := &ensembleMetrics{
		member: member, now: now, leader: -1,
		looking:           r.Counter("looking_count", "Times that this server knew of no leader any more, its start included."),
		electionTime:      r.Summary("election_time", "Milliseconds from when this server knew of no leader until it knew of one."),
		unavailable:       r.Summary("unavailable_time", "Milliseconds in which this server neither led nor had caught up with a leader."),
		leaderUnavailable: r.Summary("leader_unavailable_time", "Of these, when it led afterwards."),
		proposals:         r.Counter("proposal_count", "Writes that this leader has taken for the log."),
		commits:           r.Counter("commit_count", "Writes applied while this server leads."),
		quorumAck:         r.AdvancedSummary("quorum_ack_latency", "Milliseconds from queueing the oldest write of an entry at the leader to its apply."),
		proposalsReceived: r.Counter("learner_proposal_received_count", "Writes of a leader applied by a follower."),
		commitsReceived:   r.Counter("learner_commit_received_count", "Writes of a leader applied by a follower or observer."),
		commitPropagation: r.AdvancedSummary("commit_propagation_latency", "Milliseconds from the leader's stamp of an entry until a follower or observer has it to apply."),
		propagation:       r.AdvancedSummary("propagation_latency", "Milliseconds from the leader's stamp of an entry until it is applied here."),
		followerSync:      r.Summary("follower_sync_time", "Milliseconds from when a follower knew of a leader, or lost its way to it, until it had caught up with it."),
		observerSync:      r.Summary("observer_sync_time", "Milliseconds from when an observer knew of a leader, or lost its way to it, until it had caught up with it."),
		snapshots:         r.Counter("snap_count", "Snapshots that other servers have received from this leader and loaded."),
	}
	if member { // it looks for a leader from now on
		m.looksFrom = now()
		m.away.Store(int64(m.looksFrom))
		m.looking.Inc()
	}
	return m
}

// leaderChanged is told what consensus.Events.LeaderChanged is. Of a leader that
// follows another this server knows only that it has found it.
func (m *ensembleMetrics) leaderChanged(serverID int) {
	if !m.member || serverID == m.leader {
		return
	}
	now := m.now()
	if m.leader >= 0 {
		m.looking.Inc()
		m.looksFrom = now
	}
	if m.leader = serverID; serverID >= 0 {
		m.electionTime.Observe((now - m.looksFrom).Milliseconds())
		m.wayless.Store(int64(now))
	}
}

// route is told what consensus.Events.Route is.
func (m *ensembleMetrics) route(open, observer bool) {
	now := int64(m.now())
	if !open {
		m.wayless.Store(now)
		return
	}
	took := time.Duration(now - m.wayless.Load()).Milliseconds()
	if observer {
		m.observerSync.Observe(took)
	} else {
		m.followerSync.Observe(took)
	}
}

// available is told when the gate has leadership or a way to the leader again, or
// neither any more. The gate's lock is held.
func (m *ensembleMetrics) available(on, leading bool) {
	switch {
	case !m.member:
	case !on:
		m.away.Store(int64(m.now()))
	default:
		took := (m.now() - time.Duration(m.away.Load())).Milliseconds()
		m.unavailable.Observe(took)
		if leading {
			m.leaderUnavailable.Observe(took)
		}
	}
}

// toApply counts the writes of an entry that is applied next, which its leader has
// stamped that many milliseconds ago.
func (m *ensembleMetrics) toApply(writes int64, leading, observer bool, ago int64) {
	if leading {
		m.commits.Add(writes)
		return
	}
	m.commitsReceived.Add(writes)
	if !observer {
		m.proposalsReceived.Add(writes)
	}
	if ago >= 0 { // else the clocks differ
		m.commitPropagation.Observe(ago)
	}
}
