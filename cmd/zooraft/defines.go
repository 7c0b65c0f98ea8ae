package main

import (
	"context"

	"github.com/spf13/cobra"
)

// definesKey is the context key of the -D arguments.
type definesKey struct{}

func withDefines(ctx context.Context, defines []string) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, definesKey{}, defines)
}

// definesOf returns the -D arguments of the command line, without the -D.
func definesOf(cmd *cobra.Command) []string {
	defines, _ := cmd.Context().Value(definesKey{}).([]string)
	return defines
}

func flagError(_ *cobra.Command, err error) error { return usageError{err} }

// usage makes a wrong number of arguments a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
