package server

import (
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/state"
)

// logMetrics are Apache's metrics of its log stage, kept from what consensus
// observes. One log entry stands for one of Apache's batches.
type logMetrics struct {
	queued        *metrics.Counter
	queueSize     *metrics.Summary
	queueTime     *metrics.AdvancedSummary
	batchSize     *metrics.Summary
	flushTime     *metrics.AdvancedSummary
	queueAndFlush *metrics.AdvancedSummary
	fsyncTime     *metrics.Summary
	snapshotTime  *metrics.Summary
	dbInitTime    *metrics.Summary
	snapLoadTime  *metrics.Summary
	txnsLoaded    *metrics.Summary
	txnsLoadTime  *metrics.Summary
	pauseTime     *metrics.AdvancedSummary

	// loadMillis and sendMillis are the last loaded and the last sent snapshot's time,
	// -1 for none.
	loadMillis, sendMillis atomic.Int64

	started atomic.Bool // what is restored from now on is no part of the start
}

func newLogMetrics(r *metrics.Registry) *logMetrics {
	m := &logMetrics{
		queued:        r.Counter("sync_processor_request_queued", "Writes queued for the log."),
		queueSize:     r.Summary("sync_processor_queue_size", "Writes that still wait for the log when an entry is packed."),
		queueTime:     r.AdvancedSummary("sync_processor_queue_time_ms", "Milliseconds that the oldest write of an entry waited for the log."),
		batchSize:     r.Summary("sync_processor_batch_size", "Writes in an entry, which is synced as a whole."),
		flushTime:     r.AdvancedSummary("sync_processor_queue_flush_time_ms", "Milliseconds to append entries to the log and sync it."),
		queueAndFlush: r.AdvancedSummary("sync_processor_queue_and_flush_time_ms", "Milliseconds from queueing the oldest write of an entry to its apply."),
		fsyncTime:     r.Summary("fsynctime", "Milliseconds to append entries to the log and sync it."),
		snapshotTime:  r.Summary("snapshottime", "Milliseconds to write a snapshot."),
		dbInitTime:    r.Summary("dbinittime", "Milliseconds from the start to serving: snapshot and log are loaded."),
		snapLoadTime:  r.Summary("startup_snap_load_time", "Milliseconds to load the snapshot at start."),
		txnsLoaded:    r.Summary("startup_txns_loaded", "Log entries applied at start."),
		txnsLoadTime:  r.Summary("startup_txns_load_time", "Milliseconds from the start to serving, without the snapshot's."),
		pauseTime:     r.AdvancedSummary("jvm_pause_time_ms", "Milliseconds by which a tick of the expirer came late, from half a tick on."),
	}
	for _, last := range []struct {
		millis     *atomic.Int64
		name, help string
	}{
		{&m.loadMillis, "snapshot_load_time_ms", "Milliseconds that it took to load the last snapshot, at the start or from the leader; -1 when there was none."},
		{&m.sendMillis, "snapshot_send_time_ms", "Milliseconds from when this leader began to send its last snapshot until the other server had loaded it; -1 when there was none."},
	} {
		last.millis.Store(-1)
		r.Gauge(last.name, last.help, func() metrics.Value { return metrics.Int(last.millis.Load()) })
	}
	return m
}

// showLogAge shows how far back the log reaches. A server that was away for longer
// is sent a snapshot, and needs what is written until it has loaded it: that takes
// snapshot_send_time_ms.
func (s *Server) showLogAge() {
	s.registry.Gauge("oldest_log_entry_age_ms", "Milliseconds since the oldest entry of the log was made, by its leader's clock.", func() metrics.Value {
		select {
		case <-s.opened:
		default:
			return metrics.Absent()
		}
		since := s.node.Status().FirstSince
		if since.IsZero() {
			return metrics.Absent()
		}
		return metrics.Int(max(s.clock.Wall().Sub(since), 0).Milliseconds())
	})
}

// observer hands the metrics, and the warning of slow syncs, to consensus.
func (m *logMetrics) observer(slow *slowSyncs, e *ensembleMetrics) consensus.Observer {
	return consensus.Observer{
		Queued: func() {
			m.queued.Inc()
			if e.member {
				e.proposals.Inc()
			}
		},
		Packed: func(commands, waiting int, waited time.Duration) {
			m.batchSize.Observe(int64(commands))
			m.queueSize.Observe(int64(waiting))
			m.queueTime.Observe(waited.Milliseconds())
		},
		Appended: func(took time.Duration) {
			m.flushTime.Observe(took.Milliseconds())
			m.fsyncTime.Observe(took.Milliseconds())
			slow.appended(took)
		},
		Settled: func(took time.Duration) {
			m.queueAndFlush.Observe(took.Milliseconds())
			if e.member {
				e.quorumAck.Observe(took.Milliseconds())
			}
		},
		SnapshotTaken: func(took time.Duration) { m.snapshotTime.Observe(took.Milliseconds()) },
		SnapshotSent: func(took time.Duration) {
			m.sendMillis.Store(took.Milliseconds())
			e.snapshots.Inc()
		},
		Restored: func(took time.Duration) {
			m.loadMillis.Store(took.Milliseconds())
			if !m.started.Load() {
				m.snapLoadTime.Observe(took.Milliseconds())
			}
		},
	}
}

// startDone notes the end of the start, which took that long and applied that
// many entries from the log.
func (m *logMetrics) startDone(took time.Duration, entries uint64) {
	m.started.Store(true)
	m.dbInitTime.Observe(took.Milliseconds())
	m.txnsLoaded.Observe(int64(entries))
	m.txnsLoadTime.Observe(took.Milliseconds() - m.snapLoadTime.Value().Sum)
}

// machine is the state as consensus sees it: while this server leads, the sizes
// of the commands are counted, as Apache's leader counts its proposals'.
type machine struct {
	*state.Machine
	server *Server
}

// Apply implements consensus.StateMachine.
func (m machine) Apply(index, term uint64, timeMillis int64, switches uint32, commands [][]byte) error {
	s := m.server
	if s.logMetrics == nil || !s.logMetrics.started.Load() { // a recovery, or a start, reads the log
		return newer(m.Machine.Apply(index, term, timeMillis, switches, commands))
	}
	if s.distributed {
		leading := s.leading.Load()
		for _, c := range commands {
			if leading {
				s.metrics.proposals.Observe(int64(len(c)))
				s.metrics.lastProposal.Store(int64(len(c)))
			}
		}
		own, _ := s.own()
		s.ensembleMetrics.toApply(int64(len(commands)), leading, own.Observer, s.clock.Wall().UnixMilli()-timeMillis)
	}
	err := newer(m.Machine.Apply(index, term, timeMillis, switches, commands))
	if ago := s.clock.Wall().UnixMilli() - timeMillis; ago >= 0 {
		s.ensembleMetrics.propagation.Observe(ago)
	}
	return err
}
