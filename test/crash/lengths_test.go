package crash

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// denseFlag is the long form: every length from 60 to 70 KiB and more around the
// other bounds, some 2 GB for each log store, and 240 MB of writes at once.
var denseFlag = flag.Bool("lengths.dense", false, "write nodes of every length in wide ranges")

// swept are lengths of data whose log entries, with what a command and a frame add,
// have every length around the bounds at which the code changes its ways.
func swept() (lengths []int) {
	around := func(bound, below, above, step int) {
		for n := max(bound-below, 0); n <= bound+above; n += step {
			lengths = append(lengths, n)
		}
	}
	if *denseFlag {
		around(65<<10, 5<<10, 5<<10, 1)
		around(4<<10, 1<<10, 1<<10, 1)
		around(512<<10, 200, 20, 1)
		around(1<<20-200, 200, 0, 1)
	}
	around(0, 0, 10, 1)
	around(256, 100, 4, 3)
	around(4<<10, 100, 4, 1)
	around(16<<10, 100, 4, 8)
	around(64<<10, 100, 4, 1)
	around(512<<10, 100, 4, 26)
	around(1<<20-100, 60, 0, 20) // the longest that fits into a frame of jute.maxbuffer
	return lengths
}

// nodeData is what a node of these tests holds: it differs from its neighbours'.
func nodeData(length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ byte(length)
	}
	return b
}

// sizes are nodes and the lengths of their data.
type sizes map[string]int

// sweep writes a node of each length, each in a log entry of its own, and then nodes
// that share entries of such lengths.
func (s sizes) sweep(t *testing.T, server *peer.Server, root string, seed uint64) {
	t.Helper()
	c := dial(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), 10*waitLimit)
	defer cancel()
	requests := func(nodes ...string) (calls []*client.Call) {
		for _, path := range nodes {
			r := proto.CreateRequest{Path: path, Data: nodeData(s[path]), ACL: proto.OpenACL}
			calls = append(calls, c.Do(proto.OpCreate, r.Append(nil, proto.OpCreate)))
		}
		return calls
	}
	// A busy machine may cost the leader its lease; then the fate of what was on its
	// way is unknown, and it is asked for again.
	write := func(nodes ...string) {
		t.Helper()
		for {
			var failure error
			for _, call := range requests(nodes...) {
				if _, err := call.Wait(ctx); err != nil && code(err) != proto.ErrNodeExists {
					failure = err
				}
			}
			switch {
			case failure == nil:
				return
			case code(failure) != 0 || ctx.Err() != nil:
				t.Fatalf("create: %v\n%s", failure, server.Log())
			}
			t.Logf("asked again, after %v; %s", failure, server.Log())
			c = dial(t, server)
		}
	}
	s[root] = 0
	write(root)
	for i, n := range swept() {
		path := fmt.Sprintf("%s/one-%d-%d", root, n, i)
		s[path] = n
		write(path)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 24 {
		left := []int{4 << 10, 64 << 10, 512 << 10}[i%3] - rng.IntN(300)
		var nodes []string
		for left > 0 {
			n := min(left, 1+rng.IntN(40<<10))
			left -= n
			path := fmt.Sprintf("%s/many-%d-%d", root, i, len(nodes))
			s[path] = n
			nodes = append(nodes, path)
		}
		write(nodes...)
	}
}

// check compares a server with what was written.
func (s sizes) check(t *testing.T, server *peer.Server, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*waitLimit)
	defer cancel()
	c := dial(t, server)
	if err := c.Sync(ctx, "/"); err != nil {
		t.Fatalf("%s: sync: %v\n%s", what, err, server.Log())
	}
	for _, path := range slices.Sorted(maps.Keys(s)) {
		data, _, err := c.Get(ctx, path, false)
		if err != nil || !bytes.Equal(data, nodeData(s[path])) {
			t.Fatalf("%s: %s has %d bytes, want %d, or others: %v", what, path, len(data), s[path], err)
		}
	}
}

// burst has clients of a follower ask for more than its way to the leader holds, 64
// MiB: they wait, and none is disconnected.
func burst(t *testing.T, follower *peer.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*waitLimit)
	defer cancel()
	var calls []*client.Call
	for k := range 4 {
		c := dial(t, follower)
		path := fmt.Sprintf("/burst-%d", k)
		if _, err := c.Create(ctx, path, nil, 0); err != nil {
			t.Fatal(err)
		}
		r := proto.SetDataRequest{Path: path, Data: nodeData(1_000_000), Version: -1}
		body := r.Append(nil)
		for range 60 {
			calls = append(calls, c.Do(proto.OpSetData, body))
		}
	}
	for i, call := range calls {
		if _, err := call.Wait(ctx); err != nil {
			t.Fatalf("write %d of a burst: %v\n%s", i, err, follower.Log())
		}
	}
}

// Whatever the length of a write, the log that holds it is read again: by a server
// that was killed, and for one that was away.
func TestWritesOfEveryLengthAreReadAgain(t *testing.T) {
	eachLogStore(t, func(t *testing.T, config map[string]string) {
		seed := seed(t)
		e := peer.StartZooraftEnsemble(t, 3, peer.Options{Config: config})
		leader := e.Leader()
		if leader < 0 {
			t.Fatal("nobody leads")
		}
		away, by := e.Servers[(leader+1)%3], e.Servers[(leader+2)%3]
		away.Kill(t)
		written := sizes{}
		written.sweep(t, by, "/log", seed)
		if *denseFlag {
			burst(t, by)
		}
		away.Start(t)
		if err := away.AwaitReady(10 * waitLimit); err != nil {
			t.Fatalf("%v\n%s", err, away.Log())
		}
		written.check(t, away, "from the leader's log")
		e.Restart(t, true)
		for i, s := range e.Servers {
			written.check(t, s, fmt.Sprintf("server %d after a kill", i+1))
		}
	})
}
