package server

import (
	"log/slog"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// shownBy are the metrics that are not zero, by their keys without the prefix: a
// counter's value, of a summary the sum.
func shownBy(r *metrics.Registry) map[string]int64 {
	shown := map[string]int64{}
	for _, f := range r.Gather() {
		for _, s := range f.Samples {
			if n := s.Value.Int64() + s.Summary.Sum; n != 0 {
				shown[f.Name] = n
			}
		}
	}
	return shown
}

// What a member of an ensemble counts, as Apache's does; a server alone counts none
// of it.
func TestAMemberOfAnEnsembleCountsElectionsSyncsAndProposals(t *testing.T) {
	for _, row := range []struct {
		name   string
		happen func(m *ensembleMetrics, wait func(seconds int))
		want   map[string]int64 // but looking_count of the start
	}{
		{"a start", func(*ensembleMetrics, func(int)) {}, map[string]int64{}},
		{"a leader is found", func(m *ensembleMetrics, wait func(int)) {
			wait(2)
			m.leaderChanged(1)
			m.leaderChanged(1)
		}, map[string]int64{"election_time": 2000}},
		{"it is lost, and another one found", func(m *ensembleMetrics, wait func(int)) {
			m.leaderChanged(1)
			wait(1)
			m.leaderChanged(-1)
			m.leaderChanged(-1)
			wait(3)
			m.leaderChanged(2)
		}, map[string]int64{"looking_count": 1, "election_time": 3000}},
		{"one leader follows another", func(m *ensembleMetrics, wait func(int)) {
			m.leaderChanged(1)
			wait(1)
			m.leaderChanged(2)
		}, map[string]int64{"looking_count": 1}},
		{"a follower catches up", func(m *ensembleMetrics, wait func(int)) {
			m.leaderChanged(1)
			wait(4)
			m.route(true, false)
		}, map[string]int64{"follower_sync_time": 4000}},
		{"an observer catches up, loses its way, and catches up", func(m *ensembleMetrics, wait func(int)) {
			m.leaderChanged(1)
			wait(4)
			m.route(true, true)
			wait(60)
			m.route(false, true)
			wait(1)
			m.route(true, true)
		}, map[string]int64{"observer_sync_time": 5000}},
		{"it follows, then nobody leads, then it does", func(m *ensembleMetrics, wait func(int)) {
			wait(1)
			m.available(true, false)
			wait(60)
			m.available(false, false)
			wait(5)
			m.available(true, true)
		}, map[string]int64{"unavailable_time": 6000, "leader_unavailable_time": 5000}},
		{"a leader has entries applied", func(m *ensembleMetrics, _ func(int)) { m.toApply(3, true, false, 7) },
			map[string]int64{"commit_count": 3}},
		{"a follower does", func(m *ensembleMetrics, _ func(int)) { m.toApply(3, false, false, 7) },
			map[string]int64{"learner_commit_received_count": 3, "learner_proposal_received_count": 3, "commit_propagation_latency": 7}},
		{"an observer does, and its clock is behind", func(m *ensembleMetrics, _ func(int)) { m.toApply(3, false, true, -7) },
			map[string]int64{"learner_commit_received_count": 3}},
		{"a leader takes a write, applies it and sends a snapshot", func(m *ensembleMetrics, _ func(int)) {
			o := newLogMetrics(metrics.NewRegistry()).observer(&slowSyncs{}, m)
			o.Queued()
			o.Settled(9 * time.Millisecond)
			o.SnapshotSent(time.Second)
		}, map[string]int64{"proposal_count": 1, "quorum_ack_latency": 9, "snap_count": 1}},
	} {
		r, now := metrics.NewRegistry(), time.Duration(0)
		m := newEnsembleMetrics(r, func() time.Duration { return now }, true)
		row.happen(m, func(seconds int) { now += time.Duration(seconds) * time.Second })
		got := shownBy(r)
		row.want["looking_count"]++
		for name := range row.want {
			if got[name] != row.want[name] {
				t.Errorf("%s: %s is %d, want %d", row.name, name, got[name], row.want[name])
			}
		}
		for name := range got {
			if row.want[name] == 0 {
				t.Errorf("%s: %s is %d", row.name, name, got[name])
			}
		}
	}
	r := metrics.NewRegistry()
	alone := newEnsembleMetrics(r, func() time.Duration { return time.Second }, false)
	alone.leaderChanged(1)
	alone.leaderChanged(-1)
	alone.available(true, true)
	o := newLogMetrics(metrics.NewRegistry()).observer(newSlowSyncs(metrics.NewRegistry(), slog.New(slog.DiscardHandler), alone.now, 0), alone)
	o.Queued()
	o.Settled(time.Second)
	if got := shownBy(r); len(got) > 0 {
		t.Errorf("a server alone counts %v", got)
	}
}
