package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// withFlag names a second server.
var withFlag = flag{name: "with", arg: "server", help: "the second path is at these servers: host:port,... or @cluster", long: true}

func copyCommands() []*command {
	return []*command{
		{
			name: "cp", synopsis: "[--replace] [--no-acl] [--ephemerals] [--with server] from to", beyond: true,
			summary: "Copy a node and everything below",
			detail: "Ephemeral nodes are left out and named on standard error. A copy of a container or TTL node is an\n" +
				"ordinary node: servers do not tell clients which those are.",
			flags: []flag{
				{name: "replace", help: "set the data and access list of nodes that are there", long: true},
				{name: "no-acl", help: "give the copies an open access list", long: true},
				{name: "ephemerals", help: "copy ephemeral nodes, too, as ordinary ones", long: true},
				withFlag,
			},
			min: 2, max: 2, run: runCopy,
			examples: []string{
				"cp /app /app-copy",
				"cp --with other:2181 /app /app        # to another ensemble",
			},
		},
		{
			name: "mv", synopsis: "from to", beyond: true, summary: "Move a node and everything below, in one transaction",
			detail: "Nothing happens if a node changes meanwhile, if one is ephemeral, or if it is too much for one\n" +
				"transaction: 1000 nodes or 512 KiB. Watches, versions and times stay behind.",
			min: 2, max: 2, run: runMove,
			examples: []string{"mv /app/old /app/new"},
		},
	}
}

// second returns the session of --with, or the shell's own. done closes it.
func (in *invocation) second(ctx context.Context) (session *client.Session, done func(), err error) {
	if !in.has("with") {
		return in.session, func() {}, nil
	}
	config := in.sh.config
	config.Connect = in.value("with")
	if name, named := strings.CutPrefix(config.Connect, "@"); named {
		if config, err = in.sh.resolve(name); err != nil {
			return nil, nil, err
		}
		if err := config.CompleteAuths(in.sh.streams.ReadPassword); err != nil {
			return nil, nil, err
		}
	}
	if session, err = in.sh.open(config); err != nil {
		return nil, nil, err
	}
	if err := in.sh.await(ctx, session, config.Wait); err != nil {
		closeSession(session)
		return nil, nil, err
	}
	return session, func() { closeSession(session) }, nil
}

// below returns a path's place under another root.
func below(path, from, to string) string {
	rest := strings.TrimPrefix(path, strings.TrimSuffix(from, "/"))
	if rest == "" || rest == "/" {
		return to
	}
	return strings.TrimSuffix(to, "/") + rest
}

// within tells whether a path is another one or below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// twoPaths returns both arguments as valid paths.
func (in *invocation) twoPaths() (from, to string, err error) {
	if from, err = in.path(0); err != nil {
		return "", "", err
	}
	to, err = in.path(1)
	return from, to, err
}

func runCopy(ctx context.Context, in *invocation) error {
	from, to, err := in.twoPaths()
	if err != nil {
		return err
	}
	target, done, err := in.second(ctx)
	if err != nil {
		return err
	}
	defer done()
	if target == in.session && within(to, from) {
		return failf(ErrUsage, "%s is within %s: the copy would have no end", to, from)
	}
	c := &creator{session: target, replace: in.has("replace") || to == "/", p: in.sh.progress("nodes copied", false)}
	defer c.p.done()
	left := ""
	err = fetchTree(ctx, in.session, from, !in.has("no-acl"), func(node *fetched) error {
		if within(node.path, "/zookeeper") && !within(from, "/zookeeper") {
			return nil // the server's own
		}
		if node.isEphemeral() && !in.has("ephemerals") {
			in.sh.note("%s is ephemeral and left out", node.path)
			left = node.path
			return nil
		}
		request := proto.CreateRequest{Path: below(node.path, from, to), Data: node.data, ACL: node.acl, TTL: -1}
		return c.create(ctx, request)
	})
	if err == nil {
		err = c.finish(ctx)
	}
	if err != nil {
		return err
	}
	return in.answerJSON(map[string]any{"from": from, "to": to, "nodes": c.count, "complete": left == ""})
}

// Limits of mv: what one transaction may hold.
const (
	moveNodes = 1000
	moveBytes = 512 << 10
)

func runMove(ctx context.Context, in *invocation) error {
	from, to, err := in.twoPaths()
	if err != nil {
		return err
	}
	if within(to, from) {
		return failf(ErrUsage, "%s is within %s", to, from)
	}
	var creates, deletes []proto.MultiOp
	bytes := 0
	err = fetchTree(ctx, in.session, from, true, func(node *fetched) error {
		if node.isEphemeral() {
			return failf(ErrInput, "%s is ephemeral: it would not be its session's any more", node.path)
		}
		bytes += len(node.data) + 2*len(node.path) + 64*(1+len(node.acl))
		if len(creates) >= moveNodes || bytes > moveBytes {
			return failf(ErrTooLarge, "%s is too large for one transaction; cp and deleteall do it step by step", from)
		}
		create := proto.CreateRequest{Path: below(node.path, from, to), Data: node.data, ACL: node.acl, TTL: -1}
		creates = append(creates, proto.MultiOp{Type: proto.OpCreate, Create: create})
		deleted := proto.PathVersion{Path: node.path, Version: node.stat.Version}
		deletes = append(deletes, proto.MultiOp{Type: proto.OpDelete, Version: deleted})
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(deletes) // children before their parents
	if err := in.session.Multi(ctx, append(creates, deletes...)); err != nil {
		return err
	}
	return in.answerJSON(map[string]any{"from": from, "to": to, "nodes": len(deletes)})
}

// makeParents creates the missing nodes above a path, without data.
func makeParents(ctx context.Context, session *client.Session, path string, acls []proto.ACL) error {
	for at := 1; ; at++ {
		next := strings.IndexByte(path[at:], '/')
		if next < 0 {
			return nil
		}
		at += next
		request := proto.CreateRequest{Path: path[:at], ACL: acls, TTL: -1}
		if _, err := session.Create(ctx, request); err != nil && !sameCode(err, proto.ErrNodeExists) {
			return err
		}
	}
}
