package faults

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// allFaults are faults, those of machines, and changes of the members.
func allFaults() []fault { return slices.Concat(faults(), machineFaults(), membershipFaults()) }

// machineFaults are what can be wrong below a server, and the ways in which an
// entry can be lost while the next is taken.
func machineFaults() []fault {
	const short, long = 2 * time.Second, 4 * time.Second
	return []fault{
		{name: "the leader hands over to a stopped server", needs: crookedServers, run: func(r *runner) {
			l := r.leaderNow()
			to := r.pick(r.e.others(l))
			r.e.signal(to, syscall.SIGSTOP)
			if r.e.handOver(l, to) != nil { // as it should: the library gives up after an election timeout
				r.count("leaderships not taken over")
			}
			r.hold(short)
			r.e.signal(to, syscall.SIGCONT)
		}},
		{name: "the leader hands over and over", needs: crookedServers, run: func(r *runner) {
			for range 3 {
				l := r.leaderNow()
				_ = r.e.handOver(l, r.pick(r.e.others(l))) // it may no longer lead
			}
		}},
		{name: "Raft refuses entries at the leader", needs: crookedServers, run: func(r *runner) {
			l := r.leaderNow()
			r.e.crook(l, func(m *machine) { m.RefuseEvery = 2 + r.rng.IntN(20) })
			r.hold(short)
			r.e.mend(l)
		}},
		{name: "forward streams break again and again", run: func(r *runner) {
			for range 15 {
				r.e.net.closeConns(func(p *pipe) bool { return p.kind == "stream" })
				r.rest(randomUpTo(r.rng, 100))
			}
		}},
		{name: "the leader's disk hangs", needs: crookedServers, run: func(r *runner) { r.hang(r.leaderNow(), long) }},
		{name: "the leader's disk is slow for a moment", needs: crookedServers, run: func(r *runner) { r.hang(r.leaderNow(), tick) }},
		{name: "a follower's disk hangs", needs: crookedServers, run: func(r *runner) { r.hang(r.follower(), long) }},
		{name: "a disk fails on a sync", needs: crookedServers, run: func(r *runner) { r.failDisk(r.pick(r.e.ids)) }},
		{name: "the leader's disk fails on a sync", needs: crookedServers, run: func(r *runner) { r.failDisk(r.leaderNow()) }},
		{name: "the leader's disk is full", needs: crookedServers, run: func(r *runner) { r.fullDisk(r.leaderNow()) }},
		{name: "a follower's disk is full", needs: crookedServers, run: func(r *runner) { r.fullDisk(r.follower()) }},
		{name: "a small disk is filled", needs: aSmallDisk, run: func(r *runner) { r.fillDisk() }},
		{name: "a clock steps", needs: crookedServers, run: func(r *runner) { r.step(r.pick(r.e.ids)) }},
		{name: "the leader's clock steps and another leads", needs: crookedServers, run: func(r *runner) {
			l := r.leaderNow()
			r.step(l)
			r.hold(short)
			_ = r.e.handOver(l, r.pick(r.e.others(l))) // it may no longer lead
		}},
		{name: "a log is torn", run: func(r *runner) { r.tear(r.follower()) }},
	}
}

// hang lets a server's disk hang.
func (r *runner) hang(id int, most time.Duration) {
	r.e.crook(id, func(m *machine) { m.Disk = "hang" })
	r.hold(most)
	r.e.mend(id)
}

// fullDisk leaves a server's log without space for a while.
func (r *runner) fullDisk(id int) {
	r.e.crook(id, func(m *machine) { m.Disk = "full" })
	r.hold(4 * time.Second)
	r.e.mend(id)
}

// failDisk lets a server's disk fail. The server must end by itself: after a
// failed sync nobody knows what is on the disk.
func (r *runner) failDisk(id int) {
	r.e.t.Helper()
	r.e.crook(id, func(m *machine) { m.Disk = "fail" })
	r.e.eventually("the server whose disk fails ends by itself", func() bool { return !r.e.running(id) })
	r.e.net.refuse(id)
	r.hold(time.Second)
	r.e.mend(id)
	r.e.restart(id)
}

// step sets a server's clock to another time within two hours.
func (r *runner) step(id int) {
	off := time.Duration(r.rng.Int64N(int64(4*time.Hour))) - 2*time.Hour
	r.e.crook(id, func(m *machine) { m.ClockOffset = off })
}

// tear damages the end of a server's log while it is down. It comes back with
// what the others have, or refuses to start and is emptied.
func (r *runner) tear(id int) {
	e := r.e
	e.kill(id)
	tear(e.t, e.servers[id].DataDir, r.rng.IntN(4096))
	e.restart(id)
	e.eventually("it serves, or has refused to start", func() bool { return !e.running(id) || e.takesClients(id) })
	if !e.running(id) {
		r.count("refusals to start on a torn log")
		e.net.refuse(id)
		e.wipe(id)
		e.restart(id)
	}
	r.awaitMember(id)
}

// tear overwrites the last bytes that were written to the newest log file.
func tear(t testing.TB, dataDir string, bytes int) {
	t.Helper()
	newest, when := "", int64(0)
	err := filepath.Walk(filepath.Join(dataDir, "zooraft"), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && strings.Contains(path, "log-") && info.ModTime().UnixNano() > when &&
			!strings.HasSuffix(path, "segments") {
			newest, when = path, info.ModTime().UnixNano()
		}
		return err
	})
	if err != nil || newest == "" {
		t.Fatalf("no log below %s: %v", dataDir, err)
	}
	data, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	end := len(data)
	for end > 0 && data[end-1] == 0 {
		end--
	}
	for i := max(end-bytes, end/2); i < end; i++ {
		data[i] = 0
	}
	if err := os.WriteFile(newest, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// fillDisk takes all space of the one server with a small disk for a while,
// half of the time while it leads.
func (r *runner) fillDisk() {
	e := r.e
	id := e.options.smallDisk
	if l := r.leaderNow(); l != id && e.role(id) == participant && r.rng.IntN(2) == 0 {
		_ = e.handOver(l, id) // it may no longer lead
	}
	ballast := peer.Fill(e.t, e.options.smallDiskAt)
	r.hold(4 * time.Second)
	if err := os.Remove(ballast); err != nil {
		e.t.Fatal(err)
	}
	r.e.eventually("the server whose disk was full takes clients again", func() bool {
		return e.running(id) && e.takesClients(id)
	})
}

// mount tries whether this machine lets the test mount a disk that it can fill.
func mount(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return err
	}
	return syscall.Unmount(dir, 0)
}
