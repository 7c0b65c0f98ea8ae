package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/bench"
)

// newBenchCommand measures any server that speaks ZooKeeper's protocol.
func newBenchCommand() *cobra.Command {
	o := bench.DefaultOptions("127.0.0.1:2181")
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "bench [workload ...]",
		Short: "Measure a ZooKeeper or zooraft server under load",
		Long: `Measure a ZooKeeper or zooraft server under load.

Each connection keeps a fixed number of requests in work and sends the next one
when an answer comes; or, with --rate, requests are sent by the clock, and their
latency counts from when they were due. Each result says how much of the machine
this program used itself. Everything happens below --root, which is made before and
deleted after. A server that limits the connections from one address
(maxClientCnxns) must allow as many as are asked for.

Workloads, all of them unless some are named:
  ` + strings.Join(bench.About(), "\n  "),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Workloads = args
			}
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			// An interrupt ends the load, and what was made is deleted all the same.
			o.Progress = func(line string) { cmd.PrintErrln(line) }
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			begin := time.Now()
			results, err := bench.Run(ctx, o)
			if page != "" && err == nil {
				err = writePage(page, o, begin, results)
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				if results == nil {
					results = []bench.Result{}
				}
				if writeErr := encoder.Encode(results); err == nil {
					err = writeErr
				}
				return err
			}
			if writeErr := bench.WriteTable(cmd.OutOrStdout(), results); err == nil {
				err = writeErr
			}
			return err
		},
	}
	benchFlags(cmd, &o)
	cmd.AddCommand(newFailoverCommand())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&page, "html", "", "file for a report with plots, too")
	return cmd
}

// writePage writes the report that a browser shows.
func writePage(path string, o bench.Options, begin time.Time, results []bench.Result) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(bench.WriteHTML(file, o, begin, results), file.Close())
}

func benchFlags(cmd *cobra.Command, o *bench.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Addr, "addr", o.Addr, "client addresses of the servers, host:port with commas between; connections are spread over them")
	f.IntVar(&o.Connections, "connections", o.Connections, "connections, each with a session of its own")
	f.IntVar(&o.Outstanding, "outstanding", o.Outstanding, "requests that each connection keeps in work")
	f.Float64Var(&o.Rate, "rate", o.Rate, "requests in a second, sent by the clock (open loop); 0 for as many as --outstanding allows")
	f.IntVar(&o.Watchers, "watchers", o.Watchers, "sessions of the workloads watches and sessions")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often watches and ephemerals are measured, at least")
	f.DurationVar(&o.Timeline, "timeline", o.Timeline, "length of the slices of time to give results by, too; 0 for none")
	f.BoolVar(&o.Keep, "keep", o.Keep, "leave the nodes, of fill for instance")
	f.BoolVar(&o.Filled, "filled", o.Filled, "have reads and writes choose from the nodes that fill has left, with the same --root, --nodes and --flat")
	f.IntVar(&o.WatchesEach, "watches-each", o.WatchesEach, "nodes that each session of the workload sessions watches")
	f.BoolVar(&o.Flat, "flat", o.Flat, "have fill make all nodes children of one")
	f.IntVar(&o.ValueSize, "value-size", o.ValueSize, "bytes of data in a node")
	f.IntVar(&o.Nodes, "nodes", o.Nodes, "nodes that reads and writes choose from, that fill makes, that end with their session in ephemerals")
	f.DurationVar(&o.WarmUp, "warm-up", o.WarmUp, "time before measuring")
	f.DurationVar(&o.Duration, "duration", o.Duration, "time of measuring, for each workload")
	f.Int64Var(&o.Requests, "requests", o.Requests, "stop a workload after that many answers; 0 for none")
	f.StringVar(&o.Root, "root", o.Root, "node below which everything happens")
	f.DurationVar(&o.SessionTimeout, "session-timeout", o.SessionTimeout, "session timeout to ask for")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the choice of nodes")
}
