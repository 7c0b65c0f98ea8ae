package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// FailoverOptions say how a failover is measured.
type FailoverOptions struct {
	// Systems are what is measured, one after the other at each kill so that
	// the machine's load falls on all alike: a name and the command that starts
	// a server, to which the path of its zoo.cfg is added.
	Systems []System
	// Kills is how often the leader of each is killed. 1 or more. Default 10.
	Kills int
	// Servers is the size of each ensemble. 3 or more. Default 3.
	Servers int
	// Connections is the number of clients, spread over the servers, and
	// Outstanding what each keeps in work. Defaults 6 and 4.
	Connections, Outstanding int
	// Rest is the time of load before a kill and after writes have resumed.
	// Default 3 s.
	Rest time.Duration
	// Dir holds the servers' files. It must exist.
	Dir string
}

// System is one product to measure.
type System struct {
	Name    string
	Command []string
}

// DefaultFailoverOptions returns the defaults, without systems and directory.
func DefaultFailoverOptions() FailoverOptions {
	return FailoverOptions{Kills: 10, Servers: 3, Connections: 6, Outstanding: 4, Rest: 3 * time.Second}
}

// Validate checks ranges.
func (o FailoverOptions) Validate() error {
	switch {
	case len(o.Systems) == 0 || o.Dir == "":
		return fmt.Errorf("%w: there must be a system and a directory", ErrOptions)
	case o.Kills < 1 || o.Servers < 3 || o.Connections < 1 || o.Outstanding < 1 || o.Rest <= 0:
		return fmt.Errorf("%w: kills, connections and outstanding must be 1 or more, servers 3 or more, the rest above 0", ErrOptions)
	}
	return nil
}

// FailoverResult is what was measured of one system.
type FailoverResult struct {
	System string `json:"system"`
	// Writes is how many were acknowledged, over the whole time.
	Writes int64 `json:"writes"`
	// GapMillis has, for each kill, the longest time in which no write of any
	// client was acknowledged; WorstMillis that of the client that waited
	// longest.
	GapMillis   []float64 `json:"gap_ms"`
	WorstMillis []float64 `json:"worst_client_gap_ms"`
	// Client is what the load cost while it was on; the servers are other processes.
	Client Client `json:"client"`
}

// Failover kills leaders under load.
func Failover(ctx context.Context, o FailoverOptions, progress io.Writer) ([]FailoverResult, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var rigs []*rig
	defer func() {
		for _, r := range rigs {
			r.close()
		}
	}()
	var results []FailoverResult
	for _, system := range o.Systems {
		r, err := newRig(ctx, o, system)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", system.Name, err)
		}
		rigs = append(rigs, r)
		results = append(results, FailoverResult{System: system.Name})
	}
	for kill := range o.Kills {
		for i, r := range rigs {
			m := newMeter()
			any, worst, err := r.killLeader(ctx, o)
			if err != nil {
				return results, fmt.Errorf("%s, kill %d: %w", o.Systems[i].Name, kill+1, err)
			}
			results[i].Client = results[i].Client.and(m.read())
			results[i].Writes = r.load.writes()
			results[i].GapMillis = append(results[i].GapMillis, millis(any))
			results[i].WorstMillis = append(results[i].WorstMillis, millis(worst))
			if _, err := fmt.Fprintf(progress, "kill %d of %s: no write for %.0f ms, worst client %.0f ms, load average %s\n",
				kill+1, o.Systems[i].Name, millis(any), millis(worst), loadAverage()); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// loadAverage is the machine's, where it tells.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	first, _, found := strings.Cut(string(text), " ")
	if err != nil || !found {
		return "unknown"
	}
	return first
}

// rig is one ensemble and the clients that write to it.
type rig struct {
	ensemble *ensemble
	load     *writers
}

func newRig(ctx context.Context, o FailoverOptions, system System) (*rig, error) {
	e, err := newEnsemble(ctx, filepath.Join(o.Dir, system.Name), system.Command, o.Servers)
	if err != nil {
		return nil, err
	}
	return &rig{ensemble: e, load: newWriters(e.addresses(), o.Connections, o.Outstanding)}, nil
}

func (r *rig) close() {
	r.load.stop()
	r.ensemble.close()
}

// killLeader puts load on, kills the leader, waits until all clients write
// again, and starts the killed server.
func (r *rig) killLeader(ctx context.Context, o FailoverOptions) (any, worst time.Duration, err error) {
	r.load.start()
	defer r.load.stop()
	if err := r.load.awaitAll(ctx); err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, o.Rest); err != nil {
		return 0, 0, err
	}
	leader := r.ensemble.leader()
	if leader == nil {
		return 0, 0, ErrEnsemble
	}
	r.load.forget()
	leader.kill()
	if err := r.load.awaitAll(ctx); err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, o.Rest); err != nil { // a second election counts too
		return 0, 0, err
	}
	any, worst = r.load.gaps()
	if err := r.ensemble.start(leader); err != nil {
		return 0, 0, err
	}
	return any, worst, r.ensemble.awaitAll(ctx)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WriteFailover prints results for people.
func WriteFailover(w io.Writer, results []FailoverResult) error {
	var b strings.Builder
	fmt.Fprintf(&b, "longest time without an acknowledged write, of all clients together and of the worst\n"+
		"%-12s %6s %12s %12s %16s %16s %12s\n", "system", "kills", "median ms", "maximum ms", "worst median ms", "worst maximum ms", "writes")
	for _, r := range results {
		fmt.Fprintf(&b, "%-12s %6d %12.0f %12.0f %16.0f %16.0f %12d\n", r.System, len(r.GapMillis),
			median(r.GapMillis), slices.Max(r.GapMillis), median(r.WorstMillis), slices.Max(r.WorstMillis), r.Writes)
		fmt.Fprintf(&b, "%-12s %s\n", "", r.Client)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
