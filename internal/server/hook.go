package server

import (
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
)

// hook is the Server as the state machine and consensus see it: who is told
// what apply did, and what becomes of proposals. Its fields belong to the
// goroutine that applies.
type hook struct {
	*Server
	scratch []byte  // reply under construction
	dirty   []*conn // have got something from the entry being applied
	again   []*conn // likewise, after they were handed over
	entry   uint64  // number of the entry being applied, from 1
	event   eventFrame
	// processors is how many there were at the start.
	processors int
	writer     *promptWriter // for lone replies

	sequenceWarned time.Duration // when warnSequence last logged; 0 never
}

var _ state.Hook = (*hook)(nil)

// here returns the live connection that the origin names, or nil.
func (s *Server) here(o proto.Origin) *conn {
	if o.Server != s.serverID || o.Conn == 0 {
		return nil
	}
	return s.conns.get(o.Conn)
}

// Applied implements state.Hook.
func (k *hook) Applied(h *proto.TxnHeader, o *state.Outcome) bool {
	c := k.here(h.Origin)
	if c == nil {
		return false
	}
	if h.Type == proto.OpCreateSession || h.Type == proto.OpRenewSession {
		c.sessionApplied(h, o)
		return false
	}
	k.countQuota(&o.Result)
	k.warnSequence(&o.Result)
	readsWait := c.answer(h, o, &k.scratch)
	k.scratch = reusable(k.scratch)
	return readsWait
}

// countQuota counts a write that met a quota, by the first component of the
// quota's path.
func (k *hook) countQuota(r *tree.Result) {
	if r.QuotaOver == "" {
		return
	}
	k.metrics.quotaExceeded.Key(tree.Namespace(r.QuotaOver)).Inc()
}

// warnSequence warns, once per burst, long before a sequence counter is full:
// from then on every sequential create below that node would fail for good.
func (k *hook) warnSequence(r *tree.Result) {
	if !r.SequenceLow {
		return
	}
	k.metrics.sequenceLow.Inc()
	now := k.clock.Monotonic()
	if k.sequenceWarned != 0 && now-k.sequenceWarned < burst {
		return
	}
	k.sequenceWarned = now
	parent, _, _ := proto.SplitPath(r.Path)
	// Nothing is logged under the state lock.
	go k.logger.Warn("the sequence counter of a node runs out at 2147483647; use another parent before then",
		"parent", parent, "created", r.Path)
}

// ServeReads implements state.Hook.
func (k *hook) ServeReads(origin proto.Origin) {
	if c := k.here(origin); c != nil {
		c.serveReads(&k.scratch)
		k.markDirty(c)
	}
}

// OutOfTurn implements state.Hook.
func (k *hook) OutOfTurn(origin proto.Origin) {
	if c := k.here(origin); c != nil {
		go c.close(reasonFateUnknown, "a command of it came out of turn")
	}
}

// SessionMoved implements state.Hook.
func (k *hook) SessionMoved(s *session.Session, former proto.Origin) {
	k.tracker.Track(s.ID, time.Duration(s.TimeoutMillis)*time.Millisecond, s.Generation, k.clock.Monotonic())
	if former == s.Owner {
		return
	}
	if c := k.here(former); c != nil {
		// At once, so that it answers nothing that comes after the move.
		c.gone.Store(true)
		go c.close(reasonSessionMoved, "")
	}
}

// SessionClosed implements state.Hook.
func (k *hook) SessionClosed(id proto.SessionID, owner proto.Origin) {
	k.tracker.Remove(id)
	if owner != (proto.Origin{}) && k.leading.Load() { // who leads has proposed it
		k.metrics.staleSessions.Inc()
	}
	if c := k.here(owner); c != nil {
		go c.close(reasonSessionExpired, "")
	}
}

// EntryApplied implements state.Hook: what the entry put into outboxes is
// written now, together. A server that follows learns the leader's time by it;
// entries that are replayed before it serves are no news.
func (k *hook) EntryApplied(timeMillis int64) {
	if k.distributed && k.serving.Load() && !k.leading.Load() {
		k.leaderClock.follow(time.UnixMilli(timeMillis))
	}
	k.event = eventFrame{}
	k.deliver()
}

// Reset implements state.Hook.
func (k *hook) Reset() {
	k.restoring.Store(true) // before a new connection can be missed below
	for _, c := range k.conns.all() {
		c.gone.Store(true) // before any read can see the new state
		go c.close(reasonStateReset, "")
	}
}

// Restored implements state.Hook.
func (k *hook) Restored() { k.restoring.Store(false) }

// FateUnknown implements consensus.Events: the token of a proposal is its
// connection. Clients know what a lost connection means.
func (k *hook) FateUnknown(tokens []uint64) {
	for _, token := range tokens {
		if c := k.conns.get(token); c != nil {
			go c.close(reasonFateUnknown, "the log did not take it")
		}
	}
}

// LeaderChanged implements consensus.Events.
func (k *hook) LeaderChanged(serverID int) {
	k.leaderID.Store(int64(serverID))
	k.ensembleMetrics.leaderChanged(serverID)
}

// Route implements consensus.Events. When the way to the leader breaks, what
// went over it has an unknown fate; idle connections stay.
func (k *hook) Route(open bool) {
	<-k.opened
	if !open {
		k.closeUnsettled()
	}
	own, _ := k.own()
	k.ensembleMetrics.route(open, own.Observer)
	k.gate.setRouted(open)
}

// Message implements consensus.Events.
func (k *hook) Message(from int, payload []byte) { k.heard.take(from, payload) }

// Leading implements consensus.Events: duties run, and clients are served,
// once all of the log has been applied.
func (k *hook) Leading(leading bool) {
	k.leading.Store(leading)
	if leading {
		k.reigns.Add(1)
	}
	select {
	case k.leadingChanged <- struct{}{}:
	default:
	}
}

// appendOutcome appends the reply body of a successful write.
func appendOutcome(dst []byte, op proto.OpCode, o *state.Outcome) []byte {
	switch op {
	case proto.OpSync:
		return proto.AppendString(dst, o.Result.Path)
	case proto.OpCloseSession:
		return dst
	}
	return tree.AppendResult(dst, op, &o.Result)
}
