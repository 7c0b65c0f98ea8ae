package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// workload is one kind of load.
type workload struct {
	name, unit, about string
	run               func(ctx context.Context, w workload, o Options) (Result, error)
	// generator makes the requests of one connection, for workloads that are
	// streams of requests.
	generator func(o Options, connection int) generator
}

// generator fills in the next request of a slot: one of the requests that a
// connection keeps in work. Requests of one slot follow each other's answers.
type generator func(slot int, call *client.Call)

// workloads in the order of their documentation.
func workloads() []workload {
	return []workload{
		{"read", "requests", "getData of a random node", runStream, mixed(100)},
		{"write", "requests", "setData of a random node", runStream, mixed(0)},
		{"mixed-90", "requests", "90 of 100 getData, the rest setData", runStream, mixed(90)},
		{"mixed-50", "requests", "half getData, half setData", runStream, mixed(50)},
		{"create-delete", "requests", "create a node, then delete it", runStream, createDelete},
		{"watches", "events", "setData of one node that many connections watch; a latency is from the request to the last event", runFanOut, nil},
		{"connect", "sessions", "open a session and close it; a latency is the handshake's", runConnect, nil},
	}
}

// Names returns the workloads' names.
func Names() []string {
	var names []string
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

// About returns a line of text for each workload.
func About() (lines []string) {
	for _, w := range workloads() {
		lines = append(lines, fmt.Sprintf("%-14s %s", w.name, w.about))
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

// mixed reads that many of a hundred times and writes the rest. The bodies are
// made once, so that the load costs the client little.
func mixed(reads int) func(Options, int) generator {
	return func(o Options, connection int) generator {
		random := rand.New(rand.NewPCG(o.Seed, uint64(connection)))
		data := value(o)
		get, set := make([][]byte, o.Nodes), make([][]byte, o.Nodes)
		for i := range o.Nodes {
			read := proto.PathWatch{Path: nodePath(o, i)}
			get[i] = read.Append(nil)
			if reads < 100 {
				write := proto.SetDataRequest{Path: read.Path, Data: data, Version: -1}
				set[i] = write.Append(nil)
			}
		}
		return func(_ int, call *client.Call) {
			node := random.IntN(o.Nodes)
			if random.IntN(100) < reads {
				call.Op, call.Body = proto.OpGetData, get[node]
			} else {
				call.Op, call.Body = proto.OpSetData, set[node]
			}
		}
	}
}

// createDelete has each slot create and delete a node of its own by turns.
func createDelete(o Options, connection int) generator {
	type slot struct {
		create, remove []byte
		exists         bool
	}
	slots := make([]slot, o.Outstanding)
	data := value(o)
	for i := range slots {
		path := fmt.Sprintf("%s/c%04d-%04d", o.Root, connection, i)
		create := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL, TTL: -1}
		remove := proto.PathVersion{Path: path, Version: -1}
		slots[i] = slot{create: create.Append(nil, proto.OpCreate), remove: remove.Append(nil)}
	}
	return func(i int, call *client.Call) {
		s := &slots[i]
		if s.exists {
			call.Op, call.Body = proto.OpDelete, s.remove
		} else {
			call.Op, call.Body = proto.OpCreate, s.create
		}
		s.exists = !s.exists
	}
}
