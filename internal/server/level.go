package server

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// prepareLevel sets what this server supports, and shows what is in force.
func (s *Server) prepareLevel() {
	if s.embedding.CommandLevel > 0 {
		s.state.Support(s.embedding.CommandLevel)
	}
	s.registry.Gauge("command_level", "Command level of the ensemble as this server has applied it.",
		func() metrics.Value { return metrics.Int(int64(s.state.CommandLevel())) })
}

// levels is what consensus tells the other servers.
func (s *Server) levels() (inForce, supports int) {
	return int(s.state.CommandLevel()), int(s.state.Supports())
}

// encode makes a command of a version that every server of the ensemble can
// read: see state's command level.
func (s *Server) encode(t *proto.Txn) []byte {
	room := make([]byte, 0, 64+len(t.Body)+64*len(t.Identities))
	return t.Append(room, s.state.CommandLevel())
}

// raisePause is the time between two looks at whether all servers support a
// higher command level.
const raisePause = 200 * time.Millisecond

// raise is the goroutine of a leader that raises the command level once all
// servers support a higher one. It ends when this server supports no more.
func (d *duties) raise(quit chan struct{}) {
	defer d.done.Done()
	s := d.server
	tick := time.NewTicker(raisePause)
	defer tick.Stop()
	for from := s.state.CommandLevel(); ; {
		now := s.state.CommandLevel()
		if now > from {
			s.logger.Info("the command level has been raised; an older version of zooraft that does not support it cannot be put back any more",
				"from", from, "to", now)
			from = now
		}
		if now >= s.state.Supports() {
			return
		}
		if all, _ := s.node.CommonLevel(); all > int(now) {
			d.propose(proto.Txn{TxnHeader: proto.TxnHeader{Type: proto.OpRaiseLevel}, Body: state.RaiseBody(byte(all))})
		}
		select {
		case <-quit:
			return
		case <-tick.C:
		}
	}
}

// Restore implements consensus.StateMachine.
func (m machine) Restore(r io.Reader) error { return newer(m.Machine.Restore(r)) }

// newer tells consensus of an entry or a snapshot that only a newer version of
// the program can apply.
func newer(err error) error {
	if errors.Is(err, state.ErrCommandLevel) || errors.Is(err, proto.ErrCommandVersion) {
		return fmt.Errorf("%w: %w", consensus.ErrNewer, err)
	}
	return err
}
