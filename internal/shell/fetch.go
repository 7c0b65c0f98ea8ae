package shell

import (
	"context"
	"errors"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// fetched is a node with everything that a copy needs. Neither container nor
// TTL nodes can be told from others: servers keep that from clients.
type fetched struct {
	path string
	data []byte
	acl  []proto.ACL
	stat proto.Stat
}

// asked is a node whose answers are on their way.
type asked struct {
	path      string
	data, acl *client.Call
}

// fetchTree hands a subtree's nodes to use, parents before children. It asks for
// up to walkAhead nodes ahead. Nodes that vanish meanwhile are left out.
func fetchTree(ctx context.Context, session *client.Session, root string, withACL bool, use func(*fetched) error) error {
	var ahead []asked
	takeOne := func() error {
		oldest := ahead[0]
		ahead = ahead[1:]
		node, err := oldest.take(ctx)
		if client.Code(err) == proto.ErrNoNode && oldest.path != root {
			return nil
		}
		if err != nil {
			return err
		}
		return use(node)
	}
	err := walk(ctx, session, root, visitor{enter: func(node *walked) (bool, error) {
		next, err := ask(ctx, session, node.path, withACL)
		if err != nil {
			return false, err
		}
		if ahead = append(ahead, next); len(ahead) < walkAhead {
			return true, nil
		}
		return true, takeOne()
	}})
	for err == nil && len(ahead) > 0 {
		err = takeOne()
	}
	return err
}

func ask(ctx context.Context, session *client.Session, path string, withACL bool) (asked, error) {
	request := proto.PathWatch{Path: session.ServerPath(path)}
	data, err := session.Send(ctx, proto.OpGetData, request.Append(nil))
	if err != nil {
		return asked{}, err
	}
	a := asked{path: path, data: data}
	if withACL {
		a.acl, err = session.Send(ctx, proto.OpGetACL, proto.AppendString(nil, request.Path))
	}
	return a, err
}

func (a asked) take(ctx context.Context) (*fetched, error) {
	node := &fetched{path: a.path, acl: proto.OpenACL}
	d, err := take(ctx, a.data, a.path)
	if err != nil {
		return nil, err
	}
	node.data, node.stat = d.Buffer(), d.Stat()
	if a.acl == nil || d.Err() != nil {
		return node, d.Err()
	}
	if d, err = take(ctx, a.acl, a.path); err != nil {
		return nil, err
	}
	node.acl = d.ACLs()
	return node, d.Err()
}

// creator creates nodes with up to walkAhead creates on their way, in order.
type creator struct {
	session *client.Session
	// replace sets the data and the access list of a node that is there.
	replace bool
	sent    []sentCreate
	p       *progress
	count   int
}

type sentCreate struct {
	call    *client.Call
	request proto.CreateRequest // with the user's path
}

func (c *creator) create(ctx context.Context, request proto.CreateRequest) error {
	for len(c.sent) >= walkAhead {
		if err := c.take(ctx); err != nil {
			return err
		}
	}
	op := client.CreateOp(&request)
	wire := request
	wire.Path = c.session.ServerPath(request.Path)
	call, err := c.session.Send(ctx, op, wire.Append(nil, op))
	if err != nil {
		return err
	}
	c.sent = append(c.sent, sentCreate{call, request})
	return nil
}

func (c *creator) take(ctx context.Context) error {
	oldest := c.sent[0]
	c.sent = c.sent[1:]
	path := oldest.request.Path
	_, err := take(ctx, oldest.call, path)
	if client.Code(err) == proto.ErrNodeExists && c.replace {
		if _, err = c.session.Set(ctx, path, oldest.request.Data, -1); err == nil {
			_, err = c.session.SetACL(ctx, path, oldest.request.ACL, -1)
		}
	}
	if err != nil {
		return err
	}
	c.count++
	c.p.add(1)
	return nil
}

func (c *creator) finish(ctx context.Context) error {
	for len(c.sent) > 0 {
		if err := c.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isEphemeral tells why a node cannot be copied: it is a session's own.
func (n *fetched) isEphemeral() bool { return n.stat.EphemeralOwner != 0 }

// sameCode tells whether an error is a server's with this code.
func sameCode(err error, code proto.ErrCode) bool {
	var server *client.ServerError
	return asServer(err, &server) && server.Code == code
}

func asServer(err error, server **client.ServerError) bool { return errors.As(err, server) }
