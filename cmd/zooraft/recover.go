package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/server"
)

// errNotAccepted is returned when recover was only asked what it would do.
var errNotAccepted = errors.New("nothing was changed; say --accept-data-loss to do it")

// newRecoverCommand starts an ensemble again from one server's data.
func newRecoverCommand() *cobra.Command {
	var dataDir string
	var accepted bool
	cmd := &cobra.Command{
		Use:   "recover [zoo.cfg] --accept-data-loss",
		Short: "Start an ensemble again from one server's data after its majority is lost for good",
		Long: `Start an ensemble again from one server's data after its majority is lost for
good, that is: so many servers have lost their disks that no majority of the
members can ever run again. If their disks exist, start them instead.

Run it on the one server that has the newest data, while all servers are stopped.
Without --accept-data-loss it only says what it finds: compare the last entry of
all servers that are left. What the lost servers acknowledged and this one does
not have is lost, and nobody can tell whether there is any.

Afterwards this server is the only member. Start it, then empty the directories
of the others and start them: the leader adds them. A server of before that
turns up with its old data is refused.

Exit codes: 0 done, 1 failed or not accepted, 2 wrong command line or
configuration, 3 the data directory cannot be used.`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			options := configOptions(cmd, args)
			options.DataDir, options.AllowUnprotected = dataDir, true
			effective, _, err := config.Load(options)
			if err != nil {
				return err
			}
			r, err := server.Recover(effective, accepted, warningsOnly(cmd.ErrOrStderr()))
			if errors.Is(err, server.ErrData) {
				return dataError{err}
			}
			if err != nil {
				return err
			}
			return printRecovery(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data directory of the server (default: that of zoo.cfg)")
	cmd.Flags().BoolVar(&accepted, "accept-data-loss", false, "do it")
	return cmd
}

func printRecovery(out io.Writer, r server.Recovery) error {
	_, err := fmt.Fprintf(out, "server %d has entries up to %d, of term %d; the members were:\n", r.ServerID, r.Last, r.LastTerm)
	for _, p := range r.Former {
		role := "observer"
		if p.Voter {
			role = "participant"
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "  server %d at %s, %s\n", p.ID, p.Address, role)
		}
	}
	if err != nil {
		return err
	}
	if !r.Done {
		return errNotAccepted
	}
	_, err = fmt.Fprintf(out, "server %d is the only member now, its last zxid was 0x%x; start it, then the others with empty directories\n", r.ServerID, uint64(r.Zxid))
	return err
}
