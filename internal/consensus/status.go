package consensus

import (
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Status is a snapshot of a node for health checks, metrics and operators.
type Status struct {
	ServerID    int
	Incarnation uint64
	ClusterID   string
	LogStore    string

	Role     string // "leader", "follower", "candidate" or "stopped"
	LeaderID int    // the server that leads, -1 if none is known
	Leading  bool   // leads and has applied every entry of earlier terms
	Term     uint64

	FirstIndex   uint64    // oldest entry in the log, 0 for none
	FirstSince   time.Time // when the oldest entry was made, by its leader's clock; zero if not known
	LastIndex    uint64    // newest entry in the log or snapshot
	CommitIndex  uint64
	AppliedIndex uint64

	OldestSnapshot uint64 // its index, 0 for none
	NewestSnapshot uint64

	Queued int // commands that wait to be packed

	Disk      DiskState
	FullSince time.Time // zero unless Disk is DiskFull

	// Differs says how other servers' files differ from this one's; empty if
	// they do not, as far as this server has a stream to or from them.
	Differs string

	// NotReady says why writes would fail now; empty if they would not.
	NotReady string
}

// NoLeader is what Status.NotReady begins with while nobody leads; where there is
// no majority it says why.
const NoLeader = "no leader is known"

// Status tells how the node is. It never waits for the disk.
func (n *Node) Status() Status {
	s := Status{
		ServerID:     n.cfg.ServerID,
		Incarnation:  n.id.Incarnation,
		ClusterID:    n.id.ClusterID,
		LogStore:     n.cfg.LogStore,
		Role:         role(n.raft.State()),
		Leading:      n.leading.Load(),
		Term:         n.raft.CurrentTerm(),
		LastIndex:    n.raft.LastIndex(),
		CommitIndex:  n.log.durable(n.raft.CommitIndex()),
		AppliedIndex: n.log.durable(n.raft.AppliedIndex()),
		LeaderID:     -1,
		Disk:         n.disk.state(),
	}
	if _, id := n.raft.LeaderWithID(); id != "" {
		s.LeaderID = serverIDOf(id)
	}
	s.FirstIndex = n.log.first.Load()
	if since := n.log.since.Load(); since != 0 {
		s.FirstSince = time.Unix(0, since)
	}
	s.OldestSnapshot, s.NewestSnapshot = n.snapshots.bounds()
	n.batcher.mu.Lock()
	s.Queued = len(n.batcher.queue)
	n.batcher.mu.Unlock()
	n.mu.Lock()
	reason, waiting, removed, twin, foreign, outdated := n.reason, n.waiting, n.removed, n.twin, n.foreign, n.outdated
	minority := n.minority
	s.FullSince = n.fullSince
	if n.cluster != "" {
		s.ClusterID = n.cluster
	}
	n.mu.Unlock()
	s.Differs = n.differs()
	// A node that failed is stopped from then on, though its goroutines may
	// take a while to end.
	stopped := reason != nil
	select {
	case <-n.stop:
		stopped = true
	default:
	}
	if stopped {
		s.Role = "stopped"
		s.Leading = false
	}
	switch {
	case reason != nil:
		s.NotReady = reason.Error()
	case s.Role == "stopped":
		s.NotReady = "the node is closed"
	case s.Disk == DiskFull:
		s.NotReady = "the disk of the log is full"
	case s.Disk == DiskStalled:
		s.NotReady = "the disk of the log does not answer"
	case outdated != "" && s.LeaderID < 0:
		s.NotReady = outdated
	case waiting != "":
		s.NotReady = "this server belongs to no ensemble yet and waits for " + waiting
	case twin != "":
		s.NotReady = twin
	case removed:
		s.NotReady = "this server is no member of the ensemble any more"
	case s.LeaderID < 0 && foreign != "":
		s.NotReady = foreign
	case s.LeaderID < 0 && minority != "":
		s.NotReady = NoLeader + ": " + minority
	case s.LeaderID < 0:
		s.NotReady = NoLeader
	case s.Role == "leader" && !s.Leading:
		s.NotReady = "the log is being replayed"
	}
	return s
}

func role(state raft.RaftState) string {
	switch state {
	case raft.Leader:
		return "leader"
	case raft.Follower:
		return "follower"
	case raft.Candidate:
		return "candidate"
	default:
		return "stopped"
	}
}

// serverIDOf takes the server's number out of a Raft id, "number-incarnation".
func serverIDOf(id raft.ServerID) int {
	number, _, _ := strings.Cut(string(id), "-")
	value, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return value
}
