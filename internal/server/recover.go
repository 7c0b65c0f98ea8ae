package server

import (
	"fmt"
	"log/slog"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/watch"
)

// recoveredEpochs is by how much Recover raises the epoch of zxids: the lost
// majority may have used the next ones. Source: our choice, more elections than
// a majority can have held unnoticed.
const recoveredEpochs = 1024

// Recovery is what Recover found and did.
type Recovery struct {
	consensus.Recovery
	// Zxid is the last one that this server has.
	Zxid proto.Zxid
}

// Recover makes a stopped server of an ensemble that has lost its majority for
// good the only member of a new ensemble, if accepted; else it only looks. The
// logger is told what goes on meanwhile.
func Recover(c *config.Config, accepted bool, logger *slog.Logger) (r Recovery, err error) {
	cc := packedLog(c.Storage.DataDir)
	cc.Logger = logger
	cc.LogDir = c.Storage.LogDir
	cc.LogStore = string(c.Storage.LogStore)
	cc.SnapRetainCount = c.Storage.SnapRetainCount
	(&Server{config: c}).peers(&cc)
	m := state.New(silent{}, watch.New(watch.NewMetrics(metrics.NewRegistry())))
	r.Recovery, err = consensus.Recover(cc, machine{m, &Server{config: c}}, accepted, func() {
		r.Zxid = m.Zxid()
		m.SkipEpochs(recoveredEpochs)
	})
	if err != nil {
		return r, fmt.Errorf("recover: %w", dataError(err))
	}
	return r, nil
}

// silent is a hook for a state machine that serves nobody.
type silent struct{}

var _ state.Hook = silent{}

// Applied implements state.Hook.
func (silent) Applied(*proto.TxnHeader, *state.Outcome) bool { return false }

// ServeReads implements state.Hook.
func (silent) ServeReads(proto.Origin) {}

// OutOfTurn implements state.Hook.
func (silent) OutOfTurn(proto.Origin) {}

// SessionMoved implements state.Hook.
func (silent) SessionMoved(*session.Session, proto.Origin) {}

// SessionClosed implements state.Hook.
func (silent) SessionClosed(proto.SessionID, proto.Origin) {}

// MembershipChanged implements state.Hook.
func (silent) MembershipChanged() {}

// EntryApplied implements state.Hook.
func (silent) EntryApplied(int64) {}

// Reset implements state.Hook.
func (silent) Reset() {}

// Restored implements state.Hook.
func (silent) Restored() {}
