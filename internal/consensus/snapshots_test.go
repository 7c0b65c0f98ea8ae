package consensus

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestSnapshotsAreRetainedAndTheLogReachesBackToTheOldest(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		c.SnapRetainCount = 3
		n := start(t, c)
		var taken []uint64
		for i := range 6 {
			n.write(t, numbered(10*i+1, 10*i+10)...)
			if err := n.Snapshot(); err != nil {
				t.Fatal(err)
			}
			s := n.Status()
			taken = append(taken, s.NewestSnapshot)
			wantFirst, wantOldest := uint64(1), taken[0]
			if len(taken) >= 3 {
				wantOldest = taken[len(taken)-3]
				wantFirst = wantOldest + 1
			}
			if s.OldestSnapshot != wantOldest || s.FirstIndex != wantFirst {
				t.Fatalf("after %d snapshots %v: oldest %d, log from %d, want %d and %d",
					len(taken), taken, s.OldestSnapshot, s.FirstIndex, wantOldest, wantFirst)
			}
		}
		dirs, err := os.ReadDir(c.layout().snapshots())
		if err != nil || len(dirs) != 3 {
			t.Fatalf("%d snapshot directories, %v", len(dirs), err)
		}
		n.close(t)
		n = start(t, c)
		requireCommands(t, n.journal, numbered(1, 60))
		if n.journal.restores != 1 {
			t.Errorf("%d restores", n.journal.restores)
		}
	})
}

func TestASnapshotDoesNotStopWrites(t *testing.T) {
	c := testConfig(t.TempDir())
	n := start(t, c)
	n.write(t, numbered(1, 10)...)
	persisting, goOn := make(chan struct{}), make(chan struct{})
	n.journal.beforePersist = func() { close(persisting); <-goOn }
	done := make(chan error, 1)
	go func() { done <- n.Snapshot() }()
	<-persisting
	n.write(t, numbered(11, 200)...)
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n.journal.beforePersist = nil
	n.close(t)
	n = start(t, c)
	requireCommands(t, n.journal, numbered(1, 200))
}

func TestSnapshotsAreTakenByCountAndBySize(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"by count": func(c *Config) { c.SnapCount = 50 },
		"by size":  func(c *Config) { c.SnapSizeLimitBytes = 2000 },
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t.TempDir())
			change(&c)
			taken := make(chan struct{}, 100)
			c.Observe.SnapshotTaken = func(time.Duration) { taken <- struct{}{} }
			n := start(t, c)
			for i := range 60 {
				n.write(t, numbered(5*i+1, 5*i+5)...)
			}
			select {
			case <-taken:
			case <-time.After(30 * time.Second):
				t.Fatal("no snapshot was taken")
			}
			n.close(t)
			n = start(t, c)
			requireCommands(t, n.journal, numbered(1, 300))
		})
	}
}

func TestTheSnapshotThresholdIsAboveHalfAndAtMostTheCount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, count := range []int{2, 3, 10, 100_000} {
		c := testConfig(t.TempDir())
		c.SnapCount, c.RandInt64N = count, random.Int64N
		low, high := int64(1<<62), int64(0)
		for range 2000 {
			trigger := newSnapshotTrigger(c)
			low, high = min(low, trigger.atCount), max(high, trigger.atCount)
		}
		if low <= int64(count/2) || high > int64(count) || count <= 10 && (low != int64(count/2)+1 || high != int64(count)) {
			t.Errorf("with a count of %d the thresholds are %d to %d", count, low, high)
		}
	}
}

// openTestStore is a snapshot store with a small state in each snapshot.
func openTestStore(t *testing.T, dir string) *snapshotStore {
	t.Helper()
	s, err := openSnapshots(dir, 3, 64*kib, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.saved = func(uint64, uint64) {}
	return s
}

func writeSnapshot(t *testing.T, s *snapshotStore, index uint64, state []byte) string {
	t.Helper()
	servers := raft.Configuration{Servers: []raft.Server{{ID: "1-1", Address: "a"}}}
	sink, err := s.Create(raft.SnapshotVersionMax, index, 2, servers, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(sink, bytes.NewReader(state)); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return sink.ID()
}

func TestASnapshotReadsBackWholeOrFailsBeforeABadByte(t *testing.T) {
	state := make([]byte, 3*snapshotChunk+12345)
	random := rand.New(rand.NewPCG(5, 5))
	for i := range state {
		state[i] = byte(random.Uint32())
	}
	dir := t.TempDir()
	id := writeSnapshot(t, openTestStore(t, dir), 10, state)
	path := filepath.Join(dir, id, snapshotStateName)
	for range 40 {
		at := random.IntN(len(state))
		flip(t, path, int64(at), 2)
		s := openTestStore(t, dir)
		_, r, err := s.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		_ = r.Close()
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("a flip at %d: %v", at, err)
		}
		if len(got) > at || !bytes.Equal(got, state[:len(got)]) {
			t.Fatalf("a flip at %d let %d bytes through", at, len(got))
		}
		flip(t, path, int64(at), 2)
	}
	meta, r, err := openTestStore(t, dir).Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, state) || meta.Size != int64(len(state)) || meta.Index != 10 || meta.Term != 2 {
		t.Fatalf("%d bytes, meta %+v, %v", len(got), meta, err)
	}
	if servers := meta.Configuration.Servers; len(servers) != 1 || servers[0].ID != "1-1" {
		t.Fatalf("configuration %+v", servers)
	}
}

func TestEveryFlipAndCutOfASnapshotsMetaSetsItAside(t *testing.T) {
	dir := t.TempDir()
	id := writeSnapshot(t, openTestStore(t, dir), 10, []byte("state"))
	path := filepath.Join(dir, id, snapshotMetaName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(b []byte, what string, at int) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := openTestStore(t, dir).List(); err != nil || len(list) != 0 {
			t.Fatalf("%s at %d: %d snapshots, %v", what, at, len(list), err)
		}
	}
	for at := range good {
		check(good[:at], "cut", at)
		for bit := range 8 {
			b := bytes.Clone(good)
			b[at] ^= 1 << bit
			check(b, "flip", at)
		}
	}
}

func TestACancelledOrFailedSnapshotLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openTestStore(t, dir)
	writeSnapshot(t, s, 10, []byte("good"))
	sink, err := s.Create(raft.SnapshotVersionMax, 20, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	s.stop = stop
	if sink, err = s.Create(raft.SnapshotVersionMax, 30, 2, raft.Configuration{}, 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write(make([]byte, 2*snapshotChunk)); !errors.Is(err, ErrStopped) {
		t.Fatalf("write while the node stops: %v", err)
	}
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if _, newest := s.bounds(); newest != 10 {
		t.Fatalf("the newest snapshot is %d", newest)
	}
}

func TestSnapshotsOfOneEntryAreKeptApart(t *testing.T) {
	dir := t.TempDir()
	s := openTestStore(t, dir)
	ids := []string{writeSnapshot(t, s, 10, []byte("a")), writeSnapshot(t, s, 10, []byte("b")), writeSnapshot(t, s, 9, []byte("c"))}
	list, err := openTestStore(t, dir).List()
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	got := []string{list[0].ID, list[1].ID, list[2].ID}
	if want := []string{ids[1], ids[0], ids[2]}; !slices.Equal(got, want) || !strings.Contains(ids[1], "-0001") {
		t.Fatalf("order %v, want %v", got, want)
	}
}

func TestWhatASnapshotAndALoneServersLogLeaveInMemory(t *testing.T) {
	c := testConfig(t.TempDir())
	s, err := openSnapshots(t.TempDir(), 3, mib, c.Logger, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.saved = func(uint64, uint64) {}
	sink, err := s.Create(1, 5, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if len(s.good) != 1 || s.good[0] == &sink.(*snapshotSink).meta {
		t.Errorf("the list of %d snapshots keeps the sink with its buffer of a chunk", len(s.good))
	}
	if got := c.cacheBytes(); got != mib {
		t.Errorf("a server alone caches %d bytes of its log", got)
	}
	if c.Peers = []Peer{{}}; c.cacheBytes() != c.LogCacheBytes {
		t.Errorf("a server with peers caches %d bytes of its log", c.cacheBytes())
	}
}
