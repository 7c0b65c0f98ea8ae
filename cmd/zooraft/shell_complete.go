package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zooraft/zooraft/internal/shell"
)

// completionPatience bounds how long the completion of a path asks a server: a
// user waits at the prompt.
const completionPatience = 2 * time.Second

// completeShell completes the commands of the shell, and paths by asking the
// server that the flags name.
func completeShell(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	given := shell.Values{}
	for _, s := range shell.Settings {
		flag := cmd.Flags().Lookup(s.Name)
		if value, ok := flag.Value.(*settingValue); ok && flag.Changed {
			given[s.Name] = *value.values // cobra parses the words twice
		}
	}
	if len(args) == 0 {
		return shell.CompleteCommand(word), cobra.ShellCompDirectiveNoFileComp
	}
	config, err := shell.Resolve(given, os.Getenv)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	sh := shell.New(config, shell.Streams{})
	defer sh.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	words := sh.CompleteWord(ctx, append(args, word))
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
