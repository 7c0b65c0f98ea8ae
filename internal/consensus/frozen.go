package consensus

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
)

/*
frozen is a captured state on its way to a snapshot. Raft writes it on a goroutine of
its own, and a snapshot of the leader can come meanwhile. Then the own one is given up:
it would keep the former state in memory beside the new one until it is written, and
the library would take the log to begin where it ends, behind what has been loaded.
*/
type frozen struct {
	givenUp chan struct{} // closed by giveUp
	ended   chan struct{} // closed by Release after Persist has begun

	mu      sync.Mutex
	persist func(w io.Writer) error // guarded by mu; nil when released
	release func()                  // guarded by mu; nil when released
	writing bool                    // guarded by mu; Persist has begun
}

// errGivenUp is what Persist of a state that was given up returns.
var errGivenUp = errors.New("consensus: the leader's snapshot came while this server's own was written")

// isGivenUp tells whether a snapshot failed for that reason; the library keeps only
// the text.
func isGivenUp(err error) bool { return strings.Contains(err.Error(), errGivenUp.Error()) }

func newFrozen(persist func(w io.Writer) error, release func()) *frozen {
	return &frozen{persist: persist, release: release, givenUp: make(chan struct{}), ended: make(chan struct{})}
}

// Persist implements raft.FSMSnapshot. Raft closes or cancels the sink.
func (f *frozen) Persist(sink raft.SnapshotSink) error {
	f.mu.Lock()
	persist := f.persist
	f.writing = persist != nil
	f.mu.Unlock()
	if persist == nil {
		return errGivenUp
	}
	return persist(&endable{sink, f.givenUp})
}

// Release implements raft.FSMSnapshot. Raft calls it when the snapshot is among the
// others and the log is trimmed, or has failed.
func (f *frozen) Release() {
	f.mu.Lock()
	defer f.mu.Unlock() // who finds it released may go on
	if f.writing {
		f.writing = false
		close(f.ended)
	}
	f.releaseLocked()
}

func (f *frozen) releaseLocked() {
	if f.release != nil {
		f.release()
	}
	f.persist, f.release = nil, nil
}

// giveUp lets the state go, when it is not being written any more and Raft has done
// with it: it would take an own snapshot that ends later than the leader's for the
// newer one. It is called once at most, and returns false if the node stops before. It
// does not wait for Raft's main goroutine, which waits for this and which Raft asks
// before Persist: a state that is not being written yet is let go at once, and never
// will be.
func (f *frozen) giveUp(stop <-chan struct{}) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.release == nil {
		return true
	}
	close(f.givenUp)
	if f.writing {
		f.mu.Unlock()
		select {
		case <-f.ended:
		case <-stop:
			f.mu.Lock()
			return false
		}
		f.mu.Lock()
	}
	f.releaseLocked()
	return true
}

// endable is a writer whose next write fails when the state is given up.
type endable struct {
	io.Writer
	givenUp <-chan struct{}
}

// Write implements io.Writer.
func (e *endable) Write(b []byte) (int, error) {
	select {
	case <-e.givenUp:
		return 0, errGivenUp
	default:
		return e.Writer.Write(b)
	}
}
