package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// command is one command of the shell. Everything that help, completion and
// the man page say comes from here.
type command struct {
	name     string
	synopsis string // zkCli's, for a command that it has
	summary  string // one sentence without a full stop
	beyond   bool   // zkCli has no such command
	flags    []flag
	// exclusive names flags of which only one may be given.
	exclusive []string
	min, max  int // how many arguments; max -1 for any number
	// offline commands run without a session.
	offline bool
	// usageFlags adds the flags to the usage message, as zkCli does for some.
	usageFlags bool
	detail     string   // more sentences for the help
	examples   []string // each a line, with a # comment
	run        func(ctx context.Context, in *invocation) error
}

// globalFlags work in every command.
var globalFlags = []flag{
	{name: "json", help: "answer in JSON, one value a line", long: true},
	{name: "help", help: "describe the command", long: true},
}

// allCommands lists the commands of all files.
func allCommands() []*command {
	return slices.Concat(
		nodeCommands(), listCommands(), deleteCommands(), aclCommands(), quotaCommands(), ensembleCommands(),
		watchCommands(), ownCommands(), treeCommands(), findCommands(), copyCommands(), diffCommands(), editCommands(),
		dumpCommands(), whoCommands(), topCommands(),
	)
}

// findCommand returns a command by its name, or nil.
func findCommand(name string) *command {
	for _, c := range allCommands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// Names returns the names of all commands in order.
func Names() []string {
	var names []string
	for _, c := range allCommands() {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

// usage is what a command says when its words are wrong.
func (c *command) usage() string {
	text := c.name + " " + c.synopsis
	if !c.usageFlags {
		return text
	}
	var zk []flag
	width := 0
	for _, f := range c.flags {
		if !f.long {
			zk = append(zk, f)
			width = max(width, len(usageFlag(f)))
		}
	}
	slices.SortFunc(zk, func(a, b flag) int { return strings.Compare(a.name, b.name) })
	lines := []string{text}
	for _, f := range zk {
		lines = append(lines, fmt.Sprintf(" %-*s   %s", width, usageFlag(f), f.help))
	}
	return strings.Join(lines, "\n") + "\n"
}

func usageFlag(f flag) string {
	if f.arg != "" {
		return "-" + f.name + " <arg>"
	}
	return "-" + f.name
}

// help describes a command with all its flags and examples.
func (c *command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n%s.\n", c.name, c.synopsis, c.summary)
	if c.detail != "" {
		fmt.Fprintf(&b, "%s\n", c.detail)
	}
	flags := append(slices.Clone(c.flags), globalFlags...)
	width := 0
	for _, f := range flags {
		width = max(width, len(f.String()))
	}
	b.WriteString("\nFlags:\n")
	for _, f := range flags {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, f, f.help)
	}
	if len(c.examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range c.examples {
			fmt.Fprintf(&b, "  %s\n", e)
		}
	}
	return b.String()
}

// Help describes a command, or lists all when name is empty.
func Help(name string) (string, error) {
	if name != "" {
		c := findCommand(name)
		if c == nil {
			return "", failf(ErrNoCommand, "Command not found: Command not found %s", name)
		}
		return c.help(), nil
	}
	var b strings.Builder
	for _, beyond := range []bool{false, true} {
		heading := "Commands of zkCli.sh:"
		if beyond {
			heading = "\nBeyond zkCli.sh:"
		}
		fmt.Fprintln(&b, heading)
		for _, n := range Names() {
			if c := findCommand(n); c.beyond == beyond {
				fmt.Fprintf(&b, "  %-20s  %s\n", c.name, c.summary)
			}
		}
	}
	b.WriteString("\nhelp COMMAND, or COMMAND --help, says more.\n")
	return b.String(), nil
}
