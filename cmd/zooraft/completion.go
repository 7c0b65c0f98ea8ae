package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// newCompletionCommand prints the script that makes a shell complete this
// program's command line, the shell's commands and paths included.
func newCompletionCommand() *cobra.Command {
	scripts := map[string]func(root *cobra.Command, out io.Writer) error{
		"bash": func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
		"zsh":  func(root *cobra.Command, out io.Writer) error { return root.GenZshCompletion(out) },
		"fish": func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
	}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print the completion script of a shell",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      usage(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		Example: `  source <(zooraft completion bash)
  zooraft completion zsh > "${fpath[1]}/_zooraft"
  zooraft completion fish > ~/.config/fish/completions/zooraft.fish`,
		RunE: func(cmd *cobra.Command, args []string) error {
			script, known := scripts[args[0]]
			if !known {
				return usageError{fmt.Errorf("no completion for %s", args[0])}
			}
			return script(cmd.Root(), cmd.OutOrStdout())
		},
	}
}
