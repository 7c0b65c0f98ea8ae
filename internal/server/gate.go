package server

import (
	"sync"
	"time"
)

// gate decides whether clients are served. It is open while this server leads,
// or has a route to the leader and has caught up. When it has neither, clients
// that only read go on for a while, so that an election disturbs nobody; after
// syncLimit × tickTime they are dropped and new ones turned away, because what
// they read may be old. A server alone has no other to lag behind: its gate,
// once open, stays open.
type gate struct {
	server   *Server
	patience time.Duration // 0: for ever

	mu      sync.Mutex
	leading bool        // guarded by mu
	routed  bool        // guarded by mu
	timer   *time.Timer // guarded by mu; runs while neither holds and serving is still on
}

// setLeading and setRouted note a change of this server's place.
func (g *gate) setLeading(on bool) { g.set(&g.leading, on) }
func (g *gate) setRouted(on bool)  { g.set(&g.routed, on) }

func (g *gate) set(flag *bool, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	former := g.leading || g.routed
	*flag = on
	if now := g.leading || g.routed; now != former {
		g.server.ensembleMetrics.available(now, g.leading)
	}
	if g.leading || g.routed {
		if g.timer != nil {
			g.timer.Stop()
			g.timer = nil
		}
		g.server.endReadOnly()
		g.server.openGate()
		return
	}
	if g.patience > 0 && g.timer == nil && g.server.serving.Load() {
		g.timer = time.AfterFunc(g.patience, g.shut)
	}
}

// shut ends the patience.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leading || g.routed || g.timer == nil {
		return
	}
	g.timer = nil
	g.server.logger.Warn("no leader for too long: clients are dropped until there is one", "after", g.patience)
	g.server.serving.Store(false)
	for _, c := range g.server.conns.all() {
		go c.close(reasonNotServing, "")
	}
	g.server.awaitReadOnly()
}

// serves tells whether clients are served.
func (s *Server) serves() bool { return s.serving.Load() && !s.restoring.Load() }

// openGate lets clients in.
func (s *Server) openGate() {
	select {
	case <-s.stopped:
		return
	default:
	}
	s.serving.Store(true)
	s.readyOne.Do(func() {
		// Everything committed has been applied; Raft's applied index is
		// raised a moment after the fact.
		status := s.node.Status()
		s.logMetrics.startDone(s.clock.Wall().Sub(s.started), status.CommitIndex-status.NewestSnapshot)
		close(s.ready)
	})
}
