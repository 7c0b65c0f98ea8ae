package shell

import (
	"context"
	"errors"
	"slices"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// walkAhead is how many siblings are asked for ahead of the one in hand: it
// hides the way to the server, and bounds the answers held.
const walkAhead = 64

// visitor sees the nodes of a subtree. Returning false from enter leaves out
// what is below; leave comes after everything below.
type visitor struct {
	// children is called with a node's sorted children before they are entered.
	children func(node *walked) error
	enter    func(node *walked) (descend bool, err error)
	leave    func(node *walked) error
}

// walked is a node that a walk has come to. Nodes that vanish while they are
// walked are left out.
type walked struct {
	path     string
	depth    int // 0 for the root of the walk
	last     bool
	children []string // sorted
	stat     proto.Stat
}

// join returns the path of a child.
func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// walk visits a subtree depth first. It holds, for each level, the names of the
// siblings, and the answers of walkAhead of them: memory grows with the depth
// and the longest list of children, not with the size of the tree.
func walk(ctx context.Context, session *client.Session, root string, v visitor) error {
	call, err := askChildren(ctx, session, root)
	if err != nil {
		return err
	}
	node, err := takeChildren(ctx, call, root)
	if err != nil {
		return err
	}
	return walkNode(ctx, session, node, v)
}

func walkNode(ctx context.Context, session *client.Session, node *walked, v visitor) error {
	descend := true
	if v.enter != nil {
		var err error
		if descend, err = v.enter(node); err != nil {
			return err
		}
	}
	if descend {
		if v.children != nil {
			if err := v.children(node); err != nil {
				return err
			}
		}
		if err := walkChildren(ctx, session, node, v); err != nil {
			return err
		}
	}
	if v.leave != nil {
		return v.leave(node)
	}
	return nil
}

func walkChildren(ctx context.Context, session *client.Session, parent *walked, v visitor) error {
	var ahead []*client.Call
	asked := 0
	for i, name := range parent.children {
		for ; asked < len(parent.children) && asked < i+walkAhead; asked++ {
			call, err := askChildren(ctx, session, join(parent.path, parent.children[asked]))
			if err != nil {
				return err
			}
			ahead = append(ahead, call)
		}
		path := join(parent.path, name)
		node, err := takeChildren(ctx, ahead[0], path)
		ahead = slices.Delete(ahead, 0, 1)
		if client.Code(err) == proto.ErrNoNode {
			continue
		}
		if err != nil {
			return err
		}
		node.depth, node.last = parent.depth+1, i == len(parent.children)-1
		if err := walkNode(ctx, session, node, v); err != nil {
			return err
		}
	}
	return nil
}

func askChildren(ctx context.Context, session *client.Session, path string) (*client.Call, error) {
	request := proto.PathWatch{Path: session.ServerPath(path)}
	return session.Send(ctx, proto.OpGetChildren2, request.Append(nil))
}

func takeChildren(ctx context.Context, call *client.Call, path string) (*walked, error) {
	d, err := take(ctx, call, path)
	if err != nil {
		return nil, err
	}
	node := &walked{path: path, children: d.Strings(), stat: d.Stat()}
	slices.Sort(node.children)
	return node, d.Err()
}

// take waits for an answer and puts the path into a server's error.
func take(ctx context.Context, call *client.Call, path string) (*proto.Decoder, error) {
	reply, err := call.Wait(ctx)
	var server *client.ServerError
	if errors.As(err, &server) {
		server.Path = path
	}
	if err != nil {
		return nil, err
	}
	return proto.NewDecoder(reply), nil
}
