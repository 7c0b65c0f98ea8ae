package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Result is what one workload measured.
type Result struct {
	Workload string `json:"workload"`
	// Unit is what Operations counts: requests, events or sessions.
	Unit        string `json:"unit"`
	Connections int    `json:"connections"`
	Outstanding int    `json:"outstanding"`
	ValueBytes  int    `json:"value_bytes"`
	// Seconds is the time measured, without the warm-up.
	Seconds    float64 `json:"seconds"`
	Operations int64   `json:"operations"`
	PerSecond  float64 `json:"per_second"`
	Latency    Latency `json:"latency_us"`
	// Errors counts answers with an error code, by its name. They are not in
	// Operations.
	Errors map[string]int64 `json:"errors,omitempty"`
	// Rate is what was asked for in an open loop, in requests per second. Then a
	// latency counts from when a request was due.
	Rate float64 `json:"rate,omitempty"`
	// RoundMillis has the time of each round, of workloads that have rounds.
	RoundMillis []float64 `json:"round_ms,omitempty"`
	Client      Client    `json:"client"`
	Timeline    []Slice   `json:"timeline,omitempty"`
}

// Latency holds times in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// tally is what a worker gathers; tallies of several are merged.
type tally struct {
	operations int64
	latency    histogram
	errors     map[proto.ErrCode]int64
	last       time.Time // when the last answer that counted came
	timeline   *timeline // shared with all others of a run; nil for none
}

func (t *tally) fail(code proto.ErrCode) {
	if t.errors == nil {
		t.errors = map[proto.ErrCode]int64{}
	}
	t.errors[code]++
}

func (t *tally) merge(other *tally) {
	t.operations += other.operations
	t.latency.merge(&other.latency)
	if other.last.After(t.last) {
		t.last = other.last
	}
	for code, n := range other.errors {
		if t.errors == nil {
			t.errors = map[proto.ErrCode]int64{}
		}
		t.errors[code] += n
	}
}

func (t *tally) result(w workload, o Options, elapsed time.Duration) Result {
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	r := Result{
		Workload: w.name, Unit: w.unit, Connections: o.Connections, Outstanding: o.Outstanding, ValueBytes: o.ValueSize,
		Rate: o.Rate, Seconds: elapsed.Seconds(), Operations: t.operations, PerSecond: float64(t.operations) / elapsed.Seconds(),
		Latency: Latency{
			Mean: micros(t.latency.mean()), P50: micros(t.latency.quantile(0.5)), P90: micros(t.latency.quantile(0.9)),
			P99: micros(t.latency.quantile(0.99)), P999: micros(t.latency.quantile(0.999)), Max: micros(t.latency.max),
		},
	}
	for code, n := range t.errors {
		if r.Errors == nil {
			r.Errors = map[string]int64{}
		}
		r.Errors[code.String()] += n
	}
	return r
}

// WriteTable prints results for people.
func WriteTable(w io.Writer, results []Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %12s %-9s %9s %9s %9s %9s %9s %9s\n",
		"workload", "per second", "", "mean ms", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms")
	for _, r := range results {
		l := r.Latency
		fmt.Fprintf(&b, "%-14s %12.0f %-9s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", r.Workload, r.PerSecond, r.Unit,
			l.Mean/1000, l.P50/1000, l.P90/1000, l.P99/1000, l.P999/1000, l.Max/1000)
		fmt.Fprintf(&b, "%-14s %s\n", "", r.Client)
		for name, n := range r.Errors {
			fmt.Fprintf(&b, "%-14s %12d answers with error %s\n", "", n, name)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
