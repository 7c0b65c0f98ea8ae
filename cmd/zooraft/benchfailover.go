package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/bench"
)

// newFailoverCommand measures how long clients cannot write when a leader dies.
func newFailoverCommand() *cobra.Command {
	o := bench.DefaultFailoverOptions()
	var classPath, java, dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Kill leaders under load and measure how long no write is acknowledged",
		Long: `Kill leaders under load and measure how long no write is acknowledged.

It starts an ensemble of this program on loopback, and with --apache-class-path
one of Apache ZooKeeper beside it, both with the settings of Apache's sample
file. Clients write to all servers and go to another one when their connection
breaks. Each leader is killed in turn, kill -9, and started again.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Systems = []bench.System{{Name: "zooraft", Command: []string{self, "serve"}}}
			if classPath != "" {
				o.Systems = append(o.Systems, bench.System{Name: "apache", Command: []string{java, "-Dzookeeper.admin.enableServer=false",
					"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain"}})
			}
			if o.Dir = dir; dir == "" {
				if o.Dir, err = os.MkdirTemp("", "zooraft-failover-"); err != nil {
					return err
				}
				defer func() { _ = os.RemoveAll(o.Dir) }()
			}
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			results, err := bench.Failover(ctx, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(results)
			}
			return bench.WriteFailover(cmd.OutOrStdout(), results)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Kills, "kills", o.Kills, "how often each leader is killed")
	f.IntVar(&o.Servers, "servers", o.Servers, "servers of each ensemble")
	f.IntVar(&o.Connections, "connections", o.Connections, "clients, spread over the servers")
	f.IntVar(&o.Outstanding, "outstanding", o.Outstanding, "writes that each client keeps in work")
	f.DurationVar(&o.Rest, "rest", o.Rest, "time of load before each kill, and after writes have resumed")
	f.StringVar(&classPath, "apache-class-path", "", "class path of an Apache ZooKeeper to measure beside")
	f.StringVar(&java, "java", "java", "the Java to start it with")
	f.StringVar(&dir, "dir", "", fmt.Sprintf("directory for the servers' files, kept afterwards; default: one below %s, removed", os.TempDir()))
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
