package consensus

import (
	"time"

	"github.com/hashicorp/raft"
)

/*
A leader whose disk hangs. The library's heartbeats come from goroutines of
their own, so they go on while an append does not return; nobody else is
elected, and no write is ever answered (hashicorp/raft#503). Stepping down and
handing over are served by the very goroutine that hangs.

So the leader goes silent: past DiskStallLimit it closes every connection of the
peer port and takes and makes none. To the others it is cut off, which Raft is
made for, and they elect another. What was proposed here has an unknown fate.
When the append returns, the port speaks again, and this server learns of the
new leader. A disk that is full for long is the same case.

The rejected way is to end the process: a disk that hangs for a while and comes
back is common where disks are remote, and a server that has gone costs the
ensemble its spare.
*/

// stallTicks are the moments to look at the disk.
func (n *Node) stallTicks() <-chan time.Time {
	return time.NewTicker(n.cfg.DiskStallLimit / 4).C // garbage once the node has closed
}

// GivesWay tells whether this server is silent because its disk does not answer: it
// may call itself the leader still, and is none.
func (n *Node) GivesWay() bool { return n.port != nil && n.port.isMuted() }

// saysStalled is diskStalled of a server that has nobody to give way to.
func (n *Node) saysStalled(stalled bool) {
	if stalled {
		n.logger.Error("the disk of the log does not answer; what it was given waits", "after", n.cfg.DiskStallLimit)
	} else {
		n.logger.Warn("the disk of the log answers again")
	}
}

// diskStalled is told when an append has exceeded the limit and when it has
// returned. It returns what leads returns.
func (n *Node) diskStalled(stalled bool) (barrier chan error, again <-chan time.Time) {
	leader := n.raft.State() == raft.Leader
	if stalled && leader {
		n.logger.Error("the disk of the log does not answer; this leader gives way", "after", n.cfg.DiskStallLimit, "waited", n.disk.runningFor())
		n.port.mute(true)
		n.leads(false)
		n.batcher.giveUp(ErrNotLeader, true)
		return nil, nil
	}
	n.saysStalled(stalled)
	if stalled {
		return nil, nil
	}
	if n.port.mute(false) {
		n.logger.Warn("this server speaks to the others again")
	}
	if leader { // nobody else has been elected
		return n.leads(true)
	}
	return nil, nil
}
