package consensus

import "sync"

// Reachable tells which servers are there: this one, those that follow this
// leader, and those that answer at their address, belong to no other ensemble
// and support its command level. It waits for their answers for a short time.
func (n *Node) Reachable(peers []Peer) map[int]bool {
	var mu sync.Mutex
	there := map[int]bool{}
	var wg sync.WaitGroup
	for _, p := range peers {
		if p.ID == n.cfg.ServerID || n.Attached(p.ID) {
			mu.Lock()
			there[p.ID] = true
			mu.Unlock()
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			w, ok := n.probe(p, probeTimeout)
			if ok && (!w.Formed || w.ClusterID == n.stable.identity().ClusterID) && n.misfit(w.ID, w.levels) == "" {
				mu.Lock()
				defer mu.Unlock()
				there[p.ID] = true
			}
		}()
	}
	wg.Wait()
	return there
}
