package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/config"
)

// ensembleFlags are common to the subcommands of ensemble.
type ensembleFlags struct {
	config, dataDir string
	json            bool
	timeout         time.Duration
}

// newEnsembleCommand looks at an ensemble and changes it, over the admin socket
// of the local server.
func newEnsembleCommand() *cobra.Command {
	var flags ensembleFlags
	cmd := &cobra.Command{
		Use:   "ensemble",
		Short: "Look at the ensemble, hand leadership over, remove a dead member",
		Long: `Look at the ensemble, hand leadership over, remove a dead member, through the
admin socket of the local server.

The server is found by its data directory: that of --config, or --data-dir, or
./zooraft-data. transfer and remove must be run where the leader is; elsewhere
they say where that is. Exit code 0: done. 1: refused, the reason is printed. 2:
no server answers, or the command line is wrong.`,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&flags.config, "config", "", "the server's zoo.cfg")
	f.StringVar(&flags.dataDir, "data-dir", "", "data directory of the server (default: that of zoo.cfg, or ./zooraft-data)")
	f.DurationVar(&flags.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
	status := &cobra.Command{
		Use: "status", Short: "List the members and what changes",
		Args: usage(cobra.NoArgs),
		RunE: flags.run(func(ctx context.Context, out io.Writer, dir string, _ []string) error {
			s, err := admin.FetchEnsemble(ctx, dir)
			if err != nil {
				return err
			}
			return printEnsemble(out, s, flags.json)
		}),
	}
	status.Flags().BoolVar(&flags.json, "json", false, "print the whole answer as JSON")
	transfer := &cobra.Command{
		Use: "transfer [N]", Short: "Hand leadership over, to server N or to any",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: flags.run(func(ctx context.Context, out io.Writer, dir string, args []string) error {
			to := int64(-1)
			if len(args) > 0 {
				var err error
				if to, err = serverNumber(args[0]); err != nil {
					return err
				}
			}
			if err := admin.Transfer(ctx, dir, to); err != nil {
				return err
			}
			_, err := fmt.Fprintln(out, "leadership was handed over")
			return err
		}),
	}
	remove := &cobra.Command{
		Use: "remove N", Short: "Remove a member that is dead, so that the others need a smaller majority",
		Args: usage(cobra.ExactArgs(1)),
		RunE: flags.run(func(ctx context.Context, out io.Writer, dir string, args []string) error {
			id, err := serverNumber(args[0])
			if err == nil {
				err = admin.Remove(ctx, dir, id)
			}
			if err == nil {
				_, err = fmt.Fprintf(out, "server %d is no member; it will be one again if it comes back and the files still list it\n", id)
			}
			return err
		}),
	}
	cmd.AddCommand(status, transfer, remove)
	return cmd
}

// run finds the server and gives errors their exit codes.
func (f *ensembleFlags) run(do func(ctx context.Context, out io.Writer, dir string, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		var files []string
		if f.config != "" {
			files = append(files, f.config)
		}
		options := configOptions(cmd, files)
		options.DataDir = f.dataDir
		dir, err := config.OwnDataDir(options)
		if err != nil {
			return healthError{err, exitUnreachable}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		return withExitCode(do(ctx, cmd.OutOrStdout(), dir, args))
	}
}

func serverNumber(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, usageError{fmt.Errorf("%q is no number of a server", text)}
	}
	return id, nil
}

func printEnsemble(out io.Writer, s admin.EnsembleStatus, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	}
	leader := "none is known"
	if s.Leader >= 0 {
		leader = "server " + strconv.FormatInt(s.Leader, 10)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "this server\t%d\nleader\t%s\nensemble\t%s\ncommand level\t%s\n\nserver\trole\twanted\taddress\t\n", s.Server, leader, s.Cluster, commandLevel(&s))
	for _, m := range s.Members {
		note := ""
		switch {
		case m.ID == s.Leader:
			note = "leads"
		case s.Server == s.Leader && m.Follows:
			note = "follows"
		case s.Server == s.Leader:
			note = "does not follow"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", m.ID, m.Role, m.Wanted, m.Address, note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range []struct{ key, value string }{{"waits for", s.WaitsFor}, {"reason", s.Reason}, {"warning", s.Warning}} {
		if line.value != "" {
			if _, err := fmt.Fprintf(out, "%s: %s\n", line.key, line.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// commandLevel is the level in force, and who keeps it from rising.
func commandLevel(s *admin.EnsembleStatus) string {
	text := strconv.Itoa(s.CommandLevel)
	for i, id := range s.LevelWaitsFor {
		text += []string{", a higher one waits for server ", ", "}[min(i, 1)] + strconv.Itoa(id)
	}
	return text
}

// withExitCode tells a server that refuses from one that does not answer.
func withExitCode(err error) error {
	if errors.Is(err, admin.ErrUnreachable) {
		return healthError{err, exitUnreachable}
	}
	return err
}
