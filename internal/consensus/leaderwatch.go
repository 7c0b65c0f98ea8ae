package consensus

import (
	"time"

	"github.com/hashicorp/raft"
)

// watchLeader is a goroutine: it tells the server who leads.
func (n *Node) watchLeader() {
	defer n.workers.Done()
	seen := make(chan raft.Observation, 16)
	o := raft.NewObserver(seen, true, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	n.raft.RegisterObserver(o)
	defer n.raft.DeregisterObserver(o)
	tick := time.NewTicker(5 * n.cfg.ElectionTimeout) // in case an observation was missed
	defer tick.Stop()
	last := -2
	for {
		select {
		case <-n.stop:
			return
		case <-seen:
		case <-tick.C:
		}
		_, id := n.raft.LeaderWithID()
		now := -1
		if id != "" {
			now, _ = splitRaftID(string(id))
		}
		if now == last {
			continue
		}
		last = now
		select {
		case n.leaderMoved <- struct{}{}:
		default:
		}
		n.events.LeaderChanged(now)
	}
}
