package shell

import (
	"context"
	"errors"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func deleteCommands() []*command {
	return []*command{
		{
			name: "delete", synopsis: "[-v version] path", summary: "Delete a node without children",
			flags: []flag{{name: "v", arg: "version", help: "only if the node has this version"}},
			min:   1, max: -1, run: runDelete,
			examples: []string{"delete -v 3 /app/x                    # exit code 6 unless the version is 3"},
		},
		{
			name: "deleteall", synopsis: "path [-b batch size]", summary: "Delete a node and everything below",
			detail: "The nodes go in transactions of the batch size, the deepest first, in bounded memory.",
			flags:  []flag{{name: "b", arg: "batch", help: "nodes in one transaction, 0 for single deletes (default 1000)"}},
			min:    1, max: -1, run: runDeleteAll,
			examples: []string{"deleteall /app                        # shows its progress on a terminal"},
		},
	}
}

func runDelete(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	if len(in.args) > 1 {
		in.warnOld("delete path [version]", "delete [-v version] path")
	}
	version, err := in.version()
	if err != nil {
		return err
	}
	if err := in.session.Delete(ctx, path, version); err != nil {
		return err
	}
	return in.answerJSON(map[string]string{"deleted": path})
}

// answerJSON answers in JSON what needs no text.
func (in *invocation) answerJSON(value any) error {
	if !in.json {
		return nil
	}
	return in.say(value, "")
}

// Limits of deleteall, for each of its transactions and all together.
const (
	// deleteBatch is the default number of deletes in one (zkCli's).
	deleteBatch = 1000
	// deleteBatchBytes ends a transaction before its frame gets too long for a
	// server with the default limit of 1 MiB.
	deleteBatchBytes = 512 << 10
	// deleteAhead is how many are on their way at once (zkCli's).
	deleteAhead = 10
)

// deleter sends deletes in transactions. The order on the wire is the order of
// the deletes, so a parent never overtakes its children.
type deleter struct {
	session *client.Session
	batch   int
	ops     []proto.MultiOp
	bytes   int
	sent    []sentMulti
	p       *progress
	deleted int
}

type sentMulti struct {
	call *client.Call
	ops  []proto.MultiOp
}

func runDeleteAll(ctx context.Context, in *invocation) error {
	path, err := in.path(0)
	if err != nil {
		return err
	}
	batch, err := in.number("b", deleteBatch, 32)
	if err != nil {
		return failf(ErrUsage, "-b argument must be an int value")
	}
	d := &deleter{session: in.session, batch: int(batch), p: in.sh.progress("nodes deleted", false)}
	defer d.p.done()
	err = walk(ctx, in.session, path, visitor{leave: func(node *walked) error { return d.delete(ctx, node.path) }})
	if err == nil {
		err = d.finish(ctx)
	}
	var server *client.ServerError
	if errors.As(err, &server) && server.Op == proto.OpDelete && batch > 0 {
		return &failure{text: "Failed to delete some node(s) in the subtree!\n" + Message(err), cause: err}
	}
	if err != nil {
		return err
	}
	return in.answerJSON(map[string]any{"deleted": path, "nodes": d.deleted})
}

// delete deletes a node, or puts it into the next transaction.
func (d *deleter) delete(ctx context.Context, path string) error {
	if d.batch <= 0 {
		err := d.session.Delete(ctx, path, -1)
		if client.Code(err) == proto.ErrNoNode {
			err = nil // somebody else was faster
		}
		if err == nil {
			d.count(1)
		}
		return err
	}
	d.ops = append(d.ops, proto.MultiOp{Type: proto.OpDelete, Version: proto.PathVersion{Path: path, Version: -1}})
	d.bytes += len(path) + 24
	if len(d.ops) < d.batch && d.bytes < deleteBatchBytes {
		return nil
	}
	return d.send(ctx)
}

func (d *deleter) count(n int) {
	d.deleted += n
	d.p.add(n)
}

func (d *deleter) send(ctx context.Context) error {
	if len(d.ops) == 0 {
		return nil
	}
	for len(d.sent) >= deleteAhead {
		if err := d.take(ctx); err != nil {
			return err
		}
	}
	call, err := d.session.SendMulti(ctx, d.ops)
	if err != nil {
		return err
	}
	d.sent = append(d.sent, sentMulti{call, d.ops})
	d.ops, d.bytes = nil, 0
	return nil
}

// take waits for the oldest transaction.
func (d *deleter) take(ctx context.Context) error {
	oldest := d.sent[0]
	d.sent = d.sent[1:]
	if err := d.session.MultiResult(ctx, oldest.call, oldest.ops); err != nil {
		return err
	}
	d.count(len(oldest.ops))
	return nil
}

func (d *deleter) finish(ctx context.Context) error {
	if err := d.send(ctx); err != nil {
		return err
	}
	for len(d.sent) > 0 {
		if err := d.take(ctx); err != nil {
			return err
		}
	}
	return nil
}
