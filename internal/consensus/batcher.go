package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

/*
The batcher turns proposals into log entries.

	Propose ─► queue ─► pump ────────────► raft.Apply ─► reaper goroutine
	           (limits)  (packs, stamps)    (disk, fsm)   (failed: FateUnknown)

At most InFlight entries are on their way. That is what makes groups grow: while
one entry is on the disk everything that arrives waits in the queue and leaves
together. A lone command finds that there is room and leaves at once; no timer
ever holds one back.

Pump runs on the goroutine that makes it possible: who proposes when there is
room, else the reaper when an entry has made room. One at a time, so entries leave
in the order of the queue; who finds it running leaves its proposal to it. Raft's
channel of proposals holds more than InFlight, so pump does not wait.

The rejected ways are a goroutine that does only this (a lone write then waits for
it to be woken), one entry per command (the library then groups futures
itself, but each entry pays its own encoding, checksum, apply hand-over and
replication record: a third of the throughput), and waiting a little for company
(a latency for everybody that the disk gives for free under load).

Invariants, under mu:

	len(pending) ≤ InFlight, oldest first; each of them reaches the channel sent
	a token is in the queue, or in one pending batch, or settled
	every settled token was applied normally or named in FateUnknown, not both
*/
type batcher struct {
	maxBytes, maxCommands           int
	maxQueueBytes, maxQueueCommands int
	stamp                           func() (int64, uint32)
	apply                           func(data []byte) raft.Future
	barrier                         func() raft.Future
	unknown                         func(tokens []uint64) // Events.FateUnknown
	observe                         *Observer

	inFlight int
	stop     <-chan struct{}
	sent     chan *batch // capacity InFlight: from pump to the reaper

	mu         sync.Mutex
	queue      []proposal // guarded by mu
	queueBytes int        // guarded by mu
	pending    []*batch   // guarded by mu
	pumping    bool       // guarded by mu; a goroutine is in pump
	leading    bool       // guarded by mu
	diskFull   bool       // guarded by mu
	stopped    bool       // guarded by mu
	lastMillis int64      // guarded by mu; of the term that is led now
}

// proposal is one queued command, or a barrier if done is set.
type proposal struct {
	token   uint64
	remote  *stream // the peer stream that it came by; nil for one of this server
	command []byte
	since   time.Time  // queued; not set for a barrier
	done    chan error // capacity 1
}

// batch is one entry on its way.
type batch struct {
	tokens   []uint64  // of this server's proposals
	remotes  []*stream // of the others'
	commands [][]byte
	since    time.Time   // the oldest command was queued
	done     chan error  // for a barrier
	future   raft.Future // set before the batch is sent to the reaper
	reported bool        // guarded by batcher.mu; its tokens were named in FateUnknown
}

func newBatcher(c Config, stop <-chan struct{}) *batcher {
	return &batcher{
		maxBytes: c.MaxBatchBytes, maxCommands: c.MaxBatchCommands,
		maxQueueBytes: c.MaxQueueBytes, maxQueueCommands: c.MaxQueueCommands,
		stamp:    c.Stamp,
		observe:  &c.Observe,
		inFlight: c.InFlight,
		stop:     stop,
		sent:     make(chan *batch, c.InFlight),
	}
}

// propose queues one command or barrier, or says at once why not.
func (b *batcher) propose(p proposal) error {
	if len(p.command) > maxEntryBytes-entryHeaderLen-commandLenLen {
		return ErrCommandTooLarge
	}
	if p.done == nil {
		p.since = b.observe.clock()
	}
	b.mu.Lock()
	err := b.refusalLocked()
	if err == nil && p.done == nil &&
		(len(b.queue) >= b.maxQueueCommands || b.queueBytes+len(p.command) > b.maxQueueBytes && len(b.queue) > 0) {
		err = ErrQueueFull
	}
	if err == nil {
		b.queue = append(b.queue, p)
		b.queueBytes += len(p.command)
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if p.done == nil {
		b.observe.queued()
	}
	b.pump()
	return nil
}

func (b *batcher) refusalLocked() error {
	switch {
	case b.stopped:
		return ErrStopped
	case b.diskFull:
		return ErrDiskFull
	case !b.leading:
		return ErrNotLeader
	}
	return nil
}

// pump gives entries to Raft while there are proposals and there is room. It does
// not wait for anything.
func (b *batcher) pump() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pumping {
		return // whoever is at it looks again before it ends
	}
	b.pumping = true
	for packed := b.takeLocked(); packed != nil; packed = b.takeLocked() {
		waiting := len(b.queue)
		b.mu.Unlock()
		b.send(packed, waiting)
		b.mu.Lock()
	}
	b.pumping = false
}

// send gives one entry to Raft, and to the reaper to wait for.
func (b *batcher) send(packed *batch, waiting int) {
	if packed.done != nil {
		packed.future = b.barrier()
	} else {
		b.observe.packed(len(packed.commands), waiting, packed.since)
		millis, flags := b.stampRising()
		packed.future = b.apply(encodeEntry(millis, flags, packed.commands))
		packed.commands = nil
	}
	b.sent <- packed
}

// takeLocked packs the head of the queue; nil if there is nothing to send now.
func (b *batcher) takeLocked() *batch {
	if len(b.queue) == 0 || b.stopped || len(b.pending) >= b.inFlight {
		return nil
	}
	packed := &batch{}
	if b.queue[0].done != nil {
		packed.done = b.queue[0].done
		b.dropLocked(1)
	} else {
		n, bytes := 0, 0
		for n < len(b.queue) && n < b.maxCommands && b.queue[n].done == nil {
			bytes += len(b.queue[n].command) + commandLenLen
			if n > 0 && bytes > b.maxBytes {
				break
			}
			n++
		}
		packed.since = b.queue[0].since
		packed.tokens = make([]uint64, 0, n)
		packed.commands = make([][]byte, n)
		for i, p := range b.queue[:n] {
			packed.commands[i] = p.command
			if p.remote != nil {
				packed.remotes = append(packed.remotes, p.remote)
			} else {
				packed.tokens = append(packed.tokens, p.token)
			}
		}
		b.dropLocked(n)
	}
	b.pending = append(b.pending, packed)
	return packed
}

// dropLocked removes the first n proposals.
func (b *batcher) dropLocked(n int) {
	for i := range n {
		b.queueBytes -= len(b.queue[i].command)
		b.queue[i] = proposal{}
	}
	b.queue = b.queue[n:]
	if len(b.queue) == 0 {
		b.queue = nil
	}
}

// stampRising is the leader's time, held back from running backwards within a
// term when the machine's clock is stepped. A new term takes the clock as it is.
func (b *batcher) stampRising() (int64, uint32) {
	millis, flags := b.stamp()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastMillis = max(b.lastMillis, millis)
	return b.lastMillis, flags
}

// reap is the reaper goroutine: it waits for the batches in the order they were
// sent, names the tokens of those that failed, and sends what has waited for room.
// It ends when the node stops and nothing is on its way any more.
func (b *batcher) reap() {
	for {
		select {
		case sent := <-b.sent:
			b.await(sent)
			b.pump()
		case <-b.stop:
			b.refuse()
			for b.underway() {
				b.await(<-b.sent)
			}
			return
		}
	}
}

// await waits for one batch.
func (b *batcher) await(sent *batch) {
	b.settle(sent, outcome(sent.future))
	if sent.done == nil {
		b.observe.settled(sent.since)
	}
}

// underway tells whether a batch is on its way.
func (b *batcher) underway() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending) > 0
}

// outcome waits for a future. An entry may be committed and not be applied here,
// because this node stops: then its fate is as unknown as if the future had failed.
func outcome(f raft.Future) error {
	if err := f.Error(); err != nil {
		return err
	}
	if applied, ok := f.(raft.ApplyFuture); ok {
		if err, ok := applied.Response().(error); ok {
			return err
		}
	}
	return nil
}

func (b *batcher) settle(s *batch, err error) {
	b.mu.Lock()
	for i, p := range b.pending {
		if p == s {
			b.pending = append(b.pending[:i], b.pending[i+1:]...)
			break
		}
	}
	report := err != nil && !s.reported
	s.reported = true
	b.mu.Unlock()
	if s.done != nil {
		s.done <- err
	}
	if report {
		b.report(s.tokens, s.remotes)
	}
}

// report says that the fate of proposals is unknown: to this server by their
// tokens, to others by breaking the streams that they came by.
func (b *batcher) report(tokens []uint64, remotes []*stream) {
	for _, s := range remotes {
		s.close()
	}
	if len(tokens) > 0 {
		b.unknown(tokens)
	}
}

// setLeading opens or closes the queue. What waits in it when leadership is
// lost was never proposed, but its connections have to be told something.
func (b *batcher) setLeading(leading bool) {
	b.mu.Lock()
	b.leading = leading
	b.lastMillis = 0
	b.mu.Unlock()
	if !leading {
		b.giveUp(ErrNotLeader, false)
	}
}

func (b *batcher) setDiskFull(full bool) {
	b.mu.Lock()
	b.diskFull = full
	b.mu.Unlock()
}

// giveUpIfFull is called when a full disk has lasted longer than the patience.
func (b *batcher) giveUpIfFull() {
	b.mu.Lock()
	full := b.diskFull
	b.mu.Unlock()
	if full {
		b.giveUp(ErrDiskFull, true)
	}
}

// refuse refuses everything from now on.
func (b *batcher) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
}

// shut refuses everything from now on and gives up what is on its way.
func (b *batcher) shut() {
	b.refuse()
	b.giveUp(ErrStopped, true)
}

// giveUp empties the queue and, if asked, stops waiting for pending batches.
func (b *batcher) giveUp(reason error, pendingToo bool) {
	var tokens []uint64
	var remotes []*stream
	var barriers []chan error
	b.mu.Lock()
	if pendingToo {
		for _, p := range b.pending {
			if !p.reported {
				p.reported = true
				tokens = append(tokens, p.tokens...)
				remotes = append(remotes, p.remotes...)
			}
		}
	}
	for _, p := range b.queue {
		switch {
		case p.done != nil:
			barriers = append(barriers, p.done)
		case p.remote != nil:
			remotes = append(remotes, p.remote)
		default:
			tokens = append(tokens, p.token)
		}
	}
	b.dropLocked(len(b.queue))
	b.mu.Unlock()
	for _, done := range barriers {
		done <- reason
	}
	b.report(tokens, remotes)
}

// applyUnlessRefused hands an entry to Raft, if Config.Refuse lets it.
func (c Config) applyUnlessRefused(r *raft.Raft, data []byte) raft.Future {
	if c.Refuse != nil {
		if err := c.Refuse(); err != nil {
			return refused{err}
		}
	}
	return r.Apply(data, 0)
}

// refused is the future of an entry that Raft never saw.
type refused struct{ err error }

// Error implements raft.Future.
func (r refused) Error() error { return r.err }

// waitClosed waits for done, at most for within.
func waitClosed(done <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
