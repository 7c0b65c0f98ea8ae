package consensus

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

/*
The leader's disk beside replication. The library stores an entry in the leader's
own log before it sends it to anybody, so a write would cost two syncs in a row:
the leader's, then the followers'. A leader's log store therefore takes commands
into memory, returns, and a goroutine of its own does the append, with one sync
for all that has come meanwhile.

What the library then counts as stored here is not yet. So everything that it
concludes from that is held back until it is true:

	apply      the state machine gets an entry after this server's own sync of it
	           (fsm.ApplyBatch); answers, snapshots, trimming and the mark's settled
	           index all come from what has been applied
	tell       a commit index that leaves this server, in Raft's messages (network)
	           or in our own (noteCommit, frameReady), ends before the first entry
	           that is not synced (logStore.durable)
	answer     what others ask, and could rest on this server's log, is handed to
	           Raft after the sync of all that was in it by then (network.settle)
	ask        a vote is asked for after the sync of the log on which this server
	           stands (network.RequestVote)
	other      everything but a leader's commands is stored and synced before
	entries    StoreLogs returns, after what is still on its way: membership, what a
	           new leader writes first, barriers, and all that a follower gets
	failure    a failed append stops the node, and none of the above is let go

So to the others, to clients and to its own disk this server is one that counts
itself after its own sync; only the message with the entry left earlier, which
Raft allows: it is the leader's part of a majority that has to wait, not the
sending. The proof is docs/adr/0005; each rule names its test there.

The rejected ways: to write the entries into the segment and sync it later, for
then more than one append could be torn, on which the reading of a log's end
relies (walscan.go); and to commit on a majority without the leader, which would
need the library to tell who has stored what.
*/
type unsynced struct {
	// store appends and syncs, as StoreLogs of a follower does. One call runs at a
	// time.
	store func(logs []*raft.Log) error

	// first is the index of the oldest entry that Raft takes for stored and the
	// disk does not have; 0 if there is none.
	first atomic.Uint64

	mu      sync.Mutex
	moved   sync.Cond   // on mu: entries were synced, or never will be
	entries []*raft.Log // guarded by mu; contiguous, entries[0].Index == first
	writing bool        // guarded by mu; a goroutine appends
	failure error       // guarded by mu; set once: what is in entries is never synced
}

func newUnsynced(store func(logs []*raft.Log) error) *unsynced {
	u := &unsynced{store: store}
	u.moved.L = &u.mu
	return u
}

// add takes entries that follow all before them.
func (u *unsynced) add(logs []*raft.Log) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failure != nil {
		return u.failure
	}
	for _, l := range logs {
		kept := *l // a copy, because Raft goes on using its own
		u.entries = append(u.entries, &kept)
	}
	u.first.Store(u.entries[0].Index)
	if !u.writing {
		u.writing = true
		go u.write()
	}
	return nil
}

// write is a goroutine: it ends when nothing is left to append.
func (u *unsynced) write() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.entries) > 0 && u.failure == nil {
		group := u.entries
		u.mu.Unlock()
		err := u.store(group)
		u.mu.Lock()
		if err != nil {
			u.failure = err
			break
		}
		u.entries = u.entries[len(group):]
		if len(u.entries) == 0 {
			u.entries = nil
			u.first.Store(0)
		} else {
			u.first.Store(u.entries[0].Index)
		}
		u.moved.Broadcast()
	}
	u.writing = false
	u.moved.Broadcast()
}

// wait returns once no entry up to index is on its way to the disk any more, or
// why one will never be there.
func (u *unsynced) wait(index uint64) error {
	if first := u.first.Load(); first == 0 || first > index {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.entries) > 0 && u.entries[0].Index <= index {
		if u.failure != nil {
			return u.failure
		}
		u.moved.Wait()
	}
	return nil
}

// idle returns once no append runs.
func (u *unsynced) idle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.writing {
		u.moved.Wait()
	}
}

// durable is the part of a log that ends at index which is on the disk.
func (u *unsynced) durable(index uint64) uint64 {
	if first := u.first.Load(); first != 0 && first <= index {
		return first - 1
	}
	return index
}

// last is the newest entry, or 0 if all are synced.
func (u *unsynced) last() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.entries); n > 0 {
		return u.entries[n-1].Index
	}
	return 0
}

// get copies an entry out and tells whether it was there.
func (u *unsynced) get(index uint64, out *raft.Log) bool {
	if first := u.first.Load(); first == 0 || index < first {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.entries) == 0 || index < u.entries[0].Index {
		return false
	}
	i := index - u.entries[0].Index
	if i >= uint64(len(u.entries)) {
		return false
	}
	*out = *u.entries[i]
	return true
}

// everything is an index behind all entries.
const everything = uint64(math.MaxUint64)

// commandsOnly tells whether entries are such as may be synced beside their
// replication.
func commandsOnly(logs []*raft.Log) bool {
	for _, l := range logs {
		if l.Type != raft.LogCommand {
			return false
		}
	}
	return true
}

// storesBeside tells whether the log store may return before the sync: on the wal
// log store, when it is the leader's own log that is appended to. In a server
// alone there is nothing that the sync could run beside.
//
// Raft's main goroutine asks, from within StoreLogs. The library calls that in two
// places: when it leads, and when it has taken another's entries, for which it has
// become a follower before. It becomes the leader on that goroutine only, so a
// leader's state cannot be seen in the second place; a state that is given up on
// another goroutine, by a heartbeat, makes the store wait for the sync.
func (n *Node) storesBeside() bool {
	return n.raftState() == raft.Leader
}
