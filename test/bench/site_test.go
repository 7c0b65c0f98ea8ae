package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

// site is one system under load: a server, or an ensemble.
type site struct {
	kind    string
	servers []*peer.Server
	leader  int // index; 0 for a single server
}

// kinds are both systems.
var kinds = []string{"apache", "zooraft"}

// settings are equal for both: what each needs so that neither limits the load
// by rule, and the limits of Apache's sample file. Everything else is as shipped.
var settings = map[string]string{
	"maxClientCnxns": "0", "globalOutstandingLimit": "2000", "4lw.commands.whitelist": "*",
	"initLimit": "10", "syncLimit": "5",
}

// heap arguments: a fixed heap where throughput counts, one that may shrink
// where memory does.
var (
	fixedHeap  = []string{"-Xms4g", "-Xmx4g"}
	livingHeap = []string{"-Xmx4g"}
)

// startSite starts n servers with fresh data.
func startSite(b *testing.B, kind string, n int, heap []string) *site {
	b.Helper()
	s := &site{kind: kind}
	opts := options(kind, heap)
	if n == 1 {
		if kind == "apache" {
			s.servers = []*peer.Server{peer.StartApache(b, opts)}
		} else {
			s.servers = []*peer.Server{peer.StartZooraft(b, opts)}
		}
		return s
	}
	var e *peer.Ensemble
	if kind == "apache" {
		e = peer.StartApacheEnsemble(b, n, opts)
	} else {
		e = peer.StartZooraftEnsemble(b, n, opts)
	}
	s.servers, s.leader = e.Servers, max(e.Leader(), 0)
	return s
}

// options of one server. The harness makes its real servers start fast and stay
// small; these are to run as they are shipped.
func options(kind string, heap []string) peer.Options {
	o := peer.Options{Config: maps.Clone(settings)}
	if kind == "apache" {
		o.JVMArgs = append([]string{"-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:+UsePerfData", "-Dzookeeper.log.level=WARN"}, heap...)
	} else {
		o.Config["raftLogStore"] = *logStore
	}
	return o
}

func (s *site) stop(b *testing.B) {
	for _, server := range s.servers {
		server.Kill(b)
	}
}

func (s *site) addresses() string {
	var all []string
	for _, server := range s.servers {
		all = append(all, server.Address)
	}
	return strings.Join(all, ",")
}

// load runs the client as a process of its own against addr.
func (s *site) load(b *testing.B, addr, workload string, args ...string) bench.Result {
	b.Helper()
	r, err := s.try(b, addr, workload, args...)
	if err != nil {
		log := ""
		for _, server := range s.servers {
			log += tail(server.Log(), 2000)
		}
		b.Fatalf("%s against %s: %v\n%s", workload, s.kind, err, log)
	}
	return r
}

func (s *site) try(b *testing.B, addr, workload string, args ...string) (bench.Result, error) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	all := append([]string{"bench", workload, "--json", "--addr", addr}, args...)
	command := exec.CommandContext(ctx, peer.ZooraftBinary(b, false), all...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return bench.Result{}, fmt.Errorf("%w: %s", err, tail(stderr.String(), 2000))
	}
	var results []bench.Result
	if err := json.Unmarshal(output, &results); err != nil || len(results) != 1 {
		return bench.Result{}, fmt.Errorf("%d results: %w", len(results), err)
	}
	if len(results[0].Errors) > 0 {
		return bench.Result{}, fmt.Errorf("errors %v", results[0].Errors)
	}
	return results[0], nil
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// spent measures what the servers used while f ran.
type spent struct {
	cpu     float64 // processors, of all servers together
	syncs   float64 // of the leader's log, in a second
	written float64 // bytes to disk of the leader's process, in a second
}

func (s *site) during(b *testing.B, f func()) spent {
	b.Helper()
	leader := s.servers[s.leader]
	cpu, syncs, written, begin := s.cpuSeconds(b), mntr(b, leader, "zk_cnt_fsynctime"), diskBytes(b, leader.PID()), time.Now()
	f()
	seconds := time.Since(begin).Seconds()
	return spent{
		cpu:     (s.cpuSeconds(b) - cpu) / seconds,
		syncs:   (mntr(b, leader, "zk_cnt_fsynctime") - syncs) / seconds,
		written: (diskBytes(b, leader.PID()) - written) / seconds,
	}
}

// mntr reads one number of the word mntr.
func mntr(b *testing.B, server *peer.Server, key string) float64 {
	b.Helper()
	text, err := peer.Word(server.Address, "mntr")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "\t"); found && name == key {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			return v
		}
	}
	b.Fatalf("%s has no %s in mntr", server.Kind, key)
	return 0
}

// ticksPerSecond of the kernel's process times on Linux.
const ticksPerSecond = 100

// cpuSeconds is the processor time of all servers so far.
func (s *site) cpuSeconds(b *testing.B) (total float64) {
	b.Helper()
	for _, server := range s.servers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.PID()))
		if err != nil {
			b.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		for _, field := range fields[11:13] { // user and kernel time
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				b.Fatal(err)
			}
			total += ticks / ticksPerSecond
		}
	}
	return total
}

// diskBytes is what a process has caused to be written to a disk.
func diskBytes(b *testing.B, pid int) float64 {
	return procNumber(b, fmt.Sprintf("/proc/%d/io", pid), "write_bytes:")
}

// residentBytes is a process's resident memory.
func residentBytes(b *testing.B, pid int) float64 {
	return 1024 * procNumber(b, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
}

func procNumber(b *testing.B, path, key string) float64 {
	b.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			v, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return v
		}
	}
	b.Fatalf("no %s in %s", key, path)
	return 0
}

// settle has the real server collect its garbage fully, and then leaves the
// servers alone for the time of -settle.
func (s *site) settle(b *testing.B) {
	b.Helper()
	if s.kind == "apache" {
		for _, server := range s.servers {
			if out, err := exec.Command("jcmd", strconv.Itoa(server.PID()), "GC.run").CombinedOutput(); err != nil {
				b.Fatalf("jcmd: %v: %s", err, out)
			}
		}
	}
	pause(*settle)
}

func pause(d time.Duration) { <-time.After(d) }

// files lists the sizes of the files below a directory whose path holds part.
// A file's size is up to its last byte that is not zero: logs are made longer
// ahead of what they hold.
func files(b *testing.B, dir, part string) (sizes map[string]int64) {
	b.Helper()
	sizes = map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.Contains(path, part) {
			return nil // files come and go under a running server
		}
		text, err := os.ReadFile(path)
		if err == nil {
			sizes[path] = int64(len(bytes.TrimRight(text, "\x00")))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return sizes
}

func sum(sizes map[string]int64) (total int64) {
	for _, n := range sizes {
		total += n
	}
	return total
}
