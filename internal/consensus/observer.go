package consensus

import "time"

// Observer is told what the log costs, for whoever keeps metrics. A function
// that is nil is not called; one that is set is called by several goroutines,
// some of which writes wait for, so it must neither block nor call the node.
type Observer struct {
	// Queued is told of each proposal accepted.
	Queued func()
	// Packed is told of each entry: how many commands it holds, how many still
	// wait, and how long the oldest of its commands has waited.
	Packed func(commands, waiting int, waited time.Duration)
	// Appended is told of each append to the log store, its sync included.
	Appended func(took time.Duration)
	// Settled is told of each entry of this leader that was applied or failed,
	// and how long its oldest command took from Propose on.
	Settled func(took time.Duration)
	// SnapshotTaken is told of each snapshot that has become durable.
	SnapshotTaken func(took time.Duration)
	// Restored is told of each snapshot that was read into the state machine,
	// also when that failed.
	Restored func(took time.Duration)
	// SnapshotSent is told of each snapshot that a follower has received and loaded.
	SnapshotSent func(took time.Duration)

	now func() time.Time // Config.Now, set by Open
}

// clock is the time for the methods below. They, like it, do nothing on nil.
func (o *Observer) clock() time.Time {
	if o == nil || o.now == nil {
		return time.Time{}
	}
	return o.now()
}

func (o *Observer) queued() {
	if o != nil && o.Queued != nil {
		o.Queued()
	}
}

func (o *Observer) packed(commands, waiting int, since time.Time) {
	if o != nil && o.Packed != nil {
		o.Packed(commands, waiting, o.clock().Sub(since))
	}
}

func (o *Observer) appended(since time.Time) {
	if o != nil && o.Appended != nil {
		o.Appended(o.clock().Sub(since))
	}
}

func (o *Observer) settled(since time.Time) {
	if o != nil && o.Settled != nil {
		o.Settled(o.clock().Sub(since))
	}
}

func (o *Observer) snapshotTaken(since time.Time) {
	if o != nil && o.SnapshotTaken != nil {
		o.SnapshotTaken(o.clock().Sub(since))
	}
}

func (o *Observer) restored(since time.Time) {
	if o != nil && o.Restored != nil {
		o.Restored(o.clock().Sub(since))
	}
}

func (o *Observer) snapshotSent(took time.Duration) {
	if o != nil && o.SnapshotSent != nil {
		o.SnapshotSent(took)
	}
}
