package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

// millionRows measure a server with a tree: its memory, its snapshots, its
// start. One system after the other, so that neither has the other's memory.
func millionRows(b *testing.B, s *samples) {
	for _, kind := range kinds {
		site := startSite(b, kind, 1, livingHeap)
		server := site.servers[0]
		if wanted("memory") {
			pause(min(*settle, 10*time.Second))
			s.add(kind, "memory/empty", residentBytes(b, server.PID())/1e6)
		}
		empty := residentBytes(b, server.PID())
		r := site.load(b, server.Address, "fill", "--nodes", fmt.Sprint(*nodes), "--value-size", "100", "--keep",
			"--connections", "16", "--root", "/app")
		s.note(kind, "memory/million", "filled %d nodes at %.0f/s", *nodes, r.PerSecond)
		if wanted("memory") {
			before := residentBytes(b, server.PID())
			site.settle(b)
			after := residentBytes(b, server.PID())
			s.add(kind, "memory/million", after/1e6)
			s.add(kind, "memory/node", (after-empty)/float64(*nodes))
			s.note(kind, "memory/million", "resident %.0f MB right after the load, %.0f MB after %v idle", before/1e6, after/1e6, *settle)
		}
		if wanted("snapshot") {
			snapshotRows(b, site, s)
		}
		if wanted("start") {
			for range *restarts {
				server.Stop(b)
				s.add(kind, "start/million", startAgain(b, server))
			}
		}
		site.stop(b)
	}
}

// startAgain is the time in ms from the start of a process that has stopped
// until a client has an answer to a request.
func startAgain(b *testing.B, server *peer.Server) float64 {
	b.Helper()
	begin := time.Now()
	server.Launch(b)
	return firstAnswer(b, server, begin)
}

// firstAnswer tries until a session has been opened.
func firstAnswer(b *testing.B, server *peer.Server, begin time.Time) float64 {
	b.Helper()
	for time.Since(begin) < 10*time.Minute {
		if bench.Answers(b.Context(), server.Address) {
			return float64(time.Since(begin).Microseconds()) / 1000
		}
		pause(time.Millisecond)
	}
	b.Fatalf("%s does not answer: %s", server.Kind, tail(server.Log(), 4000))
	return 0
}

// snapshotRows write at a steady rate until snapshots have been taken, and look
// for the longest gap between answers while one was taken and while none was.
func snapshotRows(b *testing.B, site *site, s *samples) {
	server := site.servers[0]
	type mark struct {
		at                time.Time
		count, sum, fsync float64
	}
	look := func() mark {
		return mark{at: time.Now(), count: mntr(b, server, "zk_cnt_snapshottime"), sum: mntr(b, server, "zk_sum_snapshottime"), fsync: mntr(b, server, "zk_cnt_fsynctime")}
	}
	done := make(chan bench.Result, 1)
	failed := make(chan error, 1)
	go func() {
		// At shipped settings a snapshot comes after 50,000 to 100,000 writes.
		r, err := site.try(b, server.Address, "write", "--rate", "4000", "--connections", "8", "--value-size", "100",
			"--warm-up", "1s", "--duration", "40s", "--timeline", "50ms")
		failed <- err
		done <- r
	}()
	var taken [][2]time.Time // when snapshots were written
	last := look()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for running := true; running; {
		select {
		case err := <-failed:
			if err != nil {
				b.Fatal(err)
			}
			running = false
		case <-poll.C:
			now := look()
			if now.count > last.count {
				lasted := time.Duration(now.sum-last.sum) * time.Millisecond
				taken = append(taken, [2]time.Time{last.at.Add(-lasted - 50*time.Millisecond), now.at.Add(50 * time.Millisecond)})
			}
			last = now
		}
	}
	r := <-done
	var with, without []float64
	for _, slice := range r.Timeline {
		begin := time.UnixMilli(slice.AtMillis)
		end := begin.Add(50 * time.Millisecond)
		in := false
		for _, t := range taken {
			in = in || end.After(t[0]) && begin.Before(t[1])
		}
		if gap := float64(slice.GapMicros) / 1000; in {
			with = append(with, gap)
		} else {
			without = append(without, gap)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		s.add(site.kind, "pause", largest(with))
		s.add(site.kind, "pause/without", largest(without))
	}
	s.note(site.kind, "pause", "%d snapshots in 40 s at 4000 writes/s; p99.9 %.0f µs; slices of 50 ms with one: %d, without: %d; median of their longest gaps %.2f and %.2f ms",
		len(taken), r.Latency.P999, len(with), len(without), medianOr(with), medianOr(without))
	s.add(site.kind, "snapshot/bytes", float64(largestFile(b, server))/1e6)
}

func largest(values []float64) (m float64) {
	for _, v := range values {
		m = max(m, v)
	}
	return m
}

func medianOr(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return median(values)
}

// largestFile is the size of the largest snapshot: it holds the whole tree.
func largestFile(b *testing.B, server *peer.Server) (size int64) {
	for path, n := range files(b, server.DataDir, "snapshot") {
		_ = path
		size = max(size, n)
	}
	return size
}

// sessionRows open many idle sessions.
func sessionRows(b *testing.B, s *samples) {
	for _, kind := range kinds {
		site := startSite(b, kind, 1, livingHeap)
		server := site.servers[0]
		// What the first sessions alone cost is no matter of their number.
		site.load(b, server.Address, "sessions", "--watchers", "100", "--duration", "1s")
		site.settle(b)
		before := residentBytes(b, server.PID())
		release := holdSessions(b, server, "--watchers", fmt.Sprint(*sessions))
		site.settle(b)
		cpu := site.cpuSeconds(b)
		pause(min(*settle, 10*time.Second))
		after := residentBytes(b, server.PID())
		if alive := mntr(b, server, "zk_num_alive_connections"); alive < float64(*sessions) {
			b.Fatalf("%s: %.0f connections are left of %d sessions: this machine is too busy to ping for them", kind, alive, *sessions)
		}
		s.add(kind, "memory/session", (after-before)/float64(*sessions))
		s.note(kind, "memory/session", "%d sessions that ping every 10 s; resident %.0f MB before, %.0f MB with them; %.3f processors",
			*sessions, before/1e6, after/1e6, (site.cpuSeconds(b)-cpu)/min(*settle, 10*time.Second).Seconds())
		release()
		site.stop(b)
	}
}

// hold runs the client until it has said that its sessions are open. The
// function that it returns kills it.
func hold(b *testing.B, args ...string) (release func()) {
	b.Helper()
	command := exec.Command(peer.ZooraftBinary(b, false), args...)
	stderr, err := command.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	release = func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	}
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() || !strings.Contains(lines.Text(), "are open") {
		release()
		b.Fatalf("%v: %s", args, lines.Text())
	}
	return release
}

// idleRows leave ensembles of three alone.
func idleRows(b *testing.B, s *samples) {
	var sites []*site
	for _, kind := range kinds {
		sites = append(sites, startSite(b, kind, 3, livingHeap))
	}
	pause(min(*settle, 10*time.Second))
	before := []float64{sites[0].cpuSeconds(b), sites[1].cpuSeconds(b)}
	pause(*settle)
	for i, site := range sites {
		s.add(site.kind, "idle/3", (site.cpuSeconds(b)-before[i])/(*settle).Minutes())
	}
	for _, site := range sites {
		site.stop(b)
	}
}

// startRows start empty servers.
func startRows(b *testing.B, s *samples) {
	var sites []*site
	for _, kind := range kinds {
		sites = append(sites, startSite(b, kind, 1, livingHeap))
	}
	for range *restarts {
		for _, site := range sites {
			server := site.servers[0]
			server.Kill(b)
			if err := os.RemoveAll(server.DataDir); err != nil {
				b.Fatal(err)
			}
			s.add(site.kind, "start/empty", startAgain(b, server))
		}
	}
	for _, site := range sites {
		site.stop(b)
	}
}

// logRows count what the log takes for a write, on a fresh server and before it
// has taken a snapshot or begun a second file.
func logRows(b *testing.B, s *samples) {
	for _, size := range []int{1024, 100} {
		for _, kind := range kinds {
			site := startSite(b, kind, 1, livingHeap)
			server := site.servers[0]
			part := map[string]string{"apache": "version-2/log.", "zooraft": "/log-"}[kind]
			args := []string{"--connections", "64", "--outstanding", "16", "--value-size", fmt.Sprint(size), "--nodes", "20", "--warm-up", "0s", "--keep"}
			site.load(b, server.Address, "write", append(args, "--requests", "100")...)
			before := sum(files(b, server.DataDir, part))
			var r bench.Result
			disk, syncs := diskBytes(b, server.PID()), mntr(b, server, "zk_cnt_fsynctime")
			const writes = 20000
			r = site.load(b, server.Address, "write", append(args, "--requests", fmt.Sprint(writes))...)
			after := sum(files(b, server.DataDir, part))
			// 64 sessions and 20 creates that are refused are in it, too.
			key := fmt.Sprintf("log/bytes/%d", size)
			s.add(kind, key, float64(after-before)/writes)
			s.note(kind, key, "%d writes, %.0f bytes to disk for each, %.1f writes per sync", r.Operations,
				(diskBytes(b, server.PID())-disk)/writes, writes/(mntr(b, server, "zk_cnt_fsynctime")-syncs))
			site.stop(b)
		}
	}
}
