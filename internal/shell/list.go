package shell

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func listCommands() []*command {
	return []*command{
		{
			name: "ls", synopsis: "[-s] [-w] [-R] path", summary: "List the children of a node",
			flags: []flag{
				{name: "?", help: "help"},
				{name: "s", help: "stat"},
				{name: "w", help: "watch"},
				{name: "R", help: "recurse"},
			},
			min: 1, max: -1, run: runLs,
			examples: []string{
				"ls /                                  # [app, zookeeper]",
				"ls -R /app | wc -l                    # one path a line, in bounded memory",
			},
		},
		{
			name: "getAllChildrenNumber", synopsis: "path", summary: "Print how many nodes are below a node",
			min: 1, max: -1, run: runAllChildren,
			examples: []string{"getAllChildrenNumber /                # also where a listing would be too long"},
		},
		{
			name: "getEphemerals", synopsis: "path", summary: "Print the ephemeral nodes of this session",
			max: -1, run: runEphemerals,
			examples: []string{"getEphemerals /app                    # those whose path begins with /app"},
		},
	}
}

func runLs(ctx context.Context, in *invocation) error {
	if in.has("?") {
		_, err := io.WriteString(in.sh.out, in.command.help())
		return err
	}
	path, err := in.path(0)
	if err != nil {
		return err
	}
	watch := in.has("w")
	if len(in.args) > 1 {
		in.warnOld("ls path [watch]", "ls [-w] path")
		watch = true
	}
	if in.has("R") {
		return in.listTree(ctx, path, watch)
	}
	names, stat, err := in.session.Children(ctx, path, watch)
	if err != nil {
		return err
	}
	slices.SortFunc(names, compareJava)
	value := struct {
		Path     string    `json:"path"`
		Children []string  `json:"children"`
		Stat     *statJSON `json:"stat,omitempty"`
	}{Path: path, Children: names}
	if in.has("s") {
		value.Stat = statValue(&stat)
	}
	return in.answer(value, func(w io.Writer) {
		fmt.Fprintf(w, "[%s]\n", strings.Join(names, ", "))
		if in.has("s") {
			printStat(w, &stat)
		}
	})
}

// compareJava orders names as Java's strings do, by UTF-16 units: only names
// beyond the basic plane differ from the order of bytes.
func compareJava(a, b string) int {
	units := func(s string) []rune {
		var out []rune
		for _, r := range s {
			if r >= 0x10000 {
				r -= 0x10000
				out = append(out, 0xd800+r>>10, 0xdc00+r&0x3ff)
				continue
			}
			out = append(out, r)
		}
		return out
	}
	if ascii(a) && ascii(b) {
		return strings.Compare(a, b)
	}
	return slices.Compare(units(a), units(b))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// listTree prints the paths of a subtree in zkCli's order: the children of a
// node one after the other, then what is below each.
func (in *invocation) listTree(ctx context.Context, root string, watch bool) error {
	p := in.sh.progress("nodes listed", true)
	defer p.done()
	count := 0
	print := func(path string) error {
		count++
		p.add(1)
		return in.say(map[string]string{"path": path}, "%s", path)
	}
	if watch {
		if _, _, err := in.session.Get(ctx, root, true); err != nil {
			return err
		}
	}
	return walk(ctx, in.session, root, visitor{
		enter: func(node *walked) (bool, error) {
			if node.depth > 0 {
				return true, nil
			}
			return true, print(node.path)
		},
		children: func(node *walked) error {
			if watch {
				if _, _, err := in.session.Children(ctx, node.path, true); err != nil && client.Code(err) != proto.ErrNoNode {
					return err
				}
			}
			for _, name := range node.children {
				if err := print(join(node.path, name)); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func runAllChildren(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	n, err := in.session.AllChildrenNumber(ctx, path)
	if err != nil {
		return err
	}
	return in.say(map[string]any{"path": path, "count": n}, "%d", n)
}

func runEphemerals(ctx context.Context, in *invocation) error {
	prefix := "/"
	if len(in.args) > 0 {
		var err error
		if prefix, err = in.path(0); err != nil {
			return err
		}
	}
	paths, err := in.session.Ephemerals(ctx, prefix)
	if err != nil {
		return err
	}
	return in.say(map[string]any{"ephemerals": append([]string{}, paths...)}, "[%s]", strings.Join(paths, ", "))
}
