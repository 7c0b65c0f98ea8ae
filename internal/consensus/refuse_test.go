package consensus

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestAnEntryThatIsNotUnderstoodStopsTheNodeAndNothingIsSkipped(t *testing.T) {
	c := testConfig(t.TempDir())
	j := newJournal()
	j.refuse = "from the future"
	n := startWith(t, c, j)
	n.write(t, numbered(1, 5)...)
	if err := n.Propose(100, []byte("from the future")); err != nil {
		t.Fatal(err)
	}
	<-n.Failed()
	if err := n.Err(); !errors.Is(err, ErrStateMachine) || !strings.Contains(err.Error(), "unknown version") {
		t.Fatalf("reason %v", err)
	}
	if err := n.Propose(101, []byte("later")); !errors.Is(err, ErrStopped) {
		t.Fatalf("propose: %v", err)
	}
	if err := n.Snapshot(); err == nil {
		t.Fatal("a snapshot covers an entry that was not applied")
	}
	requireCommands(t, j, numbered(1, 5))
	n.close(t)
	// The old version meets it again, a newer one goes on from there.
	old := newJournal()
	old.refuse = j.refuse
	again, err := Open(c, old, newObserver())
	if err != nil {
		t.Fatal(err)
	}
	<-again.Failed()
	requireCommands(t, old, numbered(1, 5))
	_ = again.Close()
	newer := startWith(t, c, newJournal())
	requireCommands(t, newer.journal, append(numbered(1, 5), "from the future"))
}

func TestAnotherServersDataIsRefused(t *testing.T) {
	c := testConfig(t.TempDir())
	n := start(t, c)
	n.close(t)
	c.ServerID = 7
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) {
		t.Fatalf("open: %v", err)
	}
}

func TestALogOnAnotherVolumeThatIsNotMountedIsMissed(t *testing.T) {
	c := testConfig(t.TempDir())
	c.LogDir = t.TempDir()
	n := start(t, c)
	n.write(t, numbered(1, 5)...)
	n.close(t)
	moved := c.LogDir
	c.LogDir = t.TempDir()
	_, err := Open(c, newJournal(), newObserver())
	if !errors.Is(err, ErrLess) || !strings.Contains(err.Error(), moved) {
		t.Fatalf("open: %v", err)
	}
	c.LogDir = moved
	requireCommands(t, start(t, c).journal, numbered(1, 5))
}

func TestAFirstStartThatWasCutShortBeginsAnew(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		n := start(t, c)
		n.close(t)
		// What lies there before the first entry is known to be durable.
		d := &disk{now: time.Now}
		stable, err := openStable(c.layout().stable(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := stable.update(func(i *identity) { i.Formed = false }); err != nil {
			t.Fatal(err)
		}
		if err := stable.close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(c.layout().mark()); err != nil {
			t.Fatal(err)
		}
		n = start(t, c)
		n.write(t, numbered(1, 5)...)
		if s := n.Status(); s.Term != 2 || s.ClusterID == "" {
			t.Fatalf("status %+v", s)
		}
	})
}

func TestAnExistingServerNeverFormsAgain(t *testing.T) {
	c := testConfig(t.TempDir())
	n := start(t, c)
	before := n.Status().ClusterID
	n.close(t)
	n = start(t, c)
	if after := n.Status().ClusterID; after != before {
		t.Fatalf("the cluster id changed from %s to %s", before, after)
	}
}

func TestTheLogStoreForwardsThatItIsMonotonic(t *testing.T) {
	var store raft.LogStore = &logStore{}
	monotonic, ok := store.(raft.MonotonicLogStore)
	if !ok || !monotonic.IsMonotonic() {
		t.Fatal("Raft would keep gaps that raft-wal cannot store")
	}
}

func TestBarrierFollowsWhatWasProposedBefore(t *testing.T) {
	n := start(t, testConfig(t.TempDir()))
	for i := range 500 {
		if err := n.Propose(uint64(i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := n.journal.len(); got != 500 {
		t.Fatalf("%d commands are applied after the barrier", got)
	}
	n.close(t)
	if err := n.Barrier(context.Background()); !errors.Is(err, ErrStopped) {
		t.Fatalf("barrier after close: %v", err)
	}
}

func TestCommandsBeyondTheBatchLimitGoAloneUpToTheEntryLimit(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		n := start(t, c)
		large := strings.Repeat("y", 3*mib)
		n.write(t, "before", large, "after")
		n.close(t)
		n = start(t, c)
		requireCommands(t, n.journal, []string{"before", large, "after"})
	})
}

func TestConfigurationsOutsideTheirRangesAreRefusedByName(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"DataDir":          func(c *Config) { c.DataDir = "" },
		"LogStore":         func(c *Config) { c.LogStore = "paper" },
		"ServerID":         func(c *Config) { c.ServerID = 256 },
		"SnapCount":        func(c *Config) { c.SnapCount = 1 },
		"SnapRetainCount":  func(c *Config) { c.SnapRetainCount = 2 },
		"SegmentBytes":     func(c *Config) { c.SegmentBytes = 1 },
		"MaxBatchBytes":    func(c *Config) { c.MaxBatchBytes = maxBatchBytes + 1 },
		"InFlight":         func(c *Config) { c.InFlight = 3 },
		"ElectionTimeout":  func(c *Config) { c.ElectionTimeout = time.Millisecond },
		"MaxBatchCommands": func(c *Config) { c.MaxBatchCommands = 0 },
		"Stamp":            func(c *Config) { c.Stamp = nil },
	} {
		c := testConfig(t.TempDir())
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrInvalidConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := testConfig(t.TempDir())
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if times := c.timeouts(); times.heartbeat/10 >= times.lease || times.lease > times.heartbeat || times.heartbeat > times.election {
		t.Errorf("the timeouts %+v break the library's order", times)
	}
	if err := raft.ValidateConfig(c.raftConfig("1-1")); err != nil {
		t.Error(err)
	}
}

func TestRaftsLogLinesAreQuietBelowWarning(t *testing.T) {
	var out bytes.Buffer
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)), "raft")
	l.Info("chatter", "a", 1)
	l.With("b", 2).Debug("more")
	if out.Len() != 0 {
		t.Fatalf("logged %s", out.String())
	}
	l.Named("x").With("b", 2).Warn("careful", "servers", hclog.Fmt("%d of %d", 1, 3))
	if text := out.String(); !strings.Contains(text, "careful") || !strings.Contains(text, "b=2") || !strings.Contains(text, "level=WARN") {
		t.Fatalf("logged %s", text)
	}
}

func TestTheLogCacheIsBoundedByBytes(t *testing.T) {
	cache := newLogCache(10 * (1000 + logOverhead))
	for i := uint64(1); i <= 100; i++ {
		cache.add([]*raft.Log{testLog(i, 1000)})
	}
	var l raft.Log
	for i := uint64(1); i <= 101; i++ {
		if got, want := cache.get(i, &l), i > 90 && i <= 100; got != want {
			t.Fatalf("entry %d is cached: %v, want %v", i, got, want)
		}
	}
	cache.add([]*raft.Log{testLog(101, 100_000)}) // larger than everything
	if cache.get(101, &l) || cache.get(100, &l) || cache.bytes != 0 {
		t.Fatalf("%d bytes are cached", cache.bytes)
	}
	cache.add([]*raft.Log{testLog(102, 10), testLog(103, 10)})
	cache.add([]*raft.Log{testLog(110, 10)}) // a gap starts anew
	if cache.get(103, &l) || !cache.get(110, &l) {
		t.Fatal("the cache holds both sides of a gap")
	}
}
