package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/config"
)

// Exit codes of `zooraft health`. A probe needs to tell a server that waits
// from one that is gone.
const (
	exitNotHealthy  = 1 // the server answers and is not ready (with --live: not live)
	exitUnreachable = 2 // no server answers, or the command line is wrong
)

// errNotHealthy is returned when the server answers that it is not ready, or
// with --live not live.
var errNotHealthy = errors.New("not healthy")

// healthError is a result of health with its exit code.
type healthError struct {
	error
	code int
}

func (e healthError) ExitCode() int { return e.code }
func (e healthError) Unwrap() error { return e.error }

// healthFlags are the flags of health.
type healthFlags struct {
	dataDir    string
	live, json bool
	timeout    time.Duration
}

// newHealthCommand asks the server of a data directory, over its admin socket,
// whether it lives and is ready.
func newHealthCommand() *cobra.Command {
	var flags healthFlags
	cmd := &cobra.Command{
		Use:   "health [zoo.cfg]",
		Short: "Ask the local server whether it is ready, through its admin socket",
		Long: `Ask the local server whether it is ready, through its admin socket.

The server is found by its data directory: that of zoo.cfg, or --data-dir, or
./zooraft-data. Exit code 0: ready. 1: it answers and is not ready (with --live:
not live); the reason is printed. 2: no server answers, or the command line is
wrong.`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			options := configOptions(cmd, args)
			options.DataDir = flags.dataDir
			return health(cmd.Context(), cmd.OutOrStdout(), flags, func() (string, error) {
				return config.OwnDataDir(options)
			})
		},
	}
	cmd.Flags().StringVar(&flags.dataDir, "data-dir", "", "data directory of the server (default: that of zoo.cfg, or ./zooraft-data)")
	cmd.Flags().BoolVar(&flags.live, "live", false, "judge only whether the server lives, as a liveness probe does")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the whole answer as JSON")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

func health(ctx context.Context, out io.Writer, flags healthFlags, directory func() (string, error)) error {
	dir, err := directory()
	if err != nil {
		return healthError{err, exitUnreachable}
	}
	ctx, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	h, err := admin.FetchHealth(ctx, dir)
	if err != nil {
		return healthError{err, exitUnreachable}
	}
	if err := printHealth(out, h, flags.json); err != nil {
		return err
	}
	if (flags.live && !h.Live) || (!flags.live && !h.Ready) {
		return healthError{fmt.Errorf("%w: %s", errNotHealthy, h.Reason), exitNotHealthy}
	}
	return nil
}

func printHealth(out io.Writer, h admin.Health, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(h)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	_, err := fmt.Fprintf(out, "live: %s\nready: %s\n", yes[h.Live], yes[h.Ready])
	for _, line := range []struct{ key, value string }{
		{"reason", h.Reason}, {"mode", h.Mode}, {"address", h.Address}, {"zxid", h.Zxid.String()},
		{"command level", strconv.Itoa(h.CommandLevel)},
		{"warning", h.Warning},
	} {
		if err == nil && line.value != "" {
			_, err = fmt.Fprintf(out, "%s: %s\n", line.key, line.value)
		}
	}
	return err
}
