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
	alternations = flag.Int("alternations", 5, "turns; each with both servers freshly started")
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

// BenchmarkAgainstApache starts both servers for each turn, with fresh data, and
// measures workload by workload, one server right after the other, so that what
// else the machine does falls on both. Which one comes first changes with every
// measuring. It prints for each workload the median of the turns' ratios and
// their range. A server that is not being measured is idle.
func BenchmarkAgainstApache(b *testing.B) {
	client := peer.ZooraftBinary(b, false)
	peer.ApacheClasspath(b)
	throughput, tail := map[string]*sample{}, map[string]*sample{}
	names := strings.Split(*workloads, ",")
	for _, name := range names {
		throughput[name], tail[name] = &sample{}, &sample{}
	}
	first := 0
	for turn := range *alternations {
		servers := []*peer.Server{startApache(b), startZooraft(b)}
		for _, name := range names {
			for i := range servers {
				server := servers[(first+i)%2]
				r := measure(b, client, server, name)
				fmt.Printf("turn %d, %-7s %-14s %10.0f %s/s, p99 %.3f ms\n",
					turn+1, server.Kind, name, r.PerSecond, r.Unit, r.Latency.P99/1000)
				throughput[name].add(server.Kind, r.PerSecond)
				tail[name].add(server.Kind, r.Latency.P99)
			}
			first++
		}
		for _, server := range servers {
			server.Stop(b)
		}
	}
	report(b, names, throughput, tail)
}

func (s *sample) add(kind string, value float64) {
	if kind == "apache" {
		s.apache = append(s.apache, value)
	} else {
		s.zooraft = append(s.zooraft, value)
	}
}

func startApache(b *testing.B) *peer.Server {
	return peer.StartApache(b, peer.Options{
		Config: map[string]string{"maxClientCnxns": "0"},
		JVMArgs: []string{
			"-Xms" + *heap, "-Xmx" + *heap,
			// The harness makes its servers start fast; this one is to run fast.
			"-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-Dzookeeper.log.level=WARN",
		},
	})
}

func startZooraft(b *testing.B) *peer.Server {
	return peer.StartZooraft(b, peer.Options{Config: map[string]string{"maxClientCnxns": "0", "raftLogStore": *logStore}})
}

// measure runs the client as a process of its own, so that both servers meet
// the same one.
func measure(b *testing.B, client string, server *peer.Server, workload string) bench.Result {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	command := exec.CommandContext(ctx, client,
		"bench", workload, "--json", "--addr", server.Address,
		"--connections", fmt.Sprint(*connections), "--outstanding", fmt.Sprint(*outstanding),
		"--value-size", fmt.Sprint(*valueSize), "--warm-up", warmUp.String(), "--duration", duration.String())
	output, err := command.Output()
	if err != nil {
		detail := ""
		if exit, ok := err.(*exec.ExitError); ok {
			detail = string(exit.Stderr)
		}
		b.Fatalf("%s against %s: %v\n%s\n%s", workload, server.Kind, err, detail, server.Log())
	}
	var results []bench.Result
	if err := json.Unmarshal(output, &results); err != nil || len(results) != 1 {
		b.Fatalf("%s against %s: %v\n%s", workload, server.Kind, err, output)
	}
	if len(results[0].Errors) > 0 {
		b.Fatalf("%s against %s met errors %v", workload, server.Kind, results[0].Errors)
	}
	return results[0]
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
