package shell

import (
	"context"
	"slices"
	"strings"
)

// CompleteCommand returns the names of commands that begin with a prefix.
func CompleteCommand(prefix string) []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// CompleteWord returns what the last word of a line can become: a command, a
// flag of the line's command, or a path, for which the server is asked.
func (sh *Shell) CompleteWord(ctx context.Context, line []string) []string {
	last := line[len(line)-1]
	if len(line) == 1 {
		return CompleteCommand(last)
	}
	cmd := findCommand(line[0])
	switch {
	case strings.HasPrefix(last, "/"):
		return sh.completePath(ctx, last)
	case line[0] == "help":
		return CompleteCommand(last)
	case cmd != nil && strings.HasPrefix(last, "-"):
		var flags []string
		for _, f := range append(slices.Clone(cmd.flags), globalFlags...) {
			name, _, _ := strings.Cut(f.String(), " ")
			if strings.HasPrefix(name, last) {
				flags = append(flags, name)
			}
		}
		return flags
	case cmd != nil && last == "" && cmd.min > 0:
		return []string{"/"}
	}
	return nil
}

// completePath returns the paths that a beginning of one can become.
func (sh *Shell) completePath(ctx context.Context, begun string) []string {
	session, err := sh.current()
	if err != nil {
		return nil
	}
	slash := strings.LastIndexByte(begun, '/')
	parent := begun[:max(slash, 1)]
	names, _, err := session.Children(ctx, parent, false)
	if err != nil {
		return nil // a completion has nobody to complain to
	}
	var paths []string
	for _, name := range names {
		if strings.HasPrefix(name, begun[slash+1:]) {
			paths = append(paths, join(parent, name))
		}
	}
	slices.Sort(paths)
	return paths
}
