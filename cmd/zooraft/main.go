// Command zooraft is a coordination server that ZooKeeper clients take for a
// ZooKeeper, and the tools that go with it.
//
// This package owns the command line: one file for each subcommand, each with a
// function that makes its cobra command. It may use every other package and
// holds no logic that another one could want.
package main

import (
	"os"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// newRootCommand returns the command with all its subcommands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "zooraft",
		Short:         "A coordination server that ZooKeeper clients take for a ZooKeeper",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true // ours names three shells
	root.AddCommand(
		newBenchCommand(),
		newCompletionCommand(),
		newConfigCommand(),
		newEnsembleCommand(),
		newHealthCommand(),
		newManCommand(),
		newMoveLogCommand(),
		newRecoverCommand(),
		newServeCommand(),
		newShellCommand(),
		newVersionCommand(),
	)
	return root
}
