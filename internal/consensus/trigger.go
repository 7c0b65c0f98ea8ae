package consensus

import (
	"strings"
	"sync"
	"time"
)

// snapshotTrigger decides when a snapshot is due, as ZooKeeper does: after a
// random number of commands in (SnapCount/2, SnapCount], so that the servers of
// an ensemble do not all write at once, or after as many bytes by the same rule.
type snapshotTrigger struct {
	count  int64
	size   int64 // 0 or less: never by size
	random func(n int64) int64
	due    chan struct{} // capacity 1

	mu       sync.Mutex
	commands int64 // guarded by mu; applied since the last snapshot
	bytes    int64 // guarded by mu
	atCount  int64 // guarded by mu
	atSize   int64 // guarded by mu
}

func newSnapshotTrigger(c Config) *snapshotTrigger {
	t := &snapshotTrigger{
		count:  int64(c.SnapCount),
		size:   c.SnapSizeLimitBytes,
		random: c.RandInt64N,
		due:    make(chan struct{}, 1),
	}
	t.reset()
	return t
}

// reset starts counting anew with new random thresholds.
func (t *snapshotTrigger) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands, t.bytes = 0, 0
	t.atCount = t.thresholdLocked(t.count)
	t.atSize = 0
	if t.size > 0 {
		t.atSize = t.thresholdLocked(t.size)
	}
}

// thresholdLocked draws from (limit/2, limit].
func (t *snapshotTrigger) thresholdLocked(limit int64) int64 {
	return limit/2 + 1 + t.random(limit-limit/2)
}

// add counts what was applied and signals when a snapshot is due.
func (t *snapshotTrigger) add(commands, bytes int) {
	t.mu.Lock()
	t.commands += int64(commands)
	t.bytes += int64(bytes)
	due := t.commands >= t.atCount || t.atSize > 0 && t.bytes >= t.atSize
	t.mu.Unlock()
	if due {
		select {
		case t.due <- struct{}{}:
		default:
		}
	}
}

const (
	// snapshotRetry is the pause after a snapshot that failed, for instance on a
	// full disk.
	snapshotRetry = 10 * time.Second
	// snapshotSoon is the pause after one that came while a change of the members
	// was being applied, which the library refuses.
	snapshotSoon = time.Second
)

// tooSoon tells whether the library refused a snapshot for that reason. It has
// no error of its own for it.
func tooSoon(err error) bool { return strings.HasPrefix(err.Error(), "cannot take snapshot now") }

// takeSnapshots is a goroutine: it takes a snapshot whenever one is due. Raft
// does the writing on its own snapshot goroutine, beside Apply.
func (n *Node) takeSnapshots() {
	defer n.workers.Done()
	for {
		select {
		case <-n.stop:
			return
		case <-n.trigger.due:
		}
		// Counted from before the snapshot, or what is applied meanwhile
		// would be forgotten.
		n.trigger.reset()
		if err := translate(n.raft.Snapshot().Error()); err != nil {
			select {
			case <-n.stop:
				return
			default:
			}
			pause := snapshotSoon
			switch {
			case isGivenUp(err): // what was loaded is on the disk already
				n.logger.Info("this server's own snapshot was given up for the leader's")
				continue
			case !tooSoon(err):
				pause = snapshotRetry
				n.logger.Warn("a snapshot failed and is tried again", "error", err, "in", pause)
			}
			if !n.disk.wait(pause) {
				return
			}
			select {
			case n.trigger.due <- struct{}{}:
			default:
			}
		}
	}
}
