package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// directories is how many nodes the nodes of fill are spread below.
const directories = 1000

// fillPath is where node i of fill is.
func fillPath(o Options, i int) string {
	if o.Flat {
		return fmt.Sprintf("%s/node-%010d", o.Root, i)
	}
	return fmt.Sprintf("%s/d%03d/node-%010d", o.Root, i%directories, i)
}

// prepare makes the root and its nodes; those that are left from a run that was
// killed are used again.
func prepare(ctx context.Context, o Options) error {
	return create(ctx, o, value(o), 1, func(i int) string {
		if i == 0 {
			return o.Root
		}
		return nodePath(o, i-1)
	}, 0, o.Nodes+1)
}

// create makes nodes from first to the one before last, the first one ahead of
// all others. Existing ones stay.
func create(ctx context.Context, o Options, data []byte, connections int, path func(int) string, first, last int) error {
	if err := createOne(ctx, o, path(first)); err != nil {
		return err
	}
	var next atomic.Int64 // over all connections, so that none is left out
	w := workload{generator: func(Options, int) generator {
		request := proto.CreateRequest{Data: data, ACL: proto.OpenACL, TTL: -1}
		return func(_ int, l *lane) {
			// Requests beyond the last node name one that is under way already.
			request.Path = path(min(first+int(next.Add(1)), last-1))
			start := l.begin(proto.OpCreate)
			l.out = request.Append(l.out, proto.OpCreate)
			l.end(start)
		}
	}}
	if last-first <= 1 {
		return nil
	}
	o.Connections, o.Rate, o.Timeline, o.WarmUp, o.Duration = connections, 0, 0, 0, fillPatience
	o.Outstanding = max(1, min(64, maxOutstandingBytes/(len(data)+100)))
	o.Requests = int64(last - first - 1)
	r, err := runStream(ctx, w, o)
	if err != nil {
		return err
	}
	for name, n := range r.Errors {
		if name != proto.ErrNodeExists.String() {
			return fmt.Errorf("creating nodes: %d answers with error %s", n, name)
		}
	}
	return nil
}

// fillPatience is how long creating may take: 1 h.
const fillPatience = time.Hour

// createOne makes a single node, and those above it that are missing.
func createOne(ctx context.Context, o Options, path string) error {
	c, err := o.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Drop()
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '/' {
			continue
		}
		_, err = c.Do(proto.OpCreate, createBody(path[:end], nil)).Wait(ctx)
		if err != nil && client.Code(err) != proto.ErrNodeExists {
			return err
		}
	}
	return c.Close(ctx)
}

func createBody(path string, data []byte) []byte {
	request := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL, TTL: -1}
	return request.Append(nil, proto.OpCreate)
}

// runFill makes many nodes.
func runFill(ctx context.Context, w workload, o Options) (Result, error) {
	if err := create(ctx, o, nil, 1, func(i int) string {
		if i == 0 {
			return o.Root
		}
		return fmt.Sprintf("%s/d%03d", o.Root, i-1)
	}, 0, 1+directories); err != nil {
		return Result{}, err
	}
	meter, begin := newMeter(), time.Now()
	if err := create(ctx, o, value(o), o.Connections, func(i int) string { return fillPath(o, i) }, 0, o.Nodes); err != nil {
		return Result{}, err
	}
	t := tally{operations: int64(o.Nodes)}
	r := t.result(w, o, time.Since(begin))
	r.Client = meter.read()
	return r, nil
}

// cleanUp deletes the root with all below it.
func cleanUp(ctx context.Context, o Options) error {
	c, err := o.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Drop()
	if err := deleteBelow(ctx, c, o.Root); err != nil {
		return err
	}
	if err := c.Delete(ctx, o.Root, -1); err != nil && client.Code(err) != proto.ErrNoNode {
		return err
	}
	return c.Close(ctx)
}

// deletes is how many deletions are on their way at a time.
const deletes = 1000

// deleteBelow deletes a node's children and what is below them.
func deleteBelow(ctx context.Context, c *client.Conn, path string) error {
	names, _, err := c.Children(ctx, path, false)
	if client.Code(err) == proto.ErrNoNode {
		return nil
	}
	if err != nil {
		return err
	}
	for len(names) > 0 {
		batch := names[:min(deletes, len(names))]
		names = names[len(batch):]
		calls := make([]*client.Call, len(batch))
		for i, name := range batch {
			remove := proto.PathVersion{Path: path + "/" + name, Version: -1}
			calls[i] = c.Do(proto.OpDelete, remove.Append(nil))
		}
		for i, call := range calls {
			_, err := call.Wait(ctx)
			switch client.Code(err) {
			case proto.ErrOK, proto.ErrNoNode:
			case proto.ErrNotEmpty:
				below := path + "/" + batch[i]
				if err := deleteBelow(ctx, c, below); err != nil {
					return err
				}
				if err := c.Delete(ctx, below, -1); err != nil {
					return err
				}
			default:
				return err
			}
		}
	}
	return nil
}
