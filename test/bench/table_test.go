package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// axis is one line of the table of targets: a figure of both systems.
type axis struct {
	key, title, unit string
	// target is the ratio, ours over the real ZooKeeper's, that is aimed at; 0
	// for none. higher means that a larger figure is the better one.
	target float64
	higher bool
	// limit is what our own figure is to stay below, whatever the other's is; 0
	// for none.
	limit float64
}

// axes is the table of targets, in its order.
var axes = []axis{
	{"read/1", "reads, 64 connections × 16, one server", "/s", 5, true, 0},
	{"read/3", "reads, 64 × 16, three servers", "/s", 4, true, 0},
	{"mixed-90/1", "mix 90/10, one server", "/s", 3, true, 0},
	{"mixed-90/3", "mix 90/10, three servers", "/s", 2, true, 0},
	{"mixed-50/1", "mix 50/50, one server", "/s", 2, true, 0},
	{"mixed-50/3", "mix 50/50, three servers", "/s", 1.5, true, 0},
	{"write/1", "writes, 64 × 16, one server", "/s", 1.5, true, 0},
	{"write/3", "writes, 64 × 16, three servers", "/s", 1.5, true, 0},
	{"cpu/read/1", "processor time of the server for a read, 64 × 16, one server", "µs", 0, false, 0},
	{"cpu/write/1", "the same for a write", "µs", 0, false, 0},
	{"cpu/read/3", "the same for a read, three servers together", "µs", 0, false, 0},
	{"cpu/write/3", "the same for a write, three servers together", "µs", 0, false, 0},
	{"small/1/3", "writes of 100 bytes, 1 connection × 1, three servers", "/s", 0, true, 0},
	{"small/16/3", "the same, 16 connections × 1", "/s", 0, true, 0},
	{"small/128/3", "the same, 128 × 1", "/s", 1, true, 0},
	{"small/512/3", "the same, 512 × 1", "/s", 1, true, 0},
	{"small/p99/1/3", "p99 of writes of 100 bytes, 1 connection × 1, three servers", "µs", 0, false, 0},
	{"small/p99/16/3", "the same, 16 connections × 1", "µs", 0, false, 0},
	{"small/p99/128/3", "the same, 128 × 1", "µs", 1.5, false, 0},
	{"small/p99/512/3", "the same, 512 × 1", "µs", 1.5, false, 0},
	{"latency/1", "write 1 × 1, median, one server", "µs", 0.7, false, 0},
	{"latency/3/leader", "write 1 × 1, median, three servers, at the leader", "µs", 1, false, 0},
	{"latency/3/follower", "write 1 × 1, median, three servers, through a follower", "µs", 1, false, 0},
	{"read-latency/1", "read 1 × 1, median, one server", "µs", 0, false, 0},
	{"tail/read/p99/1", "p99 of reads at the peer's load, one server", "µs", 0.5, false, 0},
	{"tail/read/p999/1", "p99.9 of reads at the peer's load, one server", "µs", 0.5, false, 0},
	{"tail/read/p99/3", "p99 of reads at the peer's load, three servers", "µs", 0.7, false, 0},
	{"tail/read/p999/3", "p99.9 of reads at the peer's load, three servers", "µs", 0.7, false, 0},
	{"tail/write/p99/1", "p99 of writes at the peer's load, one server", "µs", 0.5, false, 0},
	{"tail/write/p999/1", "p99.9 of writes at the peer's load, one server", "µs", 0.5, false, 0},
	{"tail/write/p99/3", "p99 of writes at the peer's load, three servers", "µs", 0.7, false, 0},
	{"tail/write/p999/3", "p99.9 of writes at the peer's load, three servers", "µs", 0.7, false, 0},
	{"fanout/1", "one change watched by 10,000 sessions, until the last event, one server", "ms", 0.5, false, 0},
	{"fanout/3", "the same, three servers", "ms", 0.5, false, 0},
	{"ephemerals/1", "10,000 ephemerals of one session ending, until the last is seen gone", "ms", 0.5, false, 0},
	{"memory/empty", "resident, an empty server", "MB", 0, false, 40},
	{"memory/million", "resident, a million nodes of 100 bytes", "MB", 0.4, false, 0},
	{"memory/node", "resident above the empty server, for a node", "bytes", 0, false, 320},
	{"memory/session", "resident for an idle session", "bytes", 0.3, false, 0},
	{"idle/3", "processor time of three idle servers", "s/min", 1, false, 0},
	{"start/empty", "start to the first answer, empty", "ms", 0.1, false, 0},
	{"start/million", "start to the first answer, a million nodes", "ms", 0.25, false, 0},
	{"failover/3", "longest gap in acknowledged writes, leader killed", "ms", 0.5, false, 0},
	{"pause", "longest gap in acknowledged writes, while a snapshot of a million nodes is taken", "ms", 0, false, 5},
	{"pause/without", "the same, while none is taken", "ms", 0, false, 0},
	{"snapshot/bytes", "snapshot of a million nodes of 100 bytes", "MB", 1, false, 0},
	{"log/bytes/1024", "log for a write of 1 KiB", "bytes", 1, false, 0},
	{"log/bytes/100", "log for a write of 100 bytes", "bytes", 1, false, 0},
	{"cores/1", "reads, 64 × 16, one server on one processor (GOMAXPROCS)", "/s", 0, true, 0},
	{"cores/2", "the same on two", "/s", 0, true, 0},
}

// samples are the figures of both systems by axis, in the order of the turns.
type samples struct {
	Apache  map[string][]float64 `json:"apache"`
	Zooraft map[string][]float64 `json:"zooraft"`
	// Notes are what was seen beside the figures, by axis: syncs, processors.
	Notes map[string][]string `json:"notes"`
}

func newSamples() *samples {
	return &samples{Apache: map[string][]float64{}, Zooraft: map[string][]float64{}, Notes: map[string][]string{}}
}

func (s *samples) add(kind, key string, value float64) {
	of := s.Zooraft
	if kind == "apache" {
		of = s.Apache
	}
	of[key] = append(of[key], value)
	for _, hidden := range []string{"client/", "busy/", "syncs/", "persync/"} {
		if strings.HasPrefix(key, hidden) {
			return // the note says it
		}
	}
	fmt.Printf("  %-8s %-22s %s\n", kind, key, figure(value))
}

func (s *samples) note(kind, key, format string, args ...any) {
	text := kind + ": " + fmt.Sprintf(format, args...)
	s.Notes[key] = append(s.Notes[key], text)
	fmt.Println("      " + text)
}

// ratios are ours over the other's, turn by turn.
func (s *samples) ratios(key string) (all []float64) {
	a, z := s.Apache[key], s.Zooraft[key]
	for i := range min(len(a), len(z)) {
		all = append(all, z[i]/a[i])
	}
	return all
}

// table is the Markdown of all axes that were measured.
func (s *samples) table() string {
	var b strings.Builder
	b.WriteString("| axis | unit | zooraft | ZooKeeper | ratio (turns) | target | |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, x := range axes {
		a, z := s.Apache[x.key], s.Zooraft[x.key]
		if len(a)+len(z) == 0 {
			continue
		}
		ratio, target, verdict := "–", "–", ""
		if all := s.ratios(x.key); len(all) > 0 {
			ratio = fmt.Sprintf("**%.2f** (%.2f–%.2f)", median(all), slices.Min(all), slices.Max(all))
			switch {
			case x.target == 0:
			case x.higher:
				target, verdict = fmt.Sprintf("≥ %g", x.target), judge(printed(median(all)) >= x.target)
			default:
				target, verdict = fmt.Sprintf("≤ %g", x.target), judge(printed(median(all)) <= x.target)
			}
		}
		if x.limit > 0 && len(z) > 0 {
			target, verdict = fmt.Sprintf("ours ≤ %g %s", x.limit, x.unit), judge(median(z) <= x.limit)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", x.title, x.unit, middle(z), middle(a), ratio, target, verdict)
	}
	return b.String()
}

// ground is the Markdown of what the figures of load stood on.
func (s *samples) ground() string {
	var b strings.Builder
	b.WriteString("| row | system | syncs/s at the leader | writes per sync | µs of servers for a request | client, processors | machine busy, % |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, x := range axes {
		for _, of := range []struct {
			name    string
			figures map[string][]float64
		}{{"zooraft", s.Zooraft}, {"ZooKeeper", s.Apache}} {
			if len(of.figures["client/"+x.key]) == 0 {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |", x.title, of.name)
			for _, part := range []string{"syncs/", "persync/", "cpu/", "client/", "busy/"} {
				fmt.Fprintf(&b, " %s |", middle(of.figures[part+x.key]))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// printed is a ratio as the table shows it: two digits after the point.
func printed(ratio float64) float64 { return math.Round(100*ratio) / 100 }

func judge(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}

func middle(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return figure(median(values))
}

// figure prints three significant digits, or more of what is above 100.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
