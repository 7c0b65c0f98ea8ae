package bench

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// ErrOptions is returned when an option is out of its range.
var ErrOptions = errors.New("bench: bad option")

// Options says what load to put where.
type Options struct {
	// Addr has the servers' client addresses, host:port, with commas between
	// them; connections are spread over them in turn.
	Addr string
	// Workloads are names of Workloads, run in this order.
	Workloads []string
	// Connections is the number of connections, each with a session of its own.
	// 1 or more. Default 8. A server with a limit for one address
	// (maxClientCnxns) must allow them.
	Connections int
	// Outstanding is the number of requests that each connection keeps in work.
	// 1 or more. Default 16.
	Outstanding int
	// Rate, when above 0, is the number of requests sent in a second over all
	// connections, by the clock and whatever the answers do (open loop);
	// Outstanding is not used then. Default 0.
	Rate float64
	// Timeline is the length of the slices of time that results are given by,
	// too; 0 for none.
	Timeline time.Duration
	// Watchers is the number of sessions that hold a watch in the workload
	// watches, and of sessions in the workload sessions. 1 or more. Default 50.
	Watchers int
	// Rounds is how often watches and ephemerals are measured, at least.
	// 1 or more. Default 5.
	Rounds int
	// Keep leaves what fill has made.
	Keep bool
	// Filled has reads and writes choose from the nodes that a fill with the same
	// Root, Nodes and Flat has left, and leaves them, too.
	Filled bool
	// WatchesEach is how many nodes that do not exist each session of the
	// workload sessions watches. Default 0.
	WatchesEach int
	// Flat has fill make all nodes children of one node, instead of a thousand.
	Flat bool
	// Progress, when set, is told when all sessions are open, for instance.
	Progress func(line string)
	// ValueSize is the size of a node's data in bytes, 0 to 1000000. Default 100.
	ValueSize int
	// Nodes is the number of nodes that reads and writes choose from, evenly;
	// that fill makes; and that end with their session in the workload
	// ephemerals. 1 or more. Default 1000.
	Nodes int
	// WarmUp is the time before measuring. Default 2 s.
	WarmUp time.Duration
	// Duration is the time of measuring. Above 0. Default 10 s.
	Duration time.Duration
	// Requests ends the measuring early, after that many answers; 0 means never.
	Requests int64
	// Root is the node below which everything happens. It is made, and deleted
	// at the end. Default /zooraft-bench.
	Root string
	// SessionTimeout is what each connection asks for. Default 30 s.
	SessionTimeout time.Duration
	// Seed makes the choice of nodes repeatable. Default 1.
	Seed uint64
}

// DefaultOptions returns the defaults for an address.
func DefaultOptions(addr string) Options {
	return Options{
		Addr:           addr,
		Workloads:      usual(),
		Connections:    8,
		Outstanding:    16,
		Watchers:       50,
		Rounds:         5,
		ValueSize:      100,
		Nodes:          1000,
		WarmUp:         2 * time.Second,
		Duration:       10 * time.Second,
		Root:           "/zooraft-bench",
		SessionTimeout: 30 * time.Second,
		Seed:           1,
	}
}

// maxValueSize keeps a whole request below ZooKeeper's default frame limit.
const maxValueSize = 1_000_000

// maxOutstandingBytes keeps what one connection has on its way within what the
// kernel takes without waiting: its one goroutine does not read while it writes.
const maxOutstandingBytes = 2 << 20

// addresses are the servers, in order.
func (o Options) addresses() []string { return strings.Split(o.Addr, ",") }

// Validate checks ranges and names.
func (o Options) Validate() error {
	for name, n := range map[string]int{
		"connections": o.Connections, "outstanding": o.Outstanding, "watchers": o.Watchers, "nodes": o.Nodes, "rounds": o.Rounds,
	} {
		if n < 1 {
			return fmt.Errorf("%w: %s must be 1 or more", ErrOptions, name)
		}
	}
	switch {
	case o.ValueSize < 0 || o.ValueSize > maxValueSize:
		return fmt.Errorf("%w: the value size must be 0 to %d bytes", ErrOptions, maxValueSize)
	case o.Outstanding*o.ValueSize > maxOutstandingBytes:
		return fmt.Errorf("%w: outstanding × value size must be %d bytes or less", ErrOptions, maxOutstandingBytes)
	case o.Rate < 0 || o.Timeline < 0 || o.WatchesEach < 0:
		return fmt.Errorf("%w: rate, timeline and watches of each session must not be below 0", ErrOptions)
	case o.Duration <= 0 || o.WarmUp < 0 || o.Requests < 0:
		return fmt.Errorf("%w: the duration must be above 0, warm-up and requests not below", ErrOptions)
	case !strings.HasPrefix(o.Root, "/") || o.Root == "/" || strings.HasSuffix(o.Root, "/"):
		return fmt.Errorf("%w: the root must be a path below /", ErrOptions)
	}
	for _, addr := range o.addresses() {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("%w: address %q: %v", ErrOptions, addr, err)
		}
	}
	for _, name := range o.Workloads {
		if _, known := find(name); !known {
			return fmt.Errorf("%w: no workload %q; there are %s", ErrOptions, name, strings.Join(Names(), ", "))
		}
	}
	return nil
}
