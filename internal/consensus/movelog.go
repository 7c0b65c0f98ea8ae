package consensus

import (
	"fmt"
	"os"

	"github.com/hashicorp/raft"
)

// moveBatchBytes bounds what MoveLog copies in one append.
const moveBatchBytes = mib

// MoveLog moves the log of a stopped server to the other log store and returns
// how many entries it holds. cfg.LogStore does not matter; the stable store says
// where the log is. A crash at any moment leaves the log in one of the two,
// named by the stable store: the copy is whole and synced before its name
// changes, and the old log is removed last.
func MoveLog(cfg Config, to string) (entries uint64, err error) {
	cfg.LogStore = to
	if err := cfg.Validate(); err != nil {
		return 0, err
	}
	l := cfg.layout()
	locks, err := l.lock()
	if err != nil {
		return 0, err
	}
	n := newNode(cfg, nil, nil)
	n.locks = locks
	defer func() { _ = n.closeFiles() }()
	stable, err := openStable(l.stable(), n.disk)
	if err != nil {
		return 0, err
	}
	id := stable.identity()
	if err := stable.close(); err != nil {
		return 0, err
	}
	if id.LogStore == to || !id.Formed {
		return 0, fmt.Errorf("%w: the log of %s is in store %q already, or there is none yet", ErrLogStoreMismatch, l.root, to)
	}
	n.cfg.LogStore, n.cfg.ServerID = id.LogStore, id.ServerID
	if err := n.openFiles(); err != nil {
		return 0, err
	}
	if err := os.RemoveAll(l.log(to)); err != nil { // of a move that was cut short
		return 0, err
	}
	if entries, err = n.copyLog(cfg); err != nil {
		return 0, err
	}
	err = n.stable.update(func(i *identity) { i.LogStore, i.LogDir = to, l.log(to) })
	if err != nil {
		return 0, err
	}
	return entries, os.RemoveAll(l.log(id.LogStore))
}

// copyLog copies every entry into a new log of the store in to, and reads it back.
func (n *Node) copyLog(to Config) (entries uint64, err error) {
	open := to.openEngine(newRaftLogger(n.logger, "log"))
	copied, err := open(true, 0)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := copied.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := copied.confirm(); err != nil {
		return 0, err
	}
	first, err := n.log.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := n.log.LastIndex()
	if err != nil || last == 0 {
		return 0, err
	}
	var batch []*raft.Log
	bytes := 0
	for i := first; i <= last; i++ {
		l := new(raft.Log)
		if err := n.log.GetLog(i, l); err != nil {
			return 0, fmt.Errorf("read entry %d: %w", i, err)
		}
		batch, bytes = append(batch, l), bytes+len(l.Data)
		if bytes < moveBatchBytes && i < last {
			continue
		}
		if err := copied.StoreLogs(sealLogs(batch)); err != nil {
			return 0, fmt.Errorf("write entries up to %d: %w", i, err)
		}
		batch, bytes = nil, 0
	}
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := readEntry(copied, i, &l); err != nil {
			return 0, fmt.Errorf("read the copy back: %w", err)
		}
	}
	return last - first + 1, nil
}
