package shell

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func diffCommands() []*command {
	return []*command{
		{
			name: "diff", synopsis: "[--acl] [--with server] path [path]", beyond: true,
			summary: "Compare two trees, or a tree of two ensembles",
			detail: "A line for each difference: - only in the first, + only in the second, ~ other data or access list.\n" +
				"What is below a node that only one has is not listed. Exit code 10 if there is any.",
			flags: []flag{{name: "acl", help: "compare access lists, too", long: true}, withFlag},
			min:   1, max: 2, run: runDiff,
			examples: []string{
				"diff /app /app-copy",
				"diff --with other:2181 /app           # the same path at both",
			},
		},
	}
}

// differ compares two subtrees level by level. It holds two lists of children
// for each level.
type differ struct {
	in           *invocation
	left, right  *client.Session
	from, to     string
	found, nodes int
	p            *progress
}

// side is one of the two nodes that are compared.
type side struct {
	children []string
	data     []byte
	acl      []proto.ACL
	missing  bool
}

// sideCalls are its answers on their way.
type sideCalls struct {
	asked
	children *client.Call
}

func runDiff(ctx context.Context, in *invocation) error {
	from, err := in.path(0)
	if err != nil {
		return err
	}
	to := from
	if len(in.args) > 1 {
		if to, err = in.path(1); err != nil {
			return err
		}
	}
	right, done, err := in.second(ctx)
	if err != nil {
		return err
	}
	defer done()
	d := &differ{in: in, left: in.session, right: right, from: from, to: to, p: in.sh.progress("nodes compared", true)}
	defer d.p.done()
	calls, err := d.ask(ctx, "")
	if err == nil {
		err = d.node(ctx, "", calls)
	}
	if err != nil {
		return err
	}
	if d.found > 0 {
		return failf(ErrDifferent, "%d differences in %d nodes", d.found, d.nodes)
	}
	return in.answerJSON(map[string]any{"nodes": d.nodes, "differences": 0})
}

// ask asks both servers about the node at a place below the roots.
func (d *differ) ask(ctx context.Context, place string) (calls [2]sideCalls, err error) {
	sessions, roots := [2]*client.Session{d.left, d.right}, [2]string{d.from, d.to}
	for i := range calls {
		path := below(place, "/", roots[i])
		if calls[i].asked, err = ask(ctx, sessions[i], path, d.in.has("acl")); err != nil {
			return calls, err
		}
		if calls[i].children, err = askChildren(ctx, sessions[i], path); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func (c sideCalls) take(ctx context.Context, root bool) (side, error) {
	node, err := c.asked.take(ctx)
	if err == nil {
		var list *walked
		if list, err = takeChildren(ctx, c.children, c.path); err == nil {
			return side{children: list.children, data: node.data, acl: node.acl}, nil
		}
	}
	if sameCode(err, proto.ErrNoNode) && !root {
		return side{missing: true}, nil
	}
	return side{}, err
}

func (d *differ) report(sign, what, place string) error {
	d.found++
	shown := place
	if shown == "" {
		shown = "/"
	}
	text := sign + " " + shown
	if sign == "~" {
		text += " " + what
	}
	return d.in.say(map[string]string{"path": shown, "change": what}, "%s", text)
}

// node compares one node of both trees and goes on below.
func (d *differ) node(ctx context.Context, place string, calls [2]sideCalls) error {
	left, err := calls[0].take(ctx, place == "")
	if err != nil {
		return err
	}
	right, err := calls[1].take(ctx, place == "")
	if err != nil {
		return err
	}
	d.nodes++
	d.p.add(1)
	switch {
	case left.missing && right.missing:
		return nil
	case right.missing:
		return d.report("-", "removed", place)
	case left.missing:
		return d.report("+", "added", place)
	}
	if !bytes.Equal(left.data, right.data) || (left.data == nil) != (right.data == nil) {
		if err := d.report("~", "data", place); err != nil {
			return err
		}
	}
	if d.in.has("acl") && !slices.Equal(left.acl, right.acl) {
		if err := d.report("~", "acl", place); err != nil {
			return err
		}
	}
	return d.below(ctx, place, left.children, right.children)
}

// below merges two sorted lists of children.
func (d *differ) below(ctx context.Context, place string, left, right []string) error {
	var both []string // names that both have, in order
	for i, j := 0, 0; i < len(left) && j < len(right); {
		switch order := strings.Compare(left[i], right[j]); {
		case order < 0:
			i++
		case order > 0:
			j++
		default:
			both = append(both, left[i])
			i, j = i+1, j+1
		}
	}
	var ahead [][2]sideCalls
	asked, at := 0, 0
	for len(left) > 0 || len(right) > 0 {
		var err error
		switch {
		case len(right) == 0 || len(left) > 0 && left[0] < right[0]:
			err = d.report("-", "removed", place+"/"+left[0])
			left = left[1:]
		case len(left) == 0 || right[0] < left[0]:
			err = d.report("+", "added", place+"/"+right[0])
			right = right[1:]
		default:
			for ; err == nil && asked < len(both) && asked < at+walkAhead/2; asked++ {
				var calls [2]sideCalls
				calls, err = d.ask(ctx, place+"/"+both[asked])
				ahead = append(ahead, calls)
			}
			if err == nil {
				err = d.node(ctx, place+"/"+both[at], ahead[0])
			}
			ahead, at = ahead[min(1, len(ahead)):], at+1
			left, right = left[1:], right[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}
