package consensus

import (
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

// rotation knows whether raft-wal has a full segment that its other goroutine
// has yet to replace.
//
// It closes a third gap in raft-wal v0.4.0: StoreLogs waits for that goroutine,
// DeleteRange does not. A removal at the end that comes in between cuts the
// full segment and makes a new one, which the late rotation then seals as if it
// were the full one; the log cannot be opened again. So removals wait here.
type rotation struct {
	mu      sync.Mutex
	changed sync.Cond // on mu
	pending bool      // guarded by mu
	failure error     // guarded by mu; set for good
}

func newRotation() *rotation {
	r := &rotation{}
	r.changed.L = &r.mu
	return r
}

// begin: an append has filled the segment.
func (r *rotation) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = true
}

// end: the next segment is there, or cannot be made.
func (r *rotation) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = false
	if err != nil && r.failure == nil {
		r.failure = err
	}
	r.changed.Broadcast()
}

// wait returns when no rotation is pending, or why none will come.
func (r *rotation) wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.pending && r.failure == nil {
		r.changed.Wait()
	}
	return r.failure
}

// why is why a rotation failed, or nil.
func (r *rotation) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// watchedWriter tells when its segment is full.
type watchedWriter struct {
	types.SegmentWriter
	rotation *rotation
}

// Sealed implements types.SegmentWriter; raft-wal asks after each append.
func (w *watchedWriter) Sealed() (bool, uint64, error) {
	sealed, indexStart, err := w.SegmentWriter.Sealed()
	if sealed {
		w.rotation.begin()
	}
	return sealed, indexStart, err
}
