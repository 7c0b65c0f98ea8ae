package consensus

import (
	"sync"
	"sync/atomic"
	"time"
)

// DiskState says how the disk of the log is doing.
type DiskState string

// The states of the log's disk.
const (
	DiskOK      DiskState = "ok"
	DiskFull    DiskState = "full"    // appends wait for space
	DiskFailed  DiskState = "failed"  // a write or sync failed; the node has stopped
	DiskStalled DiskState = "stalled" // an append has been running for long
)

// stallAfter is when a running append counts as stalled in Status.
const stallAfter = time.Second

// disk is the state of the log's disk, shared by the log store, the stable
// store and the node.
type disk struct {
	stop    <-chan struct{} // closed when the node stops
	now     func() time.Time
	changed func(full bool) // tells the node; may not block
	broken  func(error)     // stops the node; may not block

	running atomic.Int64 // start of the running append in Unix nanoseconds, or 0

	mu      sync.Mutex
	full    bool  // guarded by mu
	failure error // guarded by mu; set once
}

func (d *disk) begin() { d.running.Store(d.now().UnixNano()) }
func (d *disk) end()   { d.running.Store(0) }

// stalledFor tells whether an append has been running for longer than limit.
func (d *disk) stalledFor(limit time.Duration) bool { return d.runningFor() > limit }

// runningFor is how long the append that is under way has been running, 0 for none.
func (d *disk) runningFor() time.Duration {
	start := d.running.Load()
	if start == 0 {
		return 0
	}
	return time.Duration(d.now().UnixNano() - start)
}

// refusal is why no append may be tried any more, or nil.
func (d *disk) refusal() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}

// fail poisons the log: after a failed write or sync nobody knows what is on
// the disk, so nothing is tried again in this process.
func (d *disk) fail(err error) error {
	d.mu.Lock()
	first := d.failure == nil
	if first {
		d.failure = err
	}
	err = d.failure
	d.mu.Unlock()
	if first {
		d.broken(err)
	}
	return err
}

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	changed := d.full != full
	d.full = full
	d.mu.Unlock()
	if changed {
		d.changed(full)
	}
}

func (d *disk) state() DiskState {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch start := d.running.Load(); {
	case d.failure != nil:
		return DiskFailed
	case d.full:
		return DiskFull
	case start != 0 && d.now().UnixNano()-start > int64(stallAfter):
		return DiskStalled
	}
	return DiskOK
}

// wait pauses between probes; false means that the node stops.
func (d *disk) wait(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.stop:
		return false
	}
}
