package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zooraft/zooraft/internal/shell"
)

// newManCommand prints the manual page, made from the tree of commands.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page",
		Args:  usage(cobra.NoArgs),
		Example: `  zooraft man | man -l -
  zooraft man > /usr/local/share/man/man1/zooraft.1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var page strings.Builder
			writeManual(&page, cmd.Root())
			_, err := io.WriteString(cmd.OutOrStdout(), page.String())
			return err
		},
	}
}

// writeManual writes the page in roff's man macros.
func writeManual(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, ".TH ZOORAFT 1 \"\" %s\n", roffQuote("zooraft "+versionText()))
	fmt.Fprintf(w, ".SH NAME\nzooraft \\- %s\n", roffText(root.Short))
	fmt.Fprint(w, ".SH SYNOPSIS\n.B zooraft\n.I command\n[flags] [arguments]\n")
	if root.Long != "" {
		fmt.Fprintf(w, ".SH DESCRIPTION\n%s\n", roffText(root.Long))
	}
	fmt.Fprint(w, ".SH COMMANDS\n")
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" {
			writeManualCommand(w, cmd)
		}
	}
	writeShellCommands(w)
}

func writeManualCommand(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, ".SS %s\n", roffQuote(cmd.CommandPath()))
	fmt.Fprintf(w, ".B %s\n.PP\n", roffText(cmd.UseLine()))
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(w, "%s\n", roffText(about))
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, help := pflag.UnquoteUsage(f)
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roffText(strings.TrimSpace(name+" "+kind)), roffText(help))
	})
	if cmd.Example != "" {
		fmt.Fprintf(w, ".PP\nExamples:\n.PP\n.nf\n%s\n.fi\n", roffText(cmd.Example))
	}
	for _, below := range cmd.Commands() {
		writeManualCommand(w, below)
	}
}

// writeShellCommands describes the commands inside of `zooraft shell`.
func writeShellCommands(w io.Writer) {
	fmt.Fprint(w, ".SH COMMANDS OF THE SHELL\n")
	for _, name := range shell.Names() {
		text, err := shell.Help(name)
		if err != nil {
			continue // Names and Help read the same table
		}
		fmt.Fprintf(w, ".SS %s\n.nf\n%s\n.fi\n", roffQuote(name), roffText(strings.TrimSpace(text)))
	}
}

// roffText keeps roff from reading text as its own: backslashes, hyphens, and
// what stands for a request at the start of a line.
func roffText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(strings.TrimRight(text, "\n"))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".sp"
		case line[0] == '.' || line[0] == '\'':
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func roffQuote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
