package faults

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// What the Raft library is known to be bad at. FAULTS_SNAPSHOT_MB makes the
// snapshot larger: 1024 in `make soak`.
func TestLimitsOfTheRaftLibraryAreMet(t *testing.T) {
	t.Parallel()
	w := newWorld(start(t, options{store: "wal", config: map[string]string{"preAllocSize": "1024"}}), 1)
	w.prepare()
	for _, limit := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"frames of a MiB over slow links cost no leadership", largeFrames},
		{"a follower that was away catches up under full load, and the log is trimmed on all servers", slowFollower},
		{"a large snapshot is taken and streamed without an election and without doubling memory", largeSnapshot},
	} {
		t.Run(limit.name, func(t *testing.T) {
			outer := w.e.t
			w.e.t = t
			defer func() { w.e.t = outer }()
			w.e.awaitAll()
			limit.run(t, w)
		})
	}
	w.finish()
}

// elections counts how often any server stood for election.
func (e *ensemble) elections() (n int) {
	for _, id := range e.ids {
		n += electionsIn(e.servers[id].Log())
	}
	return n
}

// electionsIn counts how often a server stood for election, by its log.
func electionsIn(log string) int {
	return strings.Count(log, "starting election") + strings.Count(log, "campaigns at once")
}

// largeFrames tries three times: a busy machine may cause an election by itself.
func largeFrames(t *testing.T, w *world) {
	for try := 0; !largeFramesOnce(t, w); try++ {
		if try == 2 {
			t.Fatal("there was an election each time")
		}
		w.e.awaitAll()
	}
}

// largeFramesOnce tells whether there was no election.
func largeFramesOnce(t *testing.T, w *world) bool {
	leader, before := w.e.leader(w.e.ids...), w.e.elections()
	narrow := map[pair]link{}
	for _, a := range w.e.ids {
		for _, b := range w.e.ids {
			narrow[pair{a, b}] = link{bytesPerSecond: 4 << 20}
		}
	}
	w.e.net.set(narrow)
	defer w.e.net.heal()
	for _, id := range w.e.ids {
		c := w.mustDial(id)
		body := setBody("/w/0", bytes.Repeat([]byte("x"), 1048575-100), -1) // Apache's limit of a frame, nearly
		var calls []*client.Call
		for range 4 {
			calls = append(calls, c.Do(proto.OpSetData, body))
		}
		for _, call := range calls {
			if _, err := call.Wait(context.Background()); err != nil {
				t.Logf("a large frame: %v", err)
				return false
			}
		}
		c.Drop()
	}
	return w.e.leader(w.e.ids...) == leader && w.e.elections() == before
}

// loadBytes is the data of each write of the load.
const loadBytes = 1024

// useLoad is a worker: as many sets as there is room for.
func useLoad(s *session) {
	body := setBody(fmt.Sprintf("/w/%d", s.number%2), bytes.Repeat([]byte("x"), loadBytes), -1)
	for !s.world.stopped() {
		c := s.connected()
		if c == nil {
			return
		}
		done := make(chan *client.Call, 64)
		for range cap(done) {
			c.Go(&client.Call{Op: proto.OpSetData, Body: body, Done: done})
		}
		for c.Err() == nil && !s.world.stopped() {
			call := <-done
			if call.Err == nil {
				s.world.count("writes of the load")
			}
			c.Go(&client.Call{Op: proto.OpSetData, Body: body, Done: done})
		}
		s.drop()
	}
}

func slowFollower(t *testing.T, w *world) {
	leader := w.e.leader(w.e.ids...)
	away := w.e.others(leader)[0]
	load := newWorld(w.e, 2)
	for number := range 4 {
		load.worker(number, useLoad)
	}
	w.e.signal(away, syscall.SIGSTOP)
	const written = 20_000 // ten times what makes a snapshot due
	load.e.eventually("much is written without the follower", func() bool { return load.counted("writes of the load") > written })
	w.e.net.set(map[pair]link{{leader, away}: {bytesPerSecond: 20 << 20}})
	w.e.signal(away, syscall.SIGCONT)
	w.e.eventually("it has caught up while the load goes on", func() bool {
		at := field(w.e.srvr(leader), "Zxid")
		if at == "" {
			return false
		}
		c, err := dial(w.e.address(away), 0, nil, zxidOf(t, at))
		if err != nil {
			return false
		}
		defer c.Drop()
		return true
	})
	w.e.eventually("more is written", func() bool { return load.counted("writes of the load") > 2*written })
	close(load.stop)
	load.work.Wait()
	w.e.net.heal()
	total := load.counted("writes of the load") * loadBytes >> 20
	for _, id := range w.e.ids {
		// While it is written, a snapshot comes late: the bound is one of intervals.
		w.e.eventually(fmt.Sprintf("server %d has given back what of its log it need not keep", id), func() bool {
			if diskBytes(t, w.e.servers[id].DataDir, "log-wal") <= logBound {
				return true
			}
			writer := newWorld(w.e, 3)
			writer.worker(0, useLoad)
			writer.e.eventually("some more is written", func() bool { return writer.counted("writes of the load") > 1000 })
			close(writer.stop)
			writer.work.Wait()
			return false
		})
		t.Logf("server %d: %d MiB were written, its log takes %d KiB of at most %d", id, total, diskBytes(t, w.e.servers[id].DataDir, "log-wal")>>10, logBound>>10)
	}
	if total < 3*logBound>>20 {
		t.Errorf("the load wrote %d MiB: too little to have anything given back", total)
	}
}

// logBound is what internal/consensus/DESIGN.md promises that a log takes at
// most, in bytes: the entries of one snapshot interval more than snapshots are
// kept (3), of snapCount (2000) each, and two segments of preAllocSize. An entry
// of the load takes less than 200 bytes beside its data.
const logBound = (3+1)*2000*(loadBytes+200) + 2<<20

// diskBytes is what the files in one of a server's folders take.
func diskBytes(t testing.TB, dataDir, folder string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dataDir, "zooraft", folder), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // it has just been removed
		}
		n += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func largeSnapshot(t *testing.T, w *world) {
	size := int(number(t, "FAULTS_SNAPSHOT_MB", 96))
	leader := w.e.leader(w.e.ids...)
	paths := []string{"/w/large"}
	for n := range size {
		paths = append(paths, fmt.Sprintf("/w/large/%d", n))
	}
	data := bytes.Repeat([]byte("x"), 1<<20-1000)
	w.each(t, 1, paths[:1], proto.OpCreate, func(path string) []byte { return createBody(path, nil, proto.CreatePersistent) })
	w.each(t, 4, paths[1:], proto.OpCreate, func(path string) []byte { return createBody(path, data, proto.CreatePersistent) })
	set := func(path string, data []byte, times int) {
		w.each(t, 2000, slices.Repeat([]string{path}, times), proto.OpSetData, func(path string) []byte { return setBody(path, data, -1) })
	}
	small := func() { set("/w/1", nil, 2000) } // what makes a snapshot due
	taken := func(id int) int { return strings.Count(w.e.servers[id].Log(), "snapshot taken") }
	small()
	elections := w.e.elections()
	steady := residentKiB(t, w.e.servers[leader].PID(), "VmRSS")
	forgetPeak(t, w.e.servers[leader].PID())
	before := map[int]int{}
	for _, id := range w.e.ids {
		before[id] = taken(id)
	}
	small()
	for _, id := range w.e.ids {
		w.e.eventually(fmt.Sprintf("server %d takes a snapshot", id), func() bool { return taken(id) > before[id] })
	}
	follower := w.e.others(leader)[0]
	w.e.kill(follower)
	w.e.wipe(follower)
	w.e.restart(follower)
	w.e.eventually("the server that lost its disk has the snapshot", func() bool { return w.e.takesClients(follower) })
	peak := residentKiB(t, w.e.servers[leader].PID(), "VmHWM")
	fresh := residentKiB(t, w.e.servers[follower].PID(), "VmHWM")
	t.Logf("%d MiB of data: the leader held %d MiB before, %d MiB at most; the server that lost its disk %d MiB at most", size, steady>>10, peak>>10, fresh>>10)
	if limit := steady + steady/2 + 32<<10; peak > limit || fresh > limit {
		t.Errorf("the leader held %d MiB, the server that lost its disk %d MiB, at most %d MiB were expected", peak>>10, fresh>>10, limit>>10)
	}
	if now := w.e.leader(w.e.ids...); now != leader || w.e.elections() != elections {
		say := t.Errorf
		if os.Getenv("FAULTS_SNAPSHOT_MB") == "" { // beside other suites it may be the machine
			say = t.Logf
		}
		say("server %d leads, server %d did before; %d elections", now, leader, w.e.elections()-elections)
	}
	runningReceiver(t, w, w.e.others(leader)[1], size, func() {
		set(paths[1], data, 1)
		small()
	}, func() int { return taken(leader) })
	// The checks at the end read all nodes.
	slices.Reverse(paths)
	w.each(t, 2000, paths, proto.OpDelete, func(path string) []byte { return deleteBody(path, -1) })
}

// runningReceiver sends a follower that runs a snapshot, having it stand still
// until the log has been cut behind it. Case 68: it holds one state of size MiB, not
// two.
func runningReceiver(t *testing.T, w *world, follower, size int, write func(), taken func() int) {
	pid := w.e.servers[follower].PID()
	received := func() int {
		return strings.Count(w.e.servers[follower].Log(), "the snapshot of the leader has been loaded")
	}
	before := received()
	t.Logf("the server that is to receive it holds %d MiB, of which it gives garbage back", residentKiB(t, pid, "VmRSS")>>10)
	w.e.eventually("the server has given its garbage back", func() bool { return residentKiB(t, pid, "VmRSS") < (size*7/4+128)<<10 })
	steady := residentKiB(t, pid, "VmRSS")
	w.e.signal(follower, syscall.SIGSTOP)
	for range 32 { // more than the sockets on the way hold
		write()
	}
	end := taken() + 5 // more than are kept
	w.e.eventually("the others have cut the log", func() bool { write(); return taken() >= end })
	forgetPeak(t, pid)
	w.e.signal(follower, syscall.SIGCONT)
	w.e.eventually("the server that stood still has the snapshot", func() bool { return received() > before && w.e.takesClients(follower) })
	peak := residentKiB(t, pid, "VmHWM")
	t.Logf("the server that received it held %d MiB before, %d MiB at most", steady>>10, peak>>10)
	if limit := steady + steady/2 + 32<<10; peak > limit {
		t.Errorf("the server that received it held %d MiB, at most %d MiB were expected", peak>>10, limit>>10)
	}
}

// residentKiB is a process's memory: VmRSS for now, VmHWM for its peak.
func residentKiB(t testing.TB, pid int, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			if _, err := fmt.Sscanf(value, "%d kB", &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
	return n
}

// forgetPeak makes VmHWM begin anew.
func forgetPeak(t testing.TB, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}
