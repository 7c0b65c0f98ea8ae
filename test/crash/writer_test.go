package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// waitLimit bounds what must happen at all; it measures nothing.
const waitLimit = 60 * time.Second

// absent stands for a node that is not there.
const absent = "\x00absent"

// writer changes nodes that nobody else touches, and remembers for each which
// values it may have: the last acknowledged one, or one of those asked for
// since.
type writer struct {
	id       int
	rng      *rand.Rand
	possible map[string][]string // path → values, the first one acknowledged
	sequence []string            // acknowledged sequential nodes
	acked    int
	n        int
}

func newWriter(id int, seed uint64) *writer {
	return &writer{id: id, rng: rand.New(rand.NewPCG(seed, uint64(id))), possible: map[string][]string{}}
}

func (w *writer) root() string { return fmt.Sprintf("/w%d", w.id) }

func (w *writer) intend(path, value string) {
	if w.possible[path] == nil {
		w.possible[path] = []string{absent}
	}
	w.possible[path] = append(w.possible[path], value)
}

// settle says that the last value asked for path is in force.
func (w *writer) settle(path, value string) {
	w.possible[path] = []string{value}
	w.acked++
}

// run writes until the connection ends.
func (w *writer) run(ctx context.Context, c *client.Conn) error {
	if _, err := c.Create(ctx, w.root(), nil, 0); err != nil && code(err) != proto.ErrNodeExists {
		return err
	}
	for {
		if err := w.step(ctx, c); err != nil {
			return err
		}
	}
}

// code is the server's error, or 0 for an error of the connection.
func code(err error) proto.ErrCode {
	var s *client.ServerError
	if errors.As(err, &s) {
		return s.Code
	}
	return 0
}

func (w *writer) step(ctx context.Context, c *client.Conn) error {
	w.n++
	path := fmt.Sprintf("%s/n%d", w.root(), w.rng.IntN(30))
	value := fmt.Sprintf("%d-%d", w.id, w.n)
	exists := w.possible[path] != nil && w.possible[path][0] != absent
	switch k := w.rng.IntN(10); {
	case k == 0:
		return w.create(ctx, c, w.root()+"/s-", value)
	case k == 1:
		return w.multi(ctx, c, value)
	case !exists:
		w.intend(path, value)
		_, err := c.Create(ctx, path, []byte(value), 0)
		return w.result(path, value, err)
	case k < 4:
		w.intend(path, absent)
		return w.result(path, absent, c.Delete(ctx, path, -1))
	default:
		w.intend(path, value)
		_, err := c.Set(ctx, path, []byte(value), -1)
		return w.result(path, value, err)
	}
}

// result settles an acknowledged write. After a write of unknown fate a later
// one may meet what it did not expect; then the server's error is the truth.
func (w *writer) result(path, value string, err error) error {
	switch code(err) {
	case 0:
		if err == nil {
			w.settle(path, value)
		}
		return err
	case proto.ErrNoNode:
		w.settle(path, absent)
		return nil
	case proto.ErrNodeExists:
		// The create of unknown fate had happened; the next set tells more.
		w.possible[path] = w.possible[path][1:]
		return nil
	}
	return err
}

func (w *writer) create(ctx context.Context, c *client.Conn, path, value string) error {
	made, err := c.Create(ctx, path, []byte(value), proto.CreatePersistentSequential)
	if err == nil {
		w.sequence = append(w.sequence, made)
		w.acked++
	}
	return err
}

// multi sets two nodes that are never deleted; both must change or neither.
func (w *writer) multi(ctx context.Context, c *client.Conn, value string) error {
	a, b := w.root()+"/pair-a", w.root()+"/pair-b"
	op := proto.OpSetData
	if w.possible[a] == nil || w.possible[a][0] == absent {
		op = proto.OpCreate
	}
	w.intend(a, value)
	w.intend(b, value)
	ops := make([]proto.MultiOp, 2)
	for i, p := range []string{a, b} {
		ops[i] = proto.MultiOp{
			Type:   op,
			Create: proto.CreateRequest{Path: p, Data: []byte(value), ACL: proto.OpenACL},
			Data:   proto.SetDataRequest{Path: p, Data: []byte(value), Version: -1},
		}
	}
	body, err := c.Do(proto.OpMulti, proto.AppendMulti(nil, ops)).Wait(ctx)
	if err != nil {
		return err
	}
	if h := proto.NewDecoder(body).MultiHeader(); h.Type == proto.OpError {
		// The pair exists though its creation was never acknowledged.
		w.possible[a], w.possible[b] = w.possible[a][1:], w.possible[b][1:]
		return nil
	}
	w.settle(a, value)
	w.settle(b, value)
	return nil
}

// check compares the server with what may be, and makes what is there the
// acknowledged truth for the next round.
func (w *writer) check(ctx context.Context, t *testing.T, c *client.Conn) {
	t.Helper()
	for path, values := range w.possible {
		data, _, err := c.Get(ctx, path, false)
		got := string(data)
		switch {
		case code(err) == proto.ErrNoNode:
			got = absent
		case err != nil:
			t.Fatalf("get %s: %v", path, err)
		}
		found := false
		for _, v := range values {
			found = found || v == got
		}
		if !found {
			t.Errorf("%s is %q; acknowledged was %q, asked for since %q", path, got, values[0], values[1:])
		}
		w.possible[path] = []string{got}
	}
	if a, b := w.possible[w.root()+"/pair-a"], w.possible[w.root()+"/pair-b"]; a != nil && b != nil && a[0] != b[0] {
		t.Errorf("a multi of writer %d came apart: %q and %q", w.id, a[0], b[0])
	}
	seen := map[string]bool{}
	for _, path := range w.sequence {
		if seen[path] {
			t.Errorf("%s was given out twice", path)
		}
		seen[path] = true
		if _, err := c.Exists(ctx, path, false); err != nil {
			t.Errorf("acknowledged %s: %v", path, err)
		}
	}
}
