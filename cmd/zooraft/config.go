package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/config"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at a configuration",
		Args:  usage(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheckCommand())
	return cmd
}

// newConfigCheckCommand prints what `serve` with the same arguments would use.
// It exits as `serve` would if that refused to start.
func newConfigCheckCommand() *cobra.Command {
	var allowUnprotected bool
	cmd := &cobra.Command{
		Use:   "check [zoo.cfg | clientPort dataDir [tickTime [maxClientCnxns]]] [-Dname=value ...]",
		Short: "Print the effective configuration, where each value comes from, and what has no effect",
		Args:  usage(cobra.MaximumNArgs(4)),
		RunE: func(cmd *cobra.Command, args []string) error {
			options := configOptions(cmd, args)
			options.AllowUnprotected = allowUnprotected
			effective, report, err := config.Load(options)
			if writeErr := report.Write(cmd.OutOrStdout()); writeErr != nil {
				return writeErr
			}
			if err != nil {
				fmt.Fprintln(cmd.OutOrStdout(), "\nThe server would not start:")
				return err
			}
			return effective.Storage.CheckDirs()
		},
	}
	cmd.Flags().BoolVar(&allowUnprotected, "allow-unprotected", false,
		"accept settings that ask for protection which this version does not have")
	return cmd
}

// configOptions reads arguments as Apache does: one is a file, two to four are
// clientPort dataDir [tickTime [maxClientCnxns]].
func configOptions(cmd *cobra.Command, args []string) config.Options {
	options := config.Options{Defines: definesOf(cmd), Environ: os.Environ()}
	if len(args) == 1 {
		options.File = args[0]
	} else {
		options.Args = args
	}
	return options
}
