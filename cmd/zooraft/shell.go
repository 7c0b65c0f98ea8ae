package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zooraft/zooraft/internal/shell"
)

// shellError is the error of a command of the shell, which has printed it.
type shellError struct{ error }

func (e shellError) ExitCode() int { return shell.ExitCode(e.error) }
func (e shellError) Unwrap() error { return e.error }
func (shellError) printed()        {}

// shellFlags are the flags of the shell that are no settings of a connection.
type shellFlags struct {
	json   bool
	wait   time.Duration
	waitZk bool
}

// newShellCommand is the shell: interactive, or one command.
func newShellCommand() *cobra.Command {
	var flags shellFlags
	values := map[string]*[]string{}
	cmd := &cobra.Command{
		Use:   "shell [-server host:port,...] [command ...]",
		Short: "A shell for any ZooKeeper: zkCli.sh's commands and more",
		Long: `A shell for any ZooKeeper, Apache's or ours: zkCli.sh's commands and more.

With a command it runs that and ends. Without one it reads lines: at a terminal
with history and completion, else from standard input. Standard output has
nothing but answers. "zooraft shell help" lists the commands, and needs no
server; every command has --help.

Flags stand before the command, with one dash or two. Each setting of the
connection can come from the environment (ZOORAFT_SERVER, ZOORAFT_TLS_CA, ...)
or from a cluster of the file ~/.config/zooraft/clusters.conf.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 no connection, 4 no such
node, 5 node exists, 6 wrong version, 7 not permitted, 8 node has children,
9 session expired, 10 diff found differences, 127 no such command.`,
		Example: `  zooraft shell                                   # interactive, localhost:2181
  zooraft shell -server zk1:2181,zk2:2181 ls /    # one command
  zooraft shell --json get /app                   # an answer for scripts
  zooraft shell --wait 30s create /app data       # once a server is there
  zooraft shell --cluster prod watch /app         # follow changes`,
		ValidArgsFunction: completeShell,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := shell.Values{}
			for name, value := range values {
				if cmd.Flags().Changed(name) {
					given[name] = *value
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			err := runShell(ctx, given, flags, args, shellStreams(cmd))
			if err != nil {
				return shellError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	for _, s := range shell.Settings {
		values[s.Name] = addSetting(cmd, s)
	}
	f.BoolVar(&flags.json, "json", false, "answer in JSON, one value a line")
	f.DurationVar(&flags.wait, "wait", 0, "wait for a connection, this long or (without a value) for ever")
	f.Lookup("wait").NoOptDefVal = "-1s"
	f.BoolVar(&flags.waitZk, "waitforconnection", false, "wait for a connection as long as the session timeout (zkCli.sh's)")
	return cmd
}

// addSetting adds the flag of a setting. All values are kept as text: what they
// mean is the shell's to say, because they come from elsewhere as well.
func addSetting(cmd *cobra.Command, s shell.Setting) *[]string {
	value := &[]string{}
	v := &settingValue{values: value, arg: s.Arg}
	flag := cmd.Flags().VarPF(v, s.Name, "", fmt.Sprintf("%s ($%s)", s.Help, s.Variable()))
	flag.DefValue = s.Default
	if s.Arg == "" {
		flag.NoOptDefVal = "true"
	}
	return value
}

// settingValue is a flag that keeps every value it is given.
type settingValue struct {
	values *[]string
	arg    string
}

func (v *settingValue) String() string { return strings.Join(*v.values, " ") }
func (v *settingValue) Type() string   { return v.arg }
func (v *settingValue) Set(text string) error {
	*v.values = append(*v.values, text)
	return nil
}

// zkDashes gives the shell's own flags, which zkCli.sh writes with one dash, the
// two that pflag needs, and lets --wait take its value from the next word.
func zkDashes(args []string) []string {
	if len(args) > 1 && strings.HasPrefix(args[0], "__complete") {
		return append(args[:1:1], zkDashes(args[1:])...)
	}
	if len(args) == 0 || args[0] != "shell" {
		return args
	}
	known := []string{"json", "wait", "waitforconnection", "help"}
	takes := map[string]bool{}
	for _, s := range shell.Settings {
		known = append(known, s.Name)
		takes[s.Name] = s.Arg != ""
	}
	out := []string{"shell"}
	for i := 1; i < len(args); i++ {
		word := args[i]
		name, _, assigned := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if len(word) < 2 || word[0] != '-' || word == "--" || !slices.Contains(known, name) {
			return append(out, args[i:]...)
		}
		word = "--" + strings.TrimLeft(word, "-")
		_, isTime := time.ParseDuration(strings.Join(args[min(i+1, len(args)):min(i+2, len(args))], ""))
		switch {
		case name == "wait" && !assigned && i+1 < len(args) && isTime == nil:
			i++
			word += "=" + args[i]
		case takes[name] && !assigned && i+1 < len(args):
			i++
			word += "=" + args[i]
		}
		out = append(out, word)
	}
	return out
}

// shellStreams are the process's streams, or those that a test hands in.
func shellStreams(cmd *cobra.Command) shell.Streams {
	s := shell.Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
	s.InTerminal, s.OutTerminal, s.ErrTerminal = isTerminal(s.In), isTerminal(s.Out), isTerminal(s.Err)
	if s.InTerminal {
		s.ReadPassword = func(prompt string) (string, error) {
			fmt.Fprint(s.Err, prompt)
			text, err := term.ReadPassword(int(os.Stdin.Fd()))
			fmt.Fprintln(s.Err)
			return string(text), err
		}
	}
	return s
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// runShell runs one command, an interactive shell, or the lines of standard
// input.
func runShell(ctx context.Context, given shell.Values, flags shellFlags, args []string, streams shell.Streams) error {
	config, err := shell.Resolve(given, os.Getenv)
	if err == nil {
		err = config.CompleteAuths(streams.ReadPassword)
	}
	if err != nil {
		fmt.Fprintf(streams.Err, "zooraft: %s\n", shell.Message(err))
		return err
	}
	config.JSON, config.Version, config.Wait = flags.json, versionText(), flags.wait
	if flags.waitZk {
		config.Wait = config.Timeout
	}
	config.HistoryFile = shell.HistoryFile(os.Getenv)
	lines := bufio.NewReader(streams.In)
	if len(args) == 0 && !streams.InTerminal {
		streams.In = lines // so that a command takes the lines that follow it
	}
	sh := shell.New(config, streams)
	defer sh.Close()
	switch {
	case len(args) > 0:
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT)
		defer stop()
		return sh.Run(ctx, args)
	case streams.InTerminal && streams.OutTerminal:
		return sh.Interactive(ctx)
	}
	return sh.Lines(ctx, func() (string, error) {
		line, err := lines.ReadString('\n')
		if err == io.EOF && line != "" {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}
