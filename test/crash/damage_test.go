package crash

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// exitDataDir is the exit code of a server that cannot use its data directory.
const exitDataDir = 3

// files lists the regular files below a directory, the newest first.
func files(t *testing.T, dir string) []string {
	t.Helper()
	type entry struct {
		path string
		time time.Time
	}
	var all []entry
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		all = append(all, entry{path, info.ModTime()})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b entry) int { return b.time.Compare(a.time) })
	paths := make([]string, len(all))
	for i, e := range all {
		paths[i] = e.path
	}
	return paths
}

// killed starts a server that takes snapshots often, lets writers write, and
// kills it.
func killed(t *testing.T, config map[string]string, seed uint64) (*peer.Server, []*writer) {
	t.Helper()
	config["snapCount"] = "200"
	config["preAllocSize"] = "256"
	s := peer.StartZooraft(t, peer.Options{Config: config})
	writers := newWriters(4, seed)
	writeUntil(t, s, writers, func() {
		deadline := time.Now().Add(waitLimit)
		for snapshots(t, s) < 3 {
			if time.Now().After(deadline) {
				t.Errorf("no three snapshots: %v", files(t, snapshotDir(s)))
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		s.Kill(t)
	})
	return s, writers
}

func snapshotDir(s *peer.Server) string { return filepath.Join(s.DataDir, "zooraft", "snapshots") }

// snapshots counts the finished snapshots.
func snapshots(t *testing.T, s *peer.Server) int {
	t.Helper()
	entries, err := os.ReadDir(snapshotDir(s))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if !strings.Contains(e.Name(), "tmp") {
			n++
		}
	}
	return n
}

// Case 59: whatever is wrong with the newest snapshot, an older one and the
// log have everything.
func TestABrokenNewestSnapshotLosesNothing(t *testing.T) {
	damages := map[string]func(path string, b []byte) error{
		"cut to nine tenths": func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)*9/10], 0o600) },
		"one bit flipped": func(path string, b []byte) error {
			b[len(b)/2] ^= 4
			return os.WriteFile(path, b, 0o600)
		},
		"empty": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"gone":  func(path string, _ []byte) error { return os.Remove(path) },
		"a leftover beside it": func(path string, _ []byte) error {
			return os.WriteFile(filepath.Join(filepath.Dir(path), "left.tmp"), []byte("half"), 0o600)
		},
	}
	eachLogStore(t, func(t *testing.T, config map[string]string) {
		for name, damage := range damages {
			t.Run(name, func(t *testing.T) {
				s, writers := killed(t, config, seed(t))
				newest := files(t, snapshotDir(s))[0]
				b, err := os.ReadFile(newest)
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(newest, b); err != nil {
					t.Fatal(err)
				}
				s.Start(t)
				checkAll(t, s, writers)
			})
		}
	})
}

// A flipped bit anywhere in the log or the stable store: the server either has
// everything or refuses, says why, and exits with 3. It never starts on less.
func TestADamagedLogIsNeverAStartOnLess(t *testing.T) {
	eachLogStore(t, func(t *testing.T, config map[string]string) {
		seed := seed(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		for range *roundsFlag {
			s, writers := killed(t, config, seed)
			logs := files(t, filepath.Join(s.DataDir, "zooraft", "log-"+config["raftLogStore"]))
			path := logs[rng.IntN(len(logs))]
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for range 1000 { // preferably where there is something
				if at = rng.IntN(len(b)); b[at] != 0 {
					break
				}
			}
			b[at] ^= 1 << rng.IntN(8)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			startOrRefuse(t, s, writers, path, at)
		}
	})
}

// startOrRefuse accepts a start with everything and a reasoned refusal.
func startOrRefuse(t *testing.T, s *peer.Server, writers []*writer, path string, at int) {
	t.Helper()
	before := len(s.Log())
	s.Launch(t)
	if err := s.AwaitReady(peer.ReadyTimeout); err == nil {
		checkAll(t, s, writers)
		if t.Failed() {
			t.Fatalf("after a flipped bit in %s at %d", path, at)
		}
		s.Stop(t)
		return
	}
	text := s.Log()[before:]
	if got := s.Wait(t, waitLimit); got != exitDataDir || strings.Contains(text, "panic") {
		t.Fatalf("bit flipped in %s at %d: exit code %d, want %d\n%s", path, at, got, exitDataDir, text)
	}
}

// Two servers on one data directory: the second refuses and harms nothing.
func TestASecondServerOnTheSameDataRefuses(t *testing.T) {
	first := peer.StartZooraft(t, peer.Options{})
	second := peer.StartZooraft(t, peer.Options{DataDir: first.DataDir, NoWait: true})
	if got := second.Wait(t, waitLimit); got != exitDataDir {
		t.Fatalf("exit code %d, want %d\n%s", got, exitDataDir, second.Log())
	}
	if !strings.Contains(second.Log(), "in use by another server") {
		t.Fatalf("the refusal does not say why:\n%s", second.Log())
	}
	writers := newWriters(2, 1)
	writeUntil(t, first, writers, func() {
		<-time.After(50 * time.Millisecond)
		first.Kill(t)
	})
	first.Start(t)
	checkAll(t, first, writers)
}
