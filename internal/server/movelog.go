package server

import (
	"fmt"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/consensus"
)

// MoveLog moves the log of a stopped server to another log store ("wal" or
// "bolt") and returns how many entries it holds. A crash on the way leaves the
// log whole in one of the two.
func MoveLog(c *config.Config, to string) (entries uint64, err error) {
	cc := consensus.DefaultConfig(c.Storage.DataDir)
	cc.LogDir = c.Storage.LogDir
	if entries, err = consensus.MoveLog(cc, to); err != nil {
		return 0, fmt.Errorf("move the log: %w", dataError(err))
	}
	return entries, nil
}
