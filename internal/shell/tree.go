package shell

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

func treeCommands() []*command {
	return []*command{
		{
			name: "tree", synopsis: "[--depth n] [path]", beyond: true, summary: "Draw a subtree with the sizes of its nodes",
			flags: []flag{{name: "depth", arg: "n", help: "draw this many levels below the node", long: true}},
			max:   1, run: runTree,
			examples: []string{"tree --depth 2 /app                   # name, bytes of data, owner of ephemerals"},
		},
	}
}

// treeNode is a node of tree as JSON.
type treeNode struct {
	Path     string `json:"path"`
	Depth    int    `json:"depth"`
	Bytes    int32  `json:"bytes"`
	Children int32  `json:"children"`
	Owner    string `json:"ephemeralOwner,omitempty"`
}

func runTree(ctx context.Context, in *invocation) error {
	root := "/"
	if len(in.args) > 0 {
		root = in.arg(0)
	}
	if err := checkPath(root, false); err != nil {
		return err
	}
	depth, err := in.number("depth", -1, 32)
	if err != nil {
		return err
	}
	var rails []string // for each level above the node, what is drawn in its column
	nodes, bytes := 0, int64(0)
	err = walk(ctx, in.session, root, visitor{enter: func(node *walked) (bool, error) {
		nodes++
		bytes += int64(node.stat.DataLength)
		line := ""
		if node.depth > 0 {
			rails = rails[:node.depth-1]
			branch, rail := "├── ", "│   "
			if node.last {
				branch, rail = "└── ", "    "
			}
			line = strings.Join(rails, "") + branch
			rails = append(rails, rail)
		}
		more := depth < 0 || int64(node.depth) < depth
		return more, in.drawNode(line, node, !more)
	}})
	if err != nil || in.json {
		return err
	}
	return in.say(nil, "%d nodes, %s", nodes, size(bytes))
}

// drawNode prints one node; hidden says that its children are not drawn.
func (in *invocation) drawNode(line string, node *walked, hidden bool) error {
	name := node.path
	if node.depth > 0 {
		name = path.Base(node.path)
	}
	value := treeNode{
		Path: node.path, Depth: node.depth, Bytes: node.stat.DataLength, Children: node.stat.NumChildren, Owner: owner(&node.stat),
	}
	notes := size(int64(node.stat.DataLength))
	if value.Owner != "" {
		notes += ", ephemeral of " + value.Owner
	}
	if hidden && value.Children > 0 {
		notes += fmt.Sprintf(", %d children", value.Children)
	}
	return in.answer(value, func(w io.Writer) { fmt.Fprintf(w, "%s%s [%s]\n", line, name, notes) })
}

// owner returns the session of an ephemeral, else empty.
func owner(stat *proto.Stat) string {
	if stat.EphemeralOwner == 0 {
		return ""
	}
	return hex(stat.EphemeralOwner)
}

// size prints a number of bytes as people read it.
func size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, "KiB"
	for _, larger := range []string{"MiB", "GiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
