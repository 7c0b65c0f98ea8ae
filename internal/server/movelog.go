package server

import (
	"fmt"
	"log/slog"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
)

// MoveLog moves the log of a stopped server to another log store ("wal" or
// "bolt") and returns how many entries it holds. A crash on the way leaves the
// log whole in one of the two. The logger is told what goes on meanwhile.
func MoveLog(c *config.Config, to string, logger *slog.Logger) (entries uint64, err error) {
	cc := packedLog(c.Storage.DataDir)
	cc.Logger, cc.LogDir = logger, c.Storage.LogDir
	if entries, err = consensus.MoveLog(cc, to); err != nil {
		return 0, fmt.Errorf("move the log: %w", dataError(err))
	}
	return entries, nil
}
