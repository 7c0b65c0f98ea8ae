package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrOptions is returned when an option is out of its range.
var ErrOptions = errors.New("bench: bad option")

// Options says what load to put where.
type Options struct {
	// Addr is the server's client address, host:port.
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
	// Watchers is the number of connections that hold a watch in the watches
	// workload. 1 or more. Default 50.
	Watchers int
	// ValueSize is the size of a node's data in bytes, 0 to 1000000. Default 100.
	ValueSize int
	// Nodes is the number of nodes that reads and writes choose from, evenly.
	// 1 or more. Default 1000.
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
		Workloads:      Names(),
		Connections:    8,
		Outstanding:    16,
		Watchers:       50,
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

// Validate checks ranges and names.
func (o Options) Validate() error {
	for name, n := range map[string]int{
		"connections": o.Connections, "outstanding": o.Outstanding, "watchers": o.Watchers, "nodes": o.Nodes,
	} {
		if n < 1 {
			return fmt.Errorf("%w: %s must be 1 or more", ErrOptions, name)
		}
	}
	switch {
	case o.ValueSize < 0 || o.ValueSize > maxValueSize:
		return fmt.Errorf("%w: the value size must be 0 to %d bytes", ErrOptions, maxValueSize)
	case o.Duration <= 0 || o.WarmUp < 0 || o.Requests < 0:
		return fmt.Errorf("%w: the duration must be above 0, warm-up and requests not below", ErrOptions)
	case !strings.HasPrefix(o.Root, "/") || o.Root == "/" || strings.HasSuffix(o.Root, "/"):
		return fmt.Errorf("%w: the root must be a path below /", ErrOptions)
	}
	for _, name := range o.Workloads {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("%w: no workload %q; there are %s", ErrOptions, name, strings.Join(Names(), ", "))
		}
	}
	return nil
}
