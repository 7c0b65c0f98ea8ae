package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft"
	"github.com/zooraft/zooraft/internal/config"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	listen, dataDir, portFile string
	allowUnprotected          bool
	keepMemory                bool
	verbose                   bool
	ephemeral                 ephemeralFlags
}

// newServeCommand runs a server until a signal stops it.
func newServeCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve [zoo.cfg | clientPort dataDir [tickTime [maxClientCnxns]]] [-Dname=value ...]",
		Short: "Run a server",
		Long: `Run a server.

Without arguments it listens on 127.0.0.1:2181 and keeps its data in
./zooraft-data. With a zoo.cfg, or with Apache's positional arguments, defaults
are those of Apache ZooKeeper. -Dname=value arguments, and those in
SERVER_JVMFLAGS and JVMFLAGS, are read as Java system properties.

With --ephemeral it is a server for tests: data in memory, a free port, and a
control port for faults if --control-port asks for one; docs/testing.md tells
about it. The port file then has the client ports in its first line, with commas
between them, and the control port in its second.

Exit codes: 0 stopped by a signal, 1 failed, 2 wrong command line or
configuration, 3 the data directory cannot be used.`,
		Args: usage(cobra.MaximumNArgs(4)),
		RunE: func(cmd *cobra.Command, args []string) error {
			options := configOptions(cmd, args)
			options.Listen, options.DataDir, options.PortFile = flags.listen, flags.dataDir, flags.portFile
			options.AllowUnprotected = flags.allowUnprotected
			// Who reads the log may go away; that is no reason to stop serving.
			signal.Ignore(syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := flags.check(cmd, args); err != nil {
				return err
			}
			logger := newLogger(cmd.ErrOrStderr(), flags.verbose)
			obeyMemoryLimit(os.DirFS("/"), logger)
			if flags.ephemeral.on {
				return serveEphemeral(ctx, &flags, logger, cmd.InOrStdin(), cmd.OutOrStdout())
			}
			go keepMemory(ctx, !flags.keepMemory)
			return serve(ctx, options, logger, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.listen, "listen", "", "address to listen on: host:port, :port or port (0 takes a free port)")
	f.StringVar(&flags.dataDir, "data-dir", "", "directory of the data")
	f.StringVar(&flags.portFile, "port-file", "", "file to which the client port is written once the server listens")
	f.BoolVar(&flags.allowUnprotected, "allow-unprotected", false,
		"accept settings that ask for protection which this version does not have")
	f.BoolVar(&flags.keepMemory, "keep-memory", false, "give no memory back to the system while nothing goes on")
	f.BoolVar(&flags.verbose, "verbose", false, "log every connection")
	flags.ephemeral.add(f)
	return cmd
}

func newLogger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// warningsOnly is for commands that print their result themselves.
func warningsOnly(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// dataError is an error of the data directory, with its exit code.
type dataError struct{ error }

func (dataError) ExitCode() int   { return config.ExitDataDir }
func (e dataError) Unwrap() error { return e.error }

// serve runs a server until the context ends or the server gives up.
func serve(ctx context.Context, options config.Options, logger *slog.Logger, out io.Writer) error {
	effective, report, err := config.Load(options)
	if report != nil {
		for _, w := range report.Warnings {
			logger.Warn(w.Text, "key", w.Key, "source", w.Source)
		}
	}
	if err != nil {
		return err
	}
	s, err := zooraft.Start(ctx, effective, zooraft.WithLogger(logger), zooraft.WithVersion(version))
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		logger.Info("stopped before the data were loaded", "detail", err)
		return nil
	}
	if err != nil {
		return markDataError(err)
	}
	select {
	case <-s.Ready():
		announce(out, s.Addresses().Client, effective)
	case <-ctx.Done():
	case <-s.Failed():
	}
	select {
	case <-ctx.Done():
		return s.Stop()
	case <-s.Failed():
		return markDataError(errors.Join(fmt.Errorf("the server gave up: %w", s.Err()), s.Stop()))
	}
}

// markDataError gives errors of the data directory their exit code.
func markDataError(err error) error {
	if errors.Is(err, zooraft.ErrData) {
		return dataError{err}
	}
	return err
}

// announce prints the one line that says where the server is and how to
// connect.
func announce(out io.Writer, addr net.Addr, c *config.Config) {
	_, port, _ := net.SplitHostPort(addr.String()) // an address of ours always splits
	host := c.Listen.Host
	if host == "" {
		host = "localhost"
	}
	dir := c.Storage.DataDir
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	fmt.Fprintf(out, "zooraft listens on %s, data in %s; connect with: zkCli.sh -server %s\n",
		addr, dir, net.JoinHostPort(host, port))
}
