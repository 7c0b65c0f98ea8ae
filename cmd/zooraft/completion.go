package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// bashWords stands in for the one function that cobra's script needs of the
// package bash-completion, which many machines do not have: the words up to the
// cursor, split at blanks and not at the = and : that bash splits at too. The
// caller's local variables receive them.
const bashWords = `if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    _get_comp_words_by_ref()
    {
        local rest=${COMP_LINE:0:COMP_POINT} bare i part
        words=()
        for ((i = 0; i <= COMP_CWORD; i++)); do
            bare=${rest#"${rest%%[![:space:]]*}"}
            part=${COMP_WORDS[i]}
            if ((i == COMP_CWORD)); then part=$bare; fi
            if ((i > 0)) && [[ $bare == "$rest" ]]; then
                words[${#words[@]}-1]+=$part
            else
                words+=("$part")
            fi
            rest=${bare#"$part"}
        done
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`

func bashCompletion(root *cobra.Command, out io.Writer) error {
	if _, err := io.WriteString(out, bashWords); err != nil {
		return err
	}
	return root.GenBashCompletionV2(out, true)
}

// newCompletionCommand prints the script that makes a shell complete this
// program's command line, the shell's commands and paths included.
func newCompletionCommand() *cobra.Command {
	scripts := map[string]func(root *cobra.Command, out io.Writer) error{
		"bash": bashCompletion,
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
