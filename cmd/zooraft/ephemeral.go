package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zooraft/zooraft/internal/control"
	"github.com/zooraft/zooraft/zktest"
)

// noControlPort says that there is none.
const noControlPort = -1

// ephemeralFlags are the flags of serve that go with --ephemeral only.
type ephemeralFlags struct {
	on             bool
	servers        int
	controlPort    int
	manualClock    bool
	untilStdinEnds bool
}

// ephemeralOnly are the names of those flags, and notEphemeral of those that do
// not go with it.
var (
	ephemeralOnly = []string{"servers", "control-port", "manual-clock", "until-stdin-ends"}
	notEphemeral  = []string{"data-dir", "allow-unprotected"}
)

func (e *ephemeralFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&e.on, "ephemeral", false, "run a server for tests: in memory, on a free port of 127.0.0.1 unless --listen says otherwise")
	f.IntVar(&e.servers, "servers", 1, "with --ephemeral: how many servers, as an ensemble")
	f.IntVar(&e.controlPort, "control-port", noControlPort,
		"with --ephemeral: port of 127.0.0.1 for faults on demand over HTTP (0 takes a free port; without it there is none)")
	f.BoolVar(&e.manualClock, "manual-clock", false, "with --ephemeral: time stands still until the control port moves it")
	f.BoolVar(&e.untilStdinEnds, "until-stdin-ends", false,
		"with --ephemeral: stop when the standard input ends, as it does when the test that started the server dies")
}

// check refuses flags that would have no effect.
func (f *serveFlags) check(cmd *cobra.Command, args []string) error {
	wrong := ephemeralOnly
	if f.ephemeral.on {
		wrong = notEphemeral
	}
	for _, name := range wrong {
		if cmd.Flags().Changed(name) {
			return usageError{fmt.Errorf("--%s goes only %s --ephemeral", name, map[bool]string{false: "with", true: "without"}[f.ephemeral.on])}
		}
	}
	e := &f.ephemeral
	switch {
	case !e.on:
		return nil
	case len(args) > 0 || len(definesOf(cmd)) > 0:
		return usageError{errors.New("--ephemeral takes no zoo.cfg, no positional arguments and no -D")}
	case e.servers < 1 || e.servers > 254:
		return usageError{fmt.Errorf("--servers is %d, want 1 to 254", e.servers)}
	case e.servers > 1 && f.listen != "":
		return usageError{errors.New("--listen is for one server; several take free ports")}
	case e.controlPort < noControlPort || e.controlPort > 65535:
		return usageError{fmt.Errorf("--control-port is %d, want 0 to 65535", e.controlPort)}
	}
	return nil
}

// serveEphemeral runs servers in memory until the context ends.
func serveEphemeral(ctx context.Context, flags *serveFlags, logger *slog.Logger, in io.Reader, out io.Writer) (err error) {
	e := &flags.ephemeral
	options := []zktest.Option{zktest.Logger(logger)}
	if flags.listen != "" {
		options = append(options, zktest.Listen(listenAddress(flags.listen)))
	}
	if e.manualClock {
		options = append(options, zktest.ManualClock())
	}
	ensemble, err := zktest.StartEnsemble(e.servers, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ensemble.Stop()) }()
	text := strings.Join(ports(ensemble.Addrs()), ",") + "\n"
	line := fmt.Sprintf("zooraft listens on %s, data in memory; connect with: zkCli.sh -server %[1]s", ensemble.ConnectString())
	if e.controlPort != noControlPort {
		port, err := control.Open(e.controlPort, ensemble)
		if err != nil {
			return err
		}
		defer port.Close()
		text += strconv.Itoa(port.Number()) + "\n"
		line += "; control port: " + port.URL()
	}
	if flags.portFile != "" {
		if err := writeWhole(flags.portFile, text); err != nil {
			return fmt.Errorf("port file: %w", err)
		}
	}
	fmt.Fprintln(out, line)
	ended := make(chan struct{})
	if e.untilStdinEnds {
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, in) // an error ends it as well
		}()
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return nil
}

// listenAddress makes host:port of what --listen takes.
func listenAddress(text string) string {
	if _, err := strconv.Atoi(text); err == nil {
		return ":" + text
	}
	return text
}

// ports are the numbers of addresses.
func ports(addresses []string) []string {
	var all []string
	for _, a := range addresses {
		_, port, _ := net.SplitHostPort(a) // an address of ours always splits
		all = append(all, port)
	}
	return all
}

// writeWhole writes a file that appears whole or not at all.
func writeWhole(path, text string) error {
	temp := path + ".tmp"
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
