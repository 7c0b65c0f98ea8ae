// Package bench measures zooraft beside the real ZooKeeper: both on this
// machine, by turns, with the same load from the same client, so that a ratio
// says something even where an absolute figure does not.
//
// Run it with make bench. It is no test: it has no figure that passes or fails.
package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

var (
	alternations = flag.Int("alternations", 5, "how often each server is measured; by turns, each time freshly started")
	workloads    = flag.String("workloads", strings.Join(bench.Names(), ","), "comma list of workloads")
	connections  = flag.Int("connections", 8, "connections")
	outstanding  = flag.Int("outstanding", 16, "requests that each connection keeps in work")
	valueSize    = flag.Int("value-size", 100, "bytes of data in a node")
	warmUp       = flag.Duration("warm-up", 5*time.Second, "time before each measuring; Java compiles its hot code in it")
	duration     = flag.Duration("duration", 5*time.Second, "time of each measuring")
	logStore     = flag.String("log-store", "wal", "zooraft's log store, wal or bolt")
	heap         = flag.String("heap", "1g", "heap of the real ZooKeeper")
)

// sample is one figure of both servers by workload, in order of the turns.
type sample struct{ apache, zooraft []float64 }

// BenchmarkAgainstApache starts one server, measures, stops it, starts the
// other, and so on, and prints for each workload the median of the ratios of
// neighbouring turns and their range.
func BenchmarkAgainstApache(b *testing.B) {
	client := peer.ZooraftBinary(b, false)
	peer.ApacheClasspath(b)
	throughput, tail := map[string]*sample{}, map[string]*sample{}
	names := strings.Split(*workloads, ",")
	for _, name := range names {
		throughput[name], tail[name] = &sample{}, &sample{}
	}
	for turn := range *alternations {
		order := []string{"apache", "zooraft"}
		if turn%2 == 1 {
			slices.Reverse(order) // so that neither always comes first
		}
		for _, kind := range order {
			for _, r := range measure(b, client, kind) {
				fmt.Printf("turn %d, %-7s %-14s %10.0f %s/s, p99 %.3f ms\n", turn+1, kind, r.Workload, r.PerSecond, r.Unit, r.Latency.P99/1000)
				add := func(s *sample, v float64) {
					if kind == "apache" {
						s.apache = append(s.apache, v)
					} else {
						s.zooraft = append(s.zooraft, v)
					}
				}
				add(throughput[r.Workload], r.PerSecond)
				add(tail[r.Workload], r.Latency.P99)
			}
		}
	}
	report(b, names, throughput, tail)
}

// measure starts a server with fresh data, measures all workloads, and stops
// it. What the workloads need beyond defaults is the same for both.
func measure(b *testing.B, client, kind string) []bench.Result {
	b.Helper()
	options := peer.Options{Config: map[string]string{"maxClientCnxns": "0"}}
	var server *peer.Server
	if kind == "apache" {
		options.JVMArgs = []string{
			"-Xms" + *heap, "-Xmx" + *heap,
			// The harness starts its servers for a quick start; this one is to be fast.
			"-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-Dzookeeper.log.level=WARN",
		}
		server = peer.StartApache(b, options)
	} else {
		options.Config["raftLogStore"] = *logStore
		server = peer.StartZooraft(b, options)
	}
	defer server.Stop(b)
	args := append([]string{
		"bench", "--json", "--addr", server.Address,
		"--connections", fmt.Sprint(*connections), "--outstanding", fmt.Sprint(*outstanding),
		"--value-size", fmt.Sprint(*valueSize), "--warm-up", warmUp.String(), "--duration", duration.String(),
	}, strings.Split(*workloads, ",")...)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	command := exec.CommandContext(ctx, client, args...)
	output, err := command.Output()
	if err != nil {
		detail := ""
		if exit, ok := err.(*exec.ExitError); ok {
			detail = string(exit.Stderr)
		}
		b.Fatalf("bench against %s: %v\n%s\n%s", kind, err, detail, server.Log())
	}
	var results []bench.Result
	if err := json.Unmarshal(output, &results); err != nil {
		b.Fatalf("bench against %s: %v", kind, err)
	}
	for _, r := range results {
		if len(r.Errors) > 0 {
			b.Fatalf("bench against %s: %s met errors %v", kind, r.Workload, r.Errors)
		}
	}
	return results
}

func report(b *testing.B, names []string, throughput, tail map[string]*sample) {
	var out strings.Builder
	fmt.Fprintf(&out, "zooraft (%s) against ZooKeeper %s: %d turns, %d connections × %d outstanding, %d bytes, %v each, %d CPUs\n\n",
		*logStore, peer.ApacheVersion, *alternations, *connections, *outstanding, *valueSize, *duration, runtime.NumCPU())
	out.WriteString("| workload | throughput, zooraft : ZooKeeper | p99 latency, zooraft : ZooKeeper | zooraft per second | ZooKeeper per second |\n")
	out.WriteString("| --- | --- | --- | --- | --- |\n")
	for _, name := range names {
		t, l := throughput[name], tail[name]
		fmt.Fprintf(&out, "| %s | %s | %s | %.0f | %.0f |\n", name, ratios(t), ratios(l), median(t.zooraft), median(t.apache))
		b.ReportMetric(median(divide(t)), name+"-throughput-ratio")
	}
	fmt.Println("\n" + out.String()) // a benchmark's log is cut after ten lines
}

// ratios prints the median ratio of the turns and their range.
func ratios(s *sample) string {
	r := divide(s)
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", median(r), slices.Min(r), slices.Max(r))
}

// divide returns zooraft's figure over the real ZooKeeper's, turn by turn.
func divide(s *sample) (ratios []float64) {
	for i := range s.apache {
		ratios = append(ratios, s.zooraft[i]/s.apache[i])
	}
	return ratios
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
