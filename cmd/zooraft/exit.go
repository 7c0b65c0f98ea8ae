package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zooraft/zooraft/internal/config"
)

// exitCoder is an error that knows the exit code of the process.
type exitCoder interface{ ExitCode() int }

// usageError is a wrong command line.
type usageError struct{ error }

func (usageError) ExitCode() int { return config.ExitInvalid }

// exitCode is the one place that turns an error into an exit code.
func exitCode(err error) int {
	var coder exitCoder
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coder):
		return coder.ExitCode()
	case strings.HasPrefix(err.Error(), "unknown command"):
		return config.ExitInvalid // cobra has no type for it
	}
	return config.ExitUnexpected
}

// printed tells whether an error has been shown by the command itself.
func printed(err error) bool {
	var shown interface{ printed() }
	return errors.As(err, &shown)
}

// run executes a command line. -Dname=value arguments are taken out first and
// handed to the commands through the context.
func run(args []string, stdout, stderr io.Writer) int {
	defines, rest := []string(nil), zkDashes(args)
	if len(args) == 0 || args[0] != "shell" { // whose words may look like anything
		defines, rest = config.SplitDefines(rest)
	}
	root := newRootCommand()
	root.SetArgs(rest)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	err := root.ExecuteContext(withDefines(root.Context(), defines))
	if err != nil && !printed(err) {
		fmt.Fprintf(stderr, "zooraft: %s\n", strings.TrimPrefix(err.Error(), "zooraft: "))
	}
	return exitCode(err)
}
