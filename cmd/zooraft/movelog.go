package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/server"
)

// newMoveLogCommand moves a stopped server's log from one log store to the
// other.
func newMoveLogCommand() *cobra.Command {
	var to, dataDir string
	cmd := &cobra.Command{
		Use:   "move-log [zoo.cfg] --to wal|bolt",
		Short: "Move the log of a stopped server to the other log store",
		Long: `Move the log of a stopped server to the other log store.

The server is found by its data directory: that of zoo.cfg, or --data-dir, or
./zooraft-data. Afterwards start it with raftLogStore set to the new store. A
crash on the way leaves the log whole in one of the two; run the command again.

Exit codes: 0 moved, 1 failed, 2 wrong command line or configuration, 3 the data
directory cannot be used.`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != string(config.LogStoreWAL) && to != string(config.LogStoreBolt) {
				return usageError{fmt.Errorf("--to is %q, want %q or %q", to, config.LogStoreWAL, config.LogStoreBolt)}
			}
			options := configOptions(cmd, args)
			// What the server would refuse to run with does not matter here.
			options.DataDir, options.AllowUnprotected = dataDir, true
			effective, _, err := config.Load(options)
			if err != nil {
				return err
			}
			entries, err := server.MoveLog(effective, to, warningsOnly(cmd.ErrOrStderr()))
			if errors.Is(err, server.ErrData) {
				return dataError{err}
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "moved %d entries; now start with raftLogStore=%s\n", entries, to)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the log store to move to: wal or bolt")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data directory of the server (default: that of zoo.cfg, or ./zooraft-data)")
	return cmd
}
