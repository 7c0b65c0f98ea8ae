package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// DisturbedOptions say how throughput is followed while servers fail.
type DisturbedOptions struct {
	// System is what is measured.
	System System
	// Servers is the size of the ensemble. 3 or more. Default 5.
	Servers int
	// Connections is the number of clients, spread over the servers, and
	// Outstanding what each keeps in work. Defaults 20 and 8.
	Connections, Outstanding int
	// Reads is the share of reads, 0 to 100. Default 70.
	Reads int
	// Step is the time between two events. Default 5 s.
	Step time.Duration
	// Slice is the length of the slices of time. Default 100 ms.
	Slice time.Duration
	// Dir holds the servers' files. It must exist.
	Dir string
}

// DefaultDisturbedOptions returns the defaults, without system and directory.
func DefaultDisturbedOptions() DisturbedOptions {
	return DisturbedOptions{Servers: 5, Connections: 20, Outstanding: 8, Reads: 70, Step: 5 * time.Second, Slice: 100 * time.Millisecond}
}

// Disturbance is something done to the servers.
type Disturbance struct {
	AtSeconds float64 `json:"at_s"`
	What      string  `json:"what"`
}

// DisturbedResult is the course of a run.
type DisturbedResult struct {
	Slices []Slice       `json:"slices"`
	Events []Disturbance `json:"events"`
}

// Disturbed puts load on an ensemble and kills and restarts servers: a follower,
// another follower, the leader, and two followers at once.
func Disturbed(ctx context.Context, o DisturbedOptions) (result DisturbedResult, err error) {
	if o.Servers < 3 || o.Connections < 1 || o.Outstanding < 1 || o.Step <= 0 || o.Slice <= 0 || o.Dir == "" {
		return result, fmt.Errorf("%w: of a disturbed run", ErrOptions)
	}
	e, err := newEnsemble(ctx, filepath.Join(o.Dir, o.System.Name), o.System.Command, o.Servers)
	if err != nil {
		return result, err
	}
	defer e.close()
	load := newWriters(e.addresses(), o.Connections, o.Outstanding)
	load.reads = o.Reads
	load.start()
	defer load.stop()
	if err := load.awaitAll(ctx); err != nil {
		return result, err
	}
	if err := pause(ctx, o.Step); err != nil { // warm-up
		return result, err
	}
	steps := e.disturbances()
	begin := time.Now()
	line := newTimeline(Options{Timeline: o.Slice, Duration: o.Step * time.Duration(len(steps)+1)}, window{start: begin})
	load.follow(line)
	for i, step := range steps {
		// By the clock: a kill or a start takes a while.
		if err := pause(ctx, time.Until(begin.Add(o.Step*time.Duration(i+1)))); err != nil {
			return result, err
		}
		result.Events = append(result.Events, Disturbance{AtSeconds: time.Since(begin).Seconds(), What: step.what})
		if err := step.do(); err != nil {
			return result, err
		}
	}
	if err := pause(ctx, time.Until(begin.Add(o.Step*time.Duration(len(steps)+1)))); err != nil {
		return result, err
	}
	load.follow(nil)
	result.Slices = line.report()
	return result, nil
}

type disturbance struct {
	what string
	do   func() error
}

// disturbances are what the paper that introduced ZooKeeper did to its servers,
// in short.
func (e *ensemble) disturbances() []disturbance {
	var down []*process
	kill := func(leader bool, n int) func() error {
		return func() error {
			l := e.leader()
			for _, s := range e.servers {
				if n > 0 && s.running() && (s == l) == leader {
					s.kill()
					down = append(down, s)
					n--
				}
			}
			return nil
		}
	}
	restart := func() error {
		for _, s := range down {
			if err := e.start(s); err != nil {
				return err
			}
		}
		down = nil
		return nil
	}
	two := (len(e.servers) - 1) / 2
	return []disturbance{
		{"kill a follower", kill(false, 1)}, {"restart it", restart},
		{"kill the leader", kill(true, 1)}, {"restart it", restart},
		{fmt.Sprintf("kill %d followers", two), kill(false, two)}, {"restart them", restart},
		{"kill the leader", kill(true, 1)}, {"restart it", restart},
	}
}

// running tells whether a process has been started and has not ended.
func (s *process) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}
