package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

var (
	rows = flag.String("rows", "all", "comma list of rows: read, mixed-90, mixed-50, write, tail, latency, fanout, ephemerals, "+
		"small, memory, snapshot, start, sessions, idle, failover, log, cores")
	turns       = flag.Int("turns", 3, "turns; in each both systems start anew with fresh data")
	servers     = flag.String("servers", "1,3", "comma list of the sizes of ensembles for the rows of load")
	connections = flag.Int("connections", 64, "connections of the rows of load")
	outstanding = flag.Int("outstanding", 16, "requests that each connection keeps in work")
	valueSize   = flag.Int("value-size", 1024, "bytes of data in a node, of the rows of load")
	watchers    = flag.Int("watchers", 10000, "sessions of the row fanout")
	sessions    = flag.Int("sessions", 19000, "sessions of the row sessions; a process may not have more files than the machine allows")
	nodes       = flag.Int("nodes", 1_000_000, "nodes of the rows memory, snapshot and start")
	restarts    = flag.Int("restarts", 3, "starts of the row start, in each turn")
	kills       = flag.Int("kills", 5, "kills of the row failover, in each turn")
	tailShare   = flag.Float64("tail-share", 0.9, "part of the real server's peak that the row tail sends: at all of it a queue grows without end")
	warmUp      = flag.Duration("warm-up", 4*time.Second, "time before each measuring; Java compiles its hot code in it")
	duration    = flag.Duration("duration", 4*time.Second, "time of each measuring")
	settle      = flag.Duration("settle", time.Minute, "time that servers are left alone before memory is read, and that idle time is measured")
	logStore    = flag.String("log-store", "wal", "zooraft's log store, wal or bolt")
)

// turnNow is the number of the turn, from 0.
var turnNow int

// BenchmarkAgainstApache measures all axes of the table of targets. In each turn
// every system starts anew, with fresh data; within one, the systems take turns
// row by row, so that what else the machine does falls on both. It prints a
// table of medians, and writes all figures to build/bench.
func BenchmarkAgainstApache(b *testing.B) {
	peer.ZooraftBinary(b, false)
	peer.ApacheClasspath(b)
	s, begin, before := newSamples(), time.Now(), loadAverage(b)
	commit := said(b, "git", "-C", toolchain.Root(), "rev-parse", "--short", "HEAD") // what the servers are built from
	for turnNow = range *turns {
		fmt.Printf("turn %d of %d, load average %s\n", turnNow+1, *turns, loadAverage(b))
		b.Run(fmt.Sprintf("turn%d", turnNow+1), func(b *testing.B) {
			for _, n := range strings.Split(*servers, ",") {
				if anyWanted("read", "mixed-90", "mixed-50", "write", "tail", "latency", "fanout", "ephemerals", "small") {
					var size int
					if _, err := fmt.Sscan(n, &size); err != nil {
						b.Fatal(err)
					}
					b.Run("load"+n, func(b *testing.B) { loadRows(b, size, s) })
				}
			}
			for _, part := range []struct {
				name string
				rows []string
				run  func(*testing.B, *samples)
			}{
				{"million", []string{"memory", "snapshot", "start"}, millionRows},
				{"start", []string{"start"}, startRows},
				{"sessions", []string{"sessions"}, sessionRows},
				{"log", []string{"log"}, logRows},
				{"idle", []string{"idle"}, idleRows},
				{"cores", []string{"cores"}, coresRow},
				{"failover", []string{"failover"}, failoverRow},
			} {
				if anyWanted(part.rows...) {
					b.Run(part.name, func(b *testing.B) { part.run(b, s) })
				}
			}
		})
	}
	write(b, s, begin, before, commit)
}

func anyWanted(names ...string) bool {
	for _, name := range names {
		if wanted(name) {
			return true
		}
	}
	return false
}

// failoverRow kills the leaders of both, by turns.
func failoverRow(b *testing.B, s *samples) {
	o := failoverOptions(b)
	o.Kills = *kills
	results, err := bench.Failover(b.Context(), o, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range results {
		for _, gap := range r.GapMillis {
			s.add(r.System, "failover/3", gap)
		}
	}
}

// report is what is written to build/bench.
type report struct {
	Begun      time.Time `json:"begun"`
	Ended      time.Time `json:"ended"`
	Commit     string    `json:"commit"`
	Go         string    `json:"go"`
	Java       string    `json:"java"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"load_before"`
	LoadAfter  string    `json:"load_after"`
	Arguments  []string  `json:"arguments"`
	Samples    *samples  `json:"samples"`
}

// write prints the table with what it stands on, and keeps all figures.
func write(b *testing.B, s *samples, begin time.Time, before, commit string) {
	r := report{
		Begun: begin.UTC(), Ended: time.Now().UTC(), Commit: commit,
		Go: runtime.Version(), Java: strings.Split(said(b, "java", "-version"), "\n")[0], CPUs: runtime.NumCPU(),
		LoadBefore: before, LoadAfter: loadAverage(b), Arguments: os.Args[1:], Samples: s,
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(toolchain.Build(b, "bench"), "table-"+begin.UTC().Format("20060102T150405")+".json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		b.Fatal(err)
	}
	quiet := "The machine was quiet."
	if !quietLoad(before) || !quietLoad(r.LoadAfter) {
		quiet = "**The machine was not quiet**: read the ratios, not the figures."
	}
	fmt.Printf("\nzooraft %s (%s) against Apache ZooKeeper %s; %s, %s, %d processors; %s to %s UTC; load average %s before, %s after. %s\n\n"+
		"Both: maxClientCnxns=0, globalOutstandingLimit=2000, fsync before an answer, everything else as shipped. ZooKeeper: G1, -Xmx4g "+
		"(rows of load: -Xms4g, too), logging at WARN. %d × %d in work, %d bytes, %v after %v of warm-up; p99 at %.0f%% of ZooKeeper's peak, sent by the clock.\n\n%s\n",
		r.Commit, *logStore, peer.ApacheVersion, r.Go, r.Java, r.CPUs, r.Begun.Format("2006-01-02 15:04"), r.Ended.Format("15:04"), r.LoadBefore,
		r.LoadAfter, quiet, *connections, *outstanding, *valueSize, *duration, *warmUp, 100**tailShare, s.table())
	fmt.Println(s.ground())
	fmt.Println("All figures: " + path)
}

// quietLoad tells whether a load average leaves the machine to who measures.
func quietLoad(text string) bool {
	var load float64
	_, err := fmt.Sscan(text, &load)
	return err == nil && load < float64(runtime.NumCPU())/4
}

func loadAverage(b *testing.B) string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Fields(string(text))[0]
}

func said(b *testing.B, program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v", program, err)
	}
	return strings.TrimSpace(string(out))
}
