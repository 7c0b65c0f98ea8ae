package cases

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// snapshots lists the finished snapshots of a server, oldest first.
func snapshots(t *testing.T, s *peer.Server) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.DataDir, "zooraft", "snapshots"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".tmp") && !strings.Contains(e.Name(), ".bad") {
			all = append(all, filepath.Join(s.DataDir, "zooraft", "snapshots", e.Name()))
		}
	}
	return all
}

// fillSnapshots writes until the server has taken n further snapshots. The
// server must have a small snapCount.
func fillSnapshots(t *testing.T, s *peer.Server, c *session, n int) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range snapshots(t, s) {
		known[name] = true
	}
	filler := c.top()
	fresh := 0
	c.until("a snapshot", func() bool {
		for range 20 {
			c.set(filler, []byte("filler"))
		}
		for _, name := range snapshots(t, s) {
			if !known[name] {
				known[name] = true
				fresh++
			}
		}
		return fresh >= n
	})
}

// sizeOf is what a folder takes, in bytes of its files' blocks.
func sizeOf(t *testing.T, folder string) int64 {
	t.Helper()
	var sum int64
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return nil // a file may be removed while we look
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// burst writes 117 MiB of log.
func burst(c *session, path string) {
	c.t.Helper()
	payload := make([]byte, 60<<10)
	const window = 16
	for i := range 2000 {
		c.send(proto.OpSetData, setBody(path, payload, -1))
		if i >= window {
			c.reply()
		}
	}
	for range window {
		c.reply()
	}
}

// bytesPerCommit is how many bytes the server hands to the system for one small
// write, its reply included: the least of several rounds, as a snapshot may fall
// into one.
func bytesPerCommit(t *testing.T, s *peer.Server, c *session, path string) int64 {
	t.Helper()
	handed := func() (n int64) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "wchar:")
		if _, err := fmt.Sscan(after, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const rounds, writes = 5, 30
	least := int64(math.MaxInt64)
	for range rounds {
		before := handed()
		for range writes {
			c.set(path, make([]byte, 100))
		}
		least = min(least, (handed()-before)/writes)
	}
	return least
}

// Case 56: once snapshots cover a burst, a small write costs no more than on a
// fresh server. (Bolt's free list, once long, was written with each commit.)
func TestASmallWriteCostsNoMoreAfterABurst(t *testing.T) {
	s := own(t, map[string]string{"snapCount": "400", "preAllocSize": "1024"})
	c := open(t, s)
	big, small := c.top(), c.top()
	fresh := bytesPerCommit(t, s, c, small)
	burst(c, big)
	fillSnapshots(t, s, c, 4)
	if after := bytesPerCommit(t, s, c, small); after*2 > fresh*3 { // a page more or less is the tree of bolt
		t.Errorf("a small write hands %d bytes to the system after the burst, %d before", after, fresh)
	} else {
		t.Logf("a small write: %d bytes before the burst, %d after it", fresh, after)
	}
}

// Case 56: a burst of log goes away again once snapshots cover it. In the log
// store wal the disk space comes back; in bolt the file keeps its size, and the
// next burst finds room in it.
func TestTheLogGivesDiskSpaceBackAfterABurst(t *testing.T) {
	s := own(t, map[string]string{"snapCount": "400", "preAllocSize": "1024"})
	c := open(t, s)
	top := c.top()
	burst(c, top)
	fillSnapshots(t, s, c, 4)
	// Kept: three snapshots of one big node, and the log back to the oldest of
	// them, which by now holds small writes only.
	size := func() int64 { c.ping(); return sizeOf(t, filepath.Join(s.DataDir, "zooraft")) }
	if peer.LogStore() == "wal" {
		const bound = 16 << 20
		c.until("the log's shrinking", func() bool { return size() < bound })
		return
	}
	// Two bursts wrote 240 MB in all; a file that gives no room back holds them.
	const written = 2 * 2000 * 60 << 10
	burst(c, top)
	fillSnapshots(t, s, c, 4)
	if got := size(); got > written/2 {
		t.Errorf("%d bytes on disk after bursts of %d", got, written)
	}
}

// damage is what a crash or a bad disk may leave in a data directory.
var damage = map[string]func(t *testing.T, newest string){
	"the newest snapshot cut to nine tenths": func(t *testing.T, newest string) {
		state := filepath.Join(newest, "state")
		info, err := os.Stat(state)
		if err == nil {
			err = os.Truncate(state, info.Size()*9/10)
		}
		if err != nil {
			t.Fatal(err)
		}
	},
	"one byte of the newest snapshot flipped": func(t *testing.T, newest string) {
		state := filepath.Join(newest, "state")
		b, err := os.ReadFile(state)
		if err == nil {
			b[len(b)/2] ^= 0x10
			err = os.WriteFile(state, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	},
	"a snapshot that was never finished": func(t *testing.T, newest string) {
		dir := newest + "9.tmp"
		err := os.Mkdir(dir, 0o750)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "state"), []byte("ZKSN"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	},
	"an empty file behind the log": func(t *testing.T, newest string) {
		dir := filepath.Join(filepath.Dir(filepath.Dir(newest)), "log-"+peer.LogStore())
		if err := os.WriteFile(filepath.Join(dir, "left-over.tmp"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	},
}

// Case 59: a broken newest snapshot loses nothing, and what a crash leaves
// behind does not stop the next start.
func TestABrokenNewestSnapshotLosesNothing(t *testing.T) {
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			s := own(t, map[string]string{"snapCount": "40"})
			c := open(t, s)
			top := c.top()
			for i := range 100 {
				c.create(fmt.Sprintf("%s/%d", top, i), []byte("x"))
			}
			fillSnapshots(t, s, c, 2)
			for i := range 10 {
				c.create(fmt.Sprintf("%s/late%d", top, i), []byte("x"))
			}
			s.Kill(t)
			all := snapshots(t, s)
			slices.Sort(all)
			harm(t, all[len(all)-1])
			before := len(s.Log())
			s.Start(t)
			if n := len(open(t, s).list(top)); n != 110 {
				t.Errorf("%d nodes, want 110\n%s", n, s.Log()[before:])
			}
			if strings.Contains(name, "newest") && !strings.Contains(s.Log()[before:], "snapshot") {
				t.Errorf("nothing in the log tells of it:\n%s", s.Log()[before:])
			}
		})
	}
}

// Case 59: a server killed at any moment while it takes snapshots finds all
// that it has acknowledged.
func TestAKillDuringSnapshotsLosesNothing(t *testing.T) {
	s := own(t, map[string]string{"snapCount": "20"})
	top := open(t, s).top()
	made := 0
	for round := range 8 {
		c := open(t, s)
		// A different number of writes each time puts the kill elsewhere.
		for range 37 + 11*round {
			c.create(fmt.Sprintf("%s/%d", top, made), make([]byte, 20<<10))
			made++
		}
		s.Kill(t)
		s.Start(t)
		if n := len(open(t, s).list(top)); n != made {
			t.Fatalf("round %d: %d nodes, want %d", round, n, made)
		}
	}
}

// A directory is tied to its log store, says so, and can be moved by a command.
func TestALogMovesToTheOtherStoreByACommand(t *testing.T) {
	bin := peer.ZooraftBinary(t, false)
	s := own(t, map[string]string{"raftLogStore": "wal"})
	c := open(t, s)
	top := c.top()
	config, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	from := "wal"
	for i, to := range []string{"bolt", "wal"} {
		c.create(fmt.Sprintf("%s/%d", top, i), []byte(from))
		if out, err := exec.Command(bin, "move-log", "--to", to, s.ConfigFile).CombinedOutput(); err == nil {
			t.Errorf("the log of a running server was moved:\n%s", out)
		}
		s.Stop(t)
		other := bytes.Replace(config, []byte("raftLogStore=wal"), []byte("raftLogStore="+to), 1)
		if err := os.WriteFile(s.ConfigFile, other, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(bin, "serve", s.ConfigFile).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "move-log") {
			t.Errorf("started with the other store: %v\n%s", err, out)
		}
		if out, err := exec.Command(bin, "move-log", "--to", to, s.ConfigFile).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.Start(t)
		c = open(t, s)
		if n := len(c.list(top)); n != i+1 {
			t.Errorf("in store %s: %d nodes, want %d", to, n, i+1)
		}
		from = to
	}
	if out, err := exec.Command(bin, "move-log", "--to", "paper", s.ConfigFile).CombinedOutput(); err == nil {
		t.Errorf("an unknown store was accepted:\n%s", out)
	}
}
