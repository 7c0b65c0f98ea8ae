package consensus

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// interrupted is a state machine that does not come to the end of a snapshot.
type interrupted struct {
	*journal
	begun chan struct{} // closed by Restore
}

func (i *interrupted) Restore(r io.Reader) error {
	close(i.begun)
	for {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return err
		}
		<-time.After(time.Millisecond)
	}
}

// A server that is stopped while it loads what the leader sent has that snapshot and,
// still, a log that ends before it. It goes on from the snapshot, under a leader that
// knows nothing of the transfer too.
func TestAServerStoppedWhileItLoadsASnapshotFollowsAnotherLeader(t *testing.T) {
	for _, store := range []string{LogStoreWAL, LogStoreBolt} {
		t.Run(store, func(t *testing.T) {
			servers := ensembleWith(t, 3, func(c *Config) {
				c.LogStore = store
				c.ElectionTimeout = 3 * time.Second
				c.LogCacheBytes = 0 // the leader would have what it cut
			})
			leader, others := leaderOf(t, servers)
			behind, next := others[0], others[1]
			count, large := 0, make([]byte, 40*kib) // so that whole segments of the log go
			write := func(through *testServer, n int) {
				for end := count + n; count < end; count++ {
					eventuallyTrue(t, "a proposal is taken", func() bool { return through.Propose(uint64(count+1), large) == nil })
				}
				through.journal.await(t, count)
			}
			write(leader, 5)
			behind.journal.await(t, count)
			if err := behind.Close(); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				write(leader, 10)
				if err := leader.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
			stops := &interrupted{journal: newJournal(), begun: make(chan struct{})}
			half, err := Open(behind.config, stops, &memberEvents{})
			if err != nil {
				t.Fatal(err)
			}
			<-stops.begun
			if err := half.Close(); err != nil {
				t.Fatal(err)
			}
			if err := leader.TransferLeadershipTo(next.config.ServerID); err != nil {
				t.Fatal(err)
			}
			eventuallyTrue(t, "the other one leads", next.events.leading.Load)
			write(next, 5) // before the one that was stopped comes, so that these entries are sent to it
			behind.open(t)
			write(next, 5)
			eventuallyTrue(t, "it has everything", func() bool { return behind.journal.len() == count || behind.Err() != nil })
			if err := behind.Err(); err != nil {
				t.Fatalf("it stopped: %v", err)
			}
			requireCommands(t, behind.journal, next.journal.list())
			if err := behind.Close(); err != nil {
				t.Fatal(err)
			}
			behind.open(t)
			eventuallyTrue(t, "it has everything after a restart", func() bool { return behind.journal.len() == count })
		})
	}
}

// What a program embeds can be repaired and started again in the same process.
func TestAFailedOpenLeavesThePeerPortFree(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.LogCacheBytes = 0 })
	leader, others := leaderOf(t, servers)
	damaged := others[0]
	for i := range 30 {
		eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(uint64(i+1), make([]byte, 40*kib)) == nil })
		damaged.journal.await(t, i+1)
		if i%5 == 4 {
			if err := damaged.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := damaged.Close(); err != nil {
		t.Fatal(err)
	}
	states, err := filepath.Glob(filepath.Join(damaged.config.DataDir, "zooraft", "snapshots", "*", snapshotStateName))
	if err != nil || len(states) == 0 {
		t.Fatalf("snapshots %v, %v", states, err)
	}
	for _, state := range states {
		flip(t, state, 10, 3)
	}
	if _, err := Open(damaged.config, newJournal(), &memberEvents{}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("open without any whole snapshot: %v", err)
	}
	l, err := net.Listen("tcp", damaged.config.PeerListen)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
