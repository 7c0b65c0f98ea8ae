package embedding

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/test/toolchain"
	"github.com/zooraft/zooraft/zktest"
)

// timingRounds is how often each kind of server is started.
const timingRounds = 15

// BenchmarkStartsBesideCurator measures what docs/testing.md states: how long a
// test waits from the call that starts a server until its client has written.
// Curator's TestingServer and ours run by turns, in one JVM; zktest runs right
// after it. Read it on a quiet machine: make bench-embedding.
func BenchmarkStartsBesideCurator(b *testing.B) {
	for b.Loop() {
		times := timedByJava(b)
		times["zktest-1"], times["zktest-3"] = timedInGo(b, 1), timedInGo(b, 3)
		fmt.Println(timingTable(times))
	}
}

// timedByJava returns the milliseconds of each start, by kind.
func timedByJava(b *testing.B) map[string][]float64 {
	toolchain.Need(b, "java", "javac", "mvn")
	dir := source("timings")
	jars := toolchain.ClassPath(b, filepath.Join(dir, "pom.xml"))
	extension := toolchain.CompileJava(b, "embedding-extension", filepath.Join(source("java"), "src"), jars)
	path := extension + string(filepath.ListSeparator) + jars
	classes := toolchain.CompileJava(b, "embedding-timings", filepath.Join(dir, "src"), path)
	output := toolchain.Run(b, b.TempDir(), program(b), "java",
		"-cp", classes+string(filepath.ListSeparator)+path, "Timings", strconv.Itoa(timingRounds))
	times := map[string][]float64{}
	for _, m := range regexp.MustCompile(`(?m)^timing (\S+) ([0-9.]+)$`).FindAllStringSubmatch(output, -1) {
		millis, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			b.Fatal(err)
		}
		times[m[1]] = append(times[m[1]], millis)
	}
	if len(times) != 4 {
		b.Fatalf("no timings in:\n%s", toolchain.Tail(output, 40))
	}
	return times
}

// timedInGo does in this process what Timings.java does in its own.
func timedInGo(b *testing.B, servers int) []float64 {
	var times []float64
	for range timingRounds {
		begun := time.Now()
		ens, err := zktest.StartEnsemble(servers)
		if err != nil {
			b.Fatal(err)
		}
		ctx := context.Background()
		conn, err := client.Dial(ctx, ens.Addrs()[0], client.Options{Timeout: 30 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Create(ctx, "/a", nil, 0); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begun).Seconds()*1000)
		if err := conn.Close(ctx); err != nil {
			b.Fatal(err)
		}
		if err := ens.Stop(); err != nil {
			b.Fatal(err)
		}
	}
	return times
}

// timingTable prints first, median and slowest of each kind, and the ratio of
// Curator's median to ours.
func timingTable(times map[string][]float64) string {
	var t strings.Builder
	load, _ := os.ReadFile("/proc/loadavg") // is left out where there is none
	fmt.Fprintf(&t, "%d starts each, by turns; %d processors, load average %s\n\n", timingRounds, runtime.NumCPU(), strings.TrimSpace(string(load)))
	t.WriteString("| servers | first, ms | median, ms | slowest, ms | Curator's median is |\n| --- | --- | --- | --- | --- |\n")
	for _, n := range []string{"1", "3"} {
		curators := median(times["curator-"+n])
		for _, kind := range []struct{ key, name string }{
			{"curator", map[string]string{"1": "Curator's TestingServer", "3": "Curator's TestingCluster of 3"}[n]},
			{"zooraft", "`serve --ephemeral`, " + n + ", by the JUnit extension"},
			{"zktest", "`zktest`, " + n + ", in Go"},
		} {
			all := times[kind.key+"-"+n]
			fmt.Fprintf(&t, "| %s | %.1f | %.1f | %.1f | %.1f times that |\n", kind.name, all[0], median(all), slices.Max(all), curators/median(all))
		}
	}
	return t.String()
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
