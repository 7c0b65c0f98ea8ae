package consensus

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// memoryConfig is a node in memory. Its data directory does not exist, and
// nothing may make it.
func memoryConfig(m *Memory) Config {
	c := testConfig("")
	c.LogStore, c.Memory = LogStoreMemory, m
	return c
}

func TestAServerInMemoryGoesOnWhereItStopped(t *testing.T) {
	t.Chdir(t.TempDir())
	c := memoryConfig(NewMemory())
	n := start(t, c)
	n.write(t, numbered(1, 20)...)
	n.close(t)
	n = start(t, c)
	requireCommands(t, n.journal, numbered(1, 20))
	n.write(t, numbered(21, 40)...)
	if err := n.Snapshot(); err != nil {
		t.Fatal(err)
	}
	n.write(t, numbered(41, 50)...)
	n.close(t)
	n = start(t, c)
	requireCommands(t, n.journal, numbered(1, 50))
	if n.journal.restores != 1 {
		t.Errorf("%d snapshots restored, want 1", n.journal.restores)
	}
	if first := n.Status().FirstIndex; first <= 2 {
		t.Errorf("the log still begins at entry %d: the snapshot has not shortened it", first)
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 0 {
		t.Errorf("a server in memory has written %v (%v)", entries, err)
	}
}

func TestOneMemoryServesOneServerAtATime(t *testing.T) {
	c := memoryConfig(NewMemory())
	n := start(t, c)
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second server on the same memory: %v", err)
	}
	n.write(t, "still works")
	n.close(t)
	start(t, c)
}

func TestAMemoryKnowsItsServer(t *testing.T) {
	c := memoryConfig(NewMemory())
	start(t, c).close(t)
	c.ServerID = 7
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) {
		t.Fatalf("another server's memory: %v", err)
	}
	c.ServerID = 0
	start(t, c)
}

func TestMemoryAndItsStoreBelongTogether(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"the store without memory": func(c *Config) { c.Memory = nil },
		"memory with another":      func(c *Config) { c.LogStore = LogStoreWAL },
	} {
		c := memoryConfig(NewMemory())
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnEnsembleInMemoryCatchesUpAServerFromASnapshot(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) {
		c.DataDir, c.LogStore, c.Memory = "", LogStoreMemory, NewMemory()
		c.LogCacheBytes = 0 // what is removed from the log is gone
	})
	leader, others := leaderOf(t, servers)
	away, stays := others[0], others[1]
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(uint64(i+1), fmt.Appendf(nil, "%d", i)) == nil })
	}
	leader.journal.await(t, 50)
	stays.journal.await(t, 50)
	if err := leader.Snapshot(); err != nil {
		t.Fatal(err)
	}
	away.open(t)
	eventuallyTrue(t, "it has everything", func() bool { return away.journal.len() == 50 })
	requireCommands(t, away.journal, leader.journal.list())
	if away.journal.restores == 0 {
		t.Error("it has not been sent the snapshot")
	}
}

func TestLeadershipMovesToTheServerThatIsNamed(t *testing.T) {
	servers := ensembleWith(t, 3, func(*Config) {})
	for range 3 {
		leader, others := leaderOf(t, servers)
		if err := leader.TransferLeadershipTo(others[0].config.ServerID); err != nil {
			t.Fatal(err)
		}
		eventuallyTrue(t, "the named one leads", others[0].events.leading.Load)
	}
	leader, _ := leaderOf(t, servers)
	if err := leader.TransferLeadershipTo(99); !errors.Is(err, ErrMember) {
		t.Errorf("leadership for a stranger: %v", err)
	}
}
