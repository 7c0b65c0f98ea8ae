package server

import (
	"log/slog"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// slowSyncsQuiet is how long after a warning further slow syncs are only
// counted: a disk that is slow is slow at every write. Source: our choice.
const slowSyncsQuiet = 10 * time.Second

// slowSyncs warns of appends to the log that took longer than the operator's
// threshold (fsync.warningthresholdms). Raft appends one after the other, so
// its fields need no lock.
type slowSyncs struct {
	threshold time.Duration
	logger    *slog.Logger
	now       func() time.Duration // monotonic
	exceeded  *metrics.Counter

	warned time.Duration // when the last warning was given; before the first: never
	unsaid int           // slow ones since
	worst  time.Duration // the slowest of them
}

func newSlowSyncs(r *metrics.Registry, logger *slog.Logger, now func() time.Duration, threshold time.Duration) *slowSyncs {
	return &slowSyncs{
		threshold: threshold, logger: logger, now: now, warned: now() - slowSyncsQuiet,
		exceeded: r.Counter("fsync_threshold_exceed_count", "Appends to the log, with their sync, that took longer than fsync.warningthresholdms."),
	}
}

// appended is told of each append and its sync.
func (s *slowSyncs) appended(took time.Duration) {
	if took <= s.threshold {
		return
	}
	s.exceeded.Inc()
	if now := s.now(); now-s.warned < slowSyncsQuiet {
		s.unsaid, s.worst = s.unsaid+1, max(s.worst, took)
		return
	}
	attrs := []any{"took", took, "threshold", s.threshold}
	if s.unsaid > 0 {
		attrs = append(attrs, "slow_ones_before", s.unsaid, "slowest_before", s.worst)
	}
	s.logger.Warn("a sync of the log was slow, and every write waits for one: look at the disk of dataLogDir", attrs...)
	s.warned, s.unsaid, s.worst = s.now(), 0, 0
}
