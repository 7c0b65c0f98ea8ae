package consensus

import (
	"errors"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

/*
A leader whose process has died is known to be dead long before Raft's timers
say so: its streams end, and its peer port refuses the connection. Then the
followers need not wait for one to two heartbeat timeouts. Their own Raft is
told to be content with the leader's lease for one round; the pre-vote still
protects a leader that is alive for others.
*/

// hurryJitter spreads the campaigns of several followers: 40 ms, several times
// what a vote takes.
const hurryJitter = 40 * time.Millisecond

// hurry is a goroutine that ends with the round. One runs at a time.
func (n *Node) hurry(leader raft.ServerID) {
	defer n.hurrying.Store(false)
	t := n.cfg.timeouts()
	wait := t.lease - time.Since(n.raft.LastContact())
	if wait < 0 {
		wait = 0
	}
	if !n.disk.wait(wait + time.Duration(n.cfg.RandInt64N(int64(hurryJitter)))) {
		return
	}
	if _, id := n.raft.LeaderWithID(); id != leader && id != "" || n.raft.State() != raft.Follower {
		return
	}
	normal := n.raft.ReloadableConfig()
	short := normal
	short.HeartbeatTimeout = t.lease
	if err := n.raft.ReloadConfig(short); err != nil {
		n.logger.Warn("the heartbeat timeout could not be shortened", "error", err)
		return
	}
	n.disk.wait(t.election)
	if err := n.raft.ReloadConfig(normal); err != nil {
		n.logger.Error("the heartbeat timeout could not be set back", "error", err)
	}
}

// leaderGone is told why the leader could not be reached.
func (n *Node) leaderGone(leader raft.ServerID, err error) {
	if errors.Is(err, syscall.ECONNREFUSED) && n.hurrying.CompareAndSwap(false, true) {
		go n.hurry(leader)
	}
}
