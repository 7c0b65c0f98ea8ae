package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

var (
	plots       = flag.String("plots", "all", "comma list of plots: throughput, latency, failures, growth")
	plotServers = flag.String("plot-servers", "1,3,5", "comma list of the sizes of ensembles of the plots throughput and latency")
	plotShares  = flag.String("plot-shares", "0,25,50,75,90,100", "comma list of read shares of the plot throughput")
	plotStep    = flag.Duration("plot-step", 5*time.Second, "time between two failures of the plot failures")
	growTo      = flag.Float64("grow", 1, "size of the plots of growth: 1 reaches 10^5 nodes, children and watches and 5000 sessions; "+
		"10 reaches 10^6 of them and 50,000 sessions; 50 reaches 5×10^6 nodes")
	plotSystems = flag.String("plot-systems", "zooraft,apache", "comma list of systems")
)

// BenchmarkReport draws the plots of docs/performance.md for both systems into
// docs/performance, with the figures beside them as JSON.
func BenchmarkReport(b *testing.B) {
	for _, part := range []struct {
		name string
		draw func(*testing.B)
	}{{"throughput", throughputPlot}, {"latency", latencyPlot}, {"failures", failuresPlot}, {"growth", growthPlots}} {
		if among(*plots, part.name) || *plots == "all" {
			b.Run(part.name, part.draw)
		}
	}
}

func among(list, name string) bool {
	for _, one := range strings.Split(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}

// numbers reads a comma list.
func numbers(b *testing.B, list string) (all []int) {
	b.Helper()
	for _, text := range strings.Split(list, ",") {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatalf("%q: %v", list, err)
		}
		all = append(all, n)
	}
	return all
}

func systems() (all []string) { return strings.Split(*plotSystems, ",") }

// draw writes a plot and its figures.
func draw(b *testing.B, name string, p bench.Plot) {
	b.Helper()
	dir := filepath.Join(toolchain.Root(), "docs", "performance")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(p.SVG()), 0o644); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(toolchain.Build(b, "bench"), name+".json"), text, 0o644); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("drawn: docs/performance/%s.svg, load average %s\n", name, loadAverage(b))
}

// throughputPlot is throughput over the share of reads.
func throughputPlot(b *testing.B) {
	p := bench.Plot{
		Title: fmt.Sprintf("Throughput, %d connections × %d, %d bytes", *connections, *outstanding, *valueSize),
		X:     "reads, in percent of all requests", Y: "requests per second", LogY: true,
	}
	for colour, n := range numbers(b, *plotServers) {
		for _, kind := range systems() {
			line := bench.Series{Name: fmt.Sprintf("%s, %d server(s)", title(kind), n), Colour: colour, Dashed: kind == "apache"}
			b.Run(fmt.Sprintf("%s%d", kind, n), func(b *testing.B) {
				site := startSite(b, kind, n, fixedHeap)
				defer site.stop(b)
				for _, share := range numbers(b, *plotShares) {
					r := site.load(b, site.addresses(), fmt.Sprintf("mixed-%d", share), shape()...)
					line.Points = append(line.Points, [2]float64{float64(share), r.PerSecond})
					fmt.Printf("  %-30s %3d%% reads %10.0f/s\n", line.Name, share, r.PerSecond)
				}
			})
			p.Series = append(p.Series, line)
		}
	}
	draw(b, "throughput", p)
}

func title(kind string) string {
	if kind == "apache" {
		return "ZooKeeper"
	}
	return "zooraft"
}

// latencyPlot is the latency of single writes over the number of servers.
func latencyPlot(b *testing.B) {
	p := bench.Plot{Title: fmt.Sprintf("Latency of a write, one at a time, %d bytes", *valueSize), X: "servers", Y: "µs"}
	for colour, quantile := range []string{"median", "p99"} {
		for _, kind := range systems() {
			p.Series = append(p.Series, bench.Series{Name: title(kind) + ", " + quantile, Colour: colour, Dashed: kind == "apache"})
		}
	}
	for k, kind := range systems() {
		for _, n := range numbers(b, *plotServers) {
			b.Run(fmt.Sprintf("%s%d", kind, n), func(b *testing.B) {
				site := startSite(b, kind, n, fixedHeap)
				defer site.stop(b)
				r := site.load(b, site.servers[site.leader].Address, "write-latency", append(window(), "--value-size", fmt.Sprint(*valueSize))...)
				p.Series[k].Points = append(p.Series[k].Points, [2]float64{float64(n), r.Latency.P50})
				other := &p.Series[len(systems())+k]
				other.Points = append(other.Points, [2]float64{float64(n), r.Latency.P99})
			})
		}
	}
	draw(b, "latency", p)
}

// failuresPlot is throughput over time while servers are killed.
func failuresPlot(b *testing.B) {
	p := bench.Plot{Title: "Throughput with failures: 5 servers, 70% reads, 20 clients", X: "seconds", Y: "requests per second"}
	for k, kind := range systems() {
		o := bench.DefaultDisturbedOptions()
		o.Dir, o.Step = b.TempDir(), *plotStep
		all := failoverOptions(b).Systems
		for _, system := range all {
			if system.Name == kind {
				o.System = system
			}
		}
		r, err := bench.Disturbed(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		line := bench.Series{Name: title(kind), Colour: k}
		for _, slice := range r.Slices {
			line.Points = append(line.Points, [2]float64{float64(slice.AtMillis-r.Slices[0].AtMillis) / 1000, float64(slice.Operations) / o.Slice.Seconds()})
		}
		p.Series = append(p.Series, line)
		p.Marks = nil // the same for all
		for _, event := range r.Events {
			p.Marks = append(p.Marks, bench.Mark{At: event.AtSeconds, Text: event.What})
		}
	}
	draw(b, "failures", p)
}

// sizes are up to most, each about three times the last.
func sizes(from, most float64) (all []int) {
	for n, third := from, true; n < most*0.9; third = !third {
		all = append(all, int(n))
		if third {
			n *= 3
		} else {
			n *= 10.0 / 3
		}
	}
	return append(all, int(most))
}

// growthPlots show what an operation costs while something grows.
func growthPlots(b *testing.B) {
	for _, g := range growths() {
		b.Run(g.name, func(b *testing.B) {
			p := bench.Plot{Title: g.title, X: g.x, Y: "µs, median", LogX: true, LogY: true}
			for _, kind := range systems() {
				lines := map[string]*bench.Series{}
				var order []string
				for _, size := range g.sizes {
					b.Run(fmt.Sprintf("%s%d", kind, size), func(b *testing.B) {
						site := startSite(b, kind, 1, livingHeap)
						defer site.stop(b)
						for _, cost := range g.measure(b, site, size) {
							if lines[cost.name] == nil {
								lines[cost.name] = &bench.Series{Colour: len(order), Dashed: kind == "apache"}
								order = append(order, cost.name)
							}
							line := lines[cost.name]
							line.Points = append(line.Points, [2]float64{float64(size), cost.micros})
							fmt.Printf("  %-8s %-10s %9d: %-8s %.1f µs\n", kind, g.name, size, cost.name, cost.micros)
						}
					})
				}
				for _, name := range order {
					line := *lines[name]
					line.Name = fmt.Sprintf("%s, %s: %.2f", title(kind), name, bench.Exponent(line.Points))
					p.Series = append(p.Series, line)
				}
			}
			draw(b, "growth-"+g.name, p)
		})
	}
}

// cost is the median time of an operation.
type cost struct {
	name   string
	micros float64
}

type growth struct {
	name, title, x string
	sizes          []int
	measure        func(*testing.B, *site, int) []cost
}

// single measures single reads and writes of the nodes that args name.
func single(b *testing.B, s *site, args ...string) (all []cost) {
	for _, name := range []string{"read", "write"} {
		all = append(all, cost{name, s.load(b, s.addresses(), name+"-latency", append(window(), args...)...).Latency.P50})
	}
	return all
}

func growths() []growth {
	g := *growTo
	return []growth{
		{"nodes", "Nodes in the tree (exponents beside the names)", "nodes", sizes(1e4, min(1e5*g, 5e6)), func(b *testing.B, s *site, n int) []cost {
			args := []string{"--nodes", fmt.Sprint(n), "--value-size", "100", "--root", "/app"}
			s.load(b, s.addresses(), "fill", append(args, "--keep", "--connections", "16")...)
			return single(b, s, append(args, "--filled")...)
		}},
		{"children", "Children of one node", "children", sizes(1e3, min(1e5*g, 1e6)), func(b *testing.B, s *site, n int) []cost {
			args := []string{"--nodes", fmt.Sprint(n), "--value-size", "100", "--root", "/app"}
			s.load(b, s.addresses(), "fill", append(args, "--keep", "--flat", "--connections", "16")...)
			churn := s.load(b, s.addresses(), "create-delete", append(window(), "--root", "/app", "--filled", "--connections", "1", "--outstanding", "1")...)
			return append(single(b, s, append(args, "--filled", "--flat")...), cost{"create and delete", churn.Latency.P50})
		}},
		{"watches", "Watches of others", "watches", sizes(1e3, min(1e5*g, 1e6)), func(b *testing.B, s *site, n int) []cost {
			return beside(b, s, "--watchers", "100", "--watches-each", fmt.Sprint(n/100))
		}},
		{"sessions", "Idle sessions", "sessions", sizes(100, min(5e3*g, 5e4)), besideSessions},
		{"depth", "Depth of the tree", "components of the path", []int{2, 4, 8, 16, 32, 64, 128}, func(b *testing.B, s *site, n int) []cost {
			return single(b, s, "--root", strings.Repeat("/n", n-1), "--value-size", "100")
		}},
		{"size", "Size of the data", "bytes", []int{100, 1000, 10_000, 100_000, 1_000_000}, func(b *testing.B, s *site, n int) []cost {
			return single(b, s, "--value-size", fmt.Sprint(n), "--nodes", "16", "--outstanding", "1")
		}},
	}
}

// beside measures single reads and writes while sessions are held.
func beside(b *testing.B, s *site, args ...string) []cost {
	release := holdSessions(b, s.servers[0], args...)
	defer release()
	return single(b, s, "--value-size", "100", "--root", "/besides")
}

// besideSessions measures beside n sessions. Those for which this machine has no
// files are of clients that were killed: a session lives on without its connection
// until its timeout, which is longer than the measurement.
func besideSessions(b *testing.B, s *site, n int) []cost {
	left := n
	for ; left > *sessions; left -= *sessions {
		holdSessions(b, s.servers[0], "--watchers", fmt.Sprint(*sessions))()
	}
	costs := beside(b, s, "--watchers", fmt.Sprint(left))
	if alive := mntr(b, s.servers[0], "zk_global_sessions"); alive < float64(n) {
		b.Fatalf("%s: %.0f sessions are left of %d: this machine is too slow to measure while they live", s.kind, alive, n)
	}
	return costs
}

// holdSessions opens sessions, returns when all are open, and drops them when
// the function that it returns is called.
func holdSessions(b *testing.B, server *peer.Server, args ...string) (release func()) {
	b.Helper()
	return hold(b, append([]string{"bench", "sessions", "--addr", server.Address, "--duration", "1h"}, args...)...)
}
