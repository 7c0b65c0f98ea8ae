package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// fsm stands between Raft and the StateMachine. Apply equals ApplyBatch of one:
// RecoverCluster of the library calls the former, everything else the latter.
// All methods run on Raft's fsm goroutine, or in Open before it starts.
type fsm struct {
	sm     StateMachine
	broken func(error)               // stops the node; may not block
	count  func(commands, bytes int) // what was applied, for the snapshot trigger
	// applied is told of each entry that holds commands.
	applied func(index, term uint64)

	// synced returns once the own log is synced up to index (beside.go), or why it
	// never will be.
	synced func(index uint64) error

	observe *Observer // may be nil
	logger  *slog.Logger
	stop    <-chan struct{} // ends a snapshot that is being read

	// refused is set when an entry was not understood: nothing later may be
	// applied, and no snapshot may cover it.
	refused atomic.Bool
	// done is the index of the last entry that is finished here. The library's
	// AppliedIndex runs ahead of it: it counts what has been handed over.
	done atomic.Uint64
	// restoring is the index of the snapshot opened last.
	restoring func() uint64
	// spoiled tells that the snapshot opened last could not be restored.
	spoiled func(error)
	// own is the last state that was captured for a snapshot.
	own *frozen
}

var _ raft.BatchingFSM = (*fsm)(nil)

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. It exists although nothing is gained
// by batches here: without it the library does not move the snapshot's index
// over configuration entries, and then refuses to take one.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	responses := make([]any, len(logs))
	for i, l := range logs {
		if f.refused.Load() {
			responses[i] = ErrStopped
			continue
		}
		if err := f.synced(l.Index); err != nil { // the node stops
			f.refused.Store(true)
			responses[i] = err
			continue
		}
		if l.Type == raft.LogCommand {
			if err := f.applyCommand(l); err != nil {
				f.refused.Store(true)
				f.broken(err)
				responses[i] = err
				continue
			}
		}
		f.done.Store(l.Index)
	}
	return responses
}

func (f *fsm) applyCommand(l *raft.Log) error {
	e, err := decodeEntry(l.Data)
	if err == nil {
		err = f.sm.Apply(l.Index, l.Term, e.timeMillis, e.flags, e.commands)
	}
	if err != nil {
		return fmt.Errorf("%w: entry %d of term %d: %w", ErrStateMachine, l.Index, l.Term, err)
	}
	f.count(len(e.commands), len(l.Data))
	f.applied(l.Index, l.Term)
	return nil
}

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.refused.Load() {
		return nil, ErrStopped
	}
	f.own = newFrozen(f.sm.Freeze())
	return f.own, nil
}

// release lets go what Snapshot has captured, when Raft has not and does not run.
func (f *fsm) release() {
	if f.own != nil {
		f.own.Release()
		f.own = nil
	}
}

// Restore implements raft.FSM.
func (f *fsm) Restore(r io.ReadCloser) error {
	if index, done := f.restoring(), f.done.Load(); index < done {
		err := fmt.Errorf("%w: it sends a snapshot that ends at entry %d, and those up to %d were acknowledged", ErrForgotten, index, done)
		f.refused.Store(true)
		f.broken(err)
		return err
	}
	if own := f.own; own != nil {
		f.own = nil
		if !own.giveUp(f.stop) {
			f.refused.Store(true)
			return ErrStopped
		}
	}
	start := f.observe.clock()
	if f.done.Load() > 0 {
		f.logger.Info("a snapshot of the leader is loaded; clients are dropped", "index", f.restoring())
	}
	err := f.sm.Restore(&stoppable{r, f.stop})
	f.observe.restored(start)
	switch {
	case errors.Is(err, ErrStopped): // the node is going; nothing is wrong with the snapshot
		f.refused.Store(true)
		return err
	case errors.Is(err, ErrNewer): // it is not broken, and nothing older may take its place
		f.refused.Store(true)
		f.broken(fmt.Errorf("restore a snapshot: %w", err))
		return err
	case err != nil:
		f.spoiled(err)
		if f.done.Load() > 0 { // what was applied has been let go
			f.refused.Store(true)
			f.broken(fmt.Errorf("%w: restore a snapshot: %w", ErrStateMachine, err))
		}
		return err
	}
	if f.done.Swap(f.restoring()) > 0 {
		f.logger.Info("the snapshot of the leader has been loaded", "index", f.restoring())
	}
	return nil
}

// stoppable is a snapshot that ends when the node does: a large one takes longer
// than whoever stops a server waits.
type stoppable struct {
	in   io.Reader
	stop <-chan struct{}
}

// Read implements io.Reader.
func (s *stoppable) Read(b []byte) (int, error) {
	select {
	case <-s.stop:
		return 0, ErrStopped
	default:
		return s.in.Read(b)
	}
}
