package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/zooraft/zooraft/internal/proto"
)

// workload is one kind of load.
type workload struct {
	name, unit, about string
	run               func(ctx context.Context, w workload, o Options) (Result, error)
	// generator makes the requests of one connection, for workloads that are
	// streams of requests.
	generator func(o Options, connection int) generator
	// own means that it makes the nodes that it needs by itself.
	own bool
	// named means that it runs only when it is asked for: it takes long or much.
	named bool
}

// generator appends the next request of a slot to a lane: one of the requests
// that a connection keeps in work. Requests of one slot follow each other's
// answers, if the load is no open loop.
type generator func(slot int, l *lane)

// workloads in the order of their documentation.
func workloads() []workload {
	return []workload{
		{name: "read", unit: "requests", about: "getData of a random node", run: runStream, generator: mixed(100)},
		{name: "write", unit: "requests", about: "setData of a random node", run: runStream, generator: mixed(0)},
		{name: "mixed-90", unit: "requests", about: "90 of 100 getData, the rest setData; any other number from 0 to 100 likewise", run: runStream, generator: mixed(90)},
		{name: "mixed-50", unit: "requests", about: "half getData, half setData", run: runStream, generator: mixed(50)},
		{name: "create-delete", unit: "requests", about: "create a node, then delete it", run: runStream, generator: createDelete},
		{name: "read-latency", unit: "requests", about: "read with one connection and one request in work", run: runSingle, generator: mixed(100)},
		{name: "write-latency", unit: "requests", about: "write likewise", run: runSingle, generator: mixed(0)},
		{name: "watches", unit: "events", about: "setData of one node that --watchers sessions watch; a latency is from the request to the last event", run: runFanOut},
		{name: "connect", unit: "sessions", about: "open a session and close it; a latency is the handshake's", run: runConnect},
		{name: "sessions", unit: "sessions", about: "open --watchers sessions and hold them for --duration; a latency is the handshake's",
			run: runSessions, own: true, named: true},
		{name: "ephemerals", unit: "nodes", about: "end a session with --nodes ephemeral nodes; a latency is until somebody else has seen the last one go",
			run: runEphemerals, own: true, named: true},
		{name: "fill", unit: "nodes", about: "create --nodes nodes below a thousand others; --keep leaves them",
			run: runFill, own: true, named: true},
	}
}

// find returns the workload of a name; mixed-N is one for every N.
func find(name string) (workload, bool) {
	for _, w := range workloads() {
		if w.name == name {
			return w, true
		}
	}
	text, isMix := strings.CutPrefix(name, "mixed-")
	share, err := strconv.Atoi(text)
	if !isMix || err != nil || share < 0 || share > 100 {
		return workload{}, false
	}
	return workload{name: name, unit: "requests", run: runStream, generator: mixed(share)}, true
}

// Names returns the workloads' names.
func Names() []string {
	var names []string
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

// usual are those that run when none is named.
func usual() (names []string) {
	for _, w := range workloads() {
		if !w.named {
			names = append(names, w.name)
		}
	}
	return names
}

// About returns a line of text for each workload.
func About() (lines []string) {
	for _, w := range workloads() {
		about := w.about
		if w.named {
			about += "; only when it is named"
		}
		lines = append(lines, fmt.Sprintf("%-14s %s", w.name, about))
	}
	return lines
}

func nodePath(o Options, i int) string { return fmt.Sprintf("%s/n%06d", o.Root, i) }

func value(o Options) []byte {
	data := make([]byte, o.ValueSize)
	for i := range data {
		data[i] = byte('a' + i%26)
	}
	return data
}

// mixed reads that many of a hundred times and writes the rest. The paths are
// made once, so that the load costs the client little.
func mixed(reads int) func(Options, int) generator {
	var once sync.Once
	var paths []string
	return func(o Options, connection int) generator {
		once.Do(func() {
			paths = make([]string, o.Nodes)
			for i := range paths {
				if paths[i] = nodePath(o, i); o.Filled {
					paths[i] = fillPath(o, i)
				}
			}
		})
		random := rand.New(rand.NewPCG(o.Seed, uint64(connection)))
		get := proto.PathWatch{}
		set := proto.SetDataRequest{Data: value(o), Version: -1}
		return func(_ int, l *lane) {
			path := paths[random.IntN(len(paths))]
			if reads == 100 || random.IntN(100) < reads {
				get.Path = path
				start := l.begin(proto.OpGetData)
				l.out = get.Append(l.out)
				l.end(start)
			} else {
				set.Path = path
				start := l.begin(proto.OpSetData)
				l.out = set.Append(l.out)
				l.end(start)
			}
		}
	}
}

// createDelete has each slot create and delete a node of its own by turns.
func createDelete(o Options, connection int) generator {
	type slot struct {
		path   string
		exists bool
	}
	slots := make([]slot, o.Outstanding)
	for i := range slots {
		slots[i].path = fmt.Sprintf("%s/c%04d-%04d", o.Root, connection, i)
	}
	create := proto.CreateRequest{Data: value(o), ACL: proto.OpenACL, TTL: -1}
	return func(i int, l *lane) {
		s := &slots[i%len(slots)]
		if s.exists {
			start := l.begin(proto.OpDelete)
			remove := proto.PathVersion{Path: s.path, Version: -1}
			l.out = remove.Append(l.out)
			l.end(start)
		} else {
			create.Path = s.path
			start := l.begin(proto.OpCreate)
			l.out = create.Append(l.out, proto.OpCreate)
			l.end(start)
		}
		s.exists = !s.exists
	}
}

// runSingle is a stream of one request at a time.
func runSingle(ctx context.Context, w workload, o Options) (Result, error) {
	o.Connections, o.Outstanding = 1, 1
	return runStream(ctx, w, o)
}
