package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// commitNotes holds the newest commit that the leader has told of and this
// server's Raft has not been told yet. A note often comes before the entry is
// stored here, for a majority does not need this server; it is kept until the
// log has the entry.
type commitNotes struct {
	kick chan struct{} // capacity 1: a note came, or the log grew

	mu     sync.Mutex
	leader raft.Server // guarded by mu
	index  uint64      // guarded by mu; 0 when there is none
	term   uint64      // guarded by mu
	stored uint64      // guarded by mu; last entry in the own log, as far as known here
}

func newCommitNotes() *commitNotes { return &commitNotes{kick: make(chan struct{}, 1)} }

func (c *commitNotes) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// note takes what the leader says.
func (c *commitNotes) note(leader raft.Server, index, term uint64) {
	c.mu.Lock()
	if term > c.term || index > c.index {
		c.leader, c.index, c.term = leader, index, term
	}
	c.mu.Unlock()
	c.wake()
}

// grown is told of each append to the own log.
func (c *commitNotes) grown(last uint64) {
	c.mu.Lock()
	c.stored = last
	waits := c.index != 0
	c.mu.Unlock()
	if waits {
		c.wake()
	}
}

// take returns the note if the log has its entry, and forgets it.
func (c *commitNotes) take() (leader raft.Server, index, term uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index == 0 || c.index > c.stored {
		return leader, 0, 0, false
	}
	leader, index, term = c.leader, c.index, c.term
	c.index = 0
	return leader, index, term, true
}

// takeNotes is a goroutine: it hands the own Raft the message that the leader
// of the term might have sent. Raft takes it after the append that it is
// working on, so that the entry is there.
func (n *Node) takeNotes() {
	defer n.workers.Done()
	for {
		select {
		case <-n.stop:
			return
		case <-n.notes.kick:
		}
		leader, index, term, ok := n.notes.take()
		if !ok || n.raft.CommitIndex() >= index || n.raft.CurrentTerm() != term {
			continue
		}
		n.network.inject(&raft.AppendEntriesRequest{
			RPCHeader:         raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader.ID), Addr: []byte(leader.Address)},
			Term:              term,
			PrevLogEntry:      index,
			PrevLogTerm:       term,
			LeaderCommitIndex: index,
		})
	}
}
