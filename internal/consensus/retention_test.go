package consensus

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// Case 55: while a follower receives a snapshot and loads it, the leader takes so
// many of its own that the log would be cut behind the one it sent. The follower
// finds the entries that it then needs, and is not sent a second snapshot.
func TestTheLogIsKeptForAFollowerWhileItLoadsASnapshot(t *testing.T) {
	sent := make(chan time.Duration, 10)
	servers := ensembleWith(t, 3, func(c *Config) {
		c.ElectionTimeout = 5 * time.Second // another leader would know nothing of the transfer
		c.LogCacheBytes = 0                 // it would have what was cut
		c.Observe.SnapshotSent = func(took time.Duration) { sent <- took }
	})
	leader, others := leaderOf(t, servers)
	behind := others[0]
	if err := behind.Close(); err != nil {
		t.Fatal(err)
	}
	next, large := 0, make([]byte, 40*kib) // so that whole segments of the log go
	round := func() {
		for end := next + 10; next < end; next++ {
			eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(uint64(next), large) == nil })
		}
		leader.journal.await(t, next)
		if err := leader.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		round()
	}
	goOn := make(chan struct{})
	behind.journal, behind.events = newJournal(), &memberEvents{}
	behind.journal.block(goOn)
	n, err := Open(behind.config, behind.journal, behind.events)
	if err != nil {
		t.Fatal(err)
	}
	behind.Node = n
	t.Cleanup(func() { _ = n.Close() })
	var from uint64
	eventuallyTrue(t, "the follower has received a snapshot", func() bool { from = behind.Status().NewestSnapshot; return from > 0 })
	for range 5 {
		round()
	}
	s := leader.Status()
	if s.FirstIndex > from || s.OldestSnapshot <= from {
		t.Errorf("the log is kept from entry %d on, the snapshot that is loaded ends at %d, the oldest kept at %d", s.FirstIndex, from, s.OldestSnapshot)
	}
	if age := time.Since(s.FirstSince); s.FirstSince.IsZero() || age < 0 || age > time.Hour {
		t.Errorf("the oldest entry was made at %v", s.FirstSince)
	}
	close(goOn)
	eventuallyTrue(t, "the follower has caught up", func() bool { return behind.journal.len() == next })
	behind.journal.mu.Lock()
	restores := behind.journal.restores
	behind.journal.mu.Unlock()
	if restores != 1 {
		t.Errorf("the follower has loaded %d snapshots", restores)
	}
	eventuallyTrue(t, "the leader says that it has sent one", func() bool { return len(sent) == 1 })
	eventuallyTrue(t, "the log is cut again", func() bool { round(); s = leader.Status(); return s.FirstIndex == s.OldestSnapshot+1 })
	_ = leader.Close() // first, or it would look for a successor
}

// A receiver holds the log as long as it gets on, and no longer.
func TestTheLogIsKeptForAReceiverThatGetsOn(t *testing.T) {
	const wanted, newest = 100, 200
	second := time.Second
	for _, row := range []struct {
		name string
		do   func(r *retention, data io.Reader, pass func(time.Duration))
		full bool
		cut  uint64
	}{
		{name: "that is sent a snapshot", cut: 49},
		{name: "whose snapshot ends behind what is cut", do: func(r *retention, _ io.Reader, _ func(time.Duration)) {
			r.begin("2-2", 150, 0, nil)
		}, cut: wanted},
		{name: "that reads on", do: func(_ *retention, data io.Reader, pass func(time.Duration)) {
			for range 10 {
				pass(50 * second)
				_, _ = data.Read(make([]byte, 1))
			}
		}, cut: 49},
		{name: "that has not got on for as long as it may take to load what it was sent", do: func(_ *retention, _ io.Reader, pass func(time.Duration)) {
			pass(transferPatience + 10*second)
		}, cut: 49},
		{name: "that has not got on for longer", do: func(_ *retention, _ io.Reader, pass func(time.Duration)) {
			pass(transferPatience + 11*second)
		}, cut: wanted},
		{name: "that applies what follows", do: func(r *retention, _ io.Reader, pass func(time.Duration)) {
			for i := range uint64(10) {
				pass(50 * second)
				r.applied("2-2", 51+i)
			}
		}, cut: 59},
		{name: "that says again what it has applied", do: func(r *retention, _ io.Reader, pass func(time.Duration)) {
			for range 3 {
				pass(50 * second)
				r.applied("2-2", 50)
			}
		}, cut: wanted},
		{name: "that has caught up, whatever it does later", do: func(r *retention, _ io.Reader, pass func(time.Duration)) {
			r.applied("2-2", newest)
			r.cut(wanted, newest)
		}, cut: wanted},
		{name: "that is sent the newest snapshot and has not loaded it", do: func(r *retention, _ io.Reader, _ func(time.Duration)) {
			r.cut(50, 50)
		}, cut: 49},
		{name: "that has loaded the newest snapshot", do: func(r *retention, _ io.Reader, _ func(time.Duration)) {
			r.applied("2-2", 50)
			r.cut(50, 50)
		}, cut: wanted},
		{name: "of another leader", do: func(r *retention, _ io.Reader, _ func(time.Duration)) { r.clear() }, cut: wanted},
		{name: "beside others that are further", do: func(r *retention, _ io.Reader, _ func(time.Duration)) {
			r.begin("3-3", 70, 0, nil)
			r.applied("9-9", 1)
		}, cut: 49},
		{name: "but not on a disk that gets short", full: true, cut: wanted},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := time.Unix(1, 0)
			r := &retention{now: func() time.Time { return now }, spacious: func() bool { return !row.full },
				logger: testConfig("").Logger, transfers: map[raft.ServerID]*transfer{}}
			if got := r.cut(wanted, newest); got != wanted {
				t.Fatalf("without a receiver the log is cut up to %d", got)
			}
			data := r.begin("2-2", 50, 10*mib, strings.NewReader("the snapshot's bytes"))
			if row.do != nil {
				row.do(r, data, func(d time.Duration) { now = now.Add(d) })
			}
			if got := r.cut(wanted, newest); got != row.cut {
				t.Errorf("the log is cut up to %d, want %d", got, row.cut)
			}
		})
	}
	r := &retention{now: time.Now, transfers: map[raft.ServerID]*transfer{}}
	if got, err := io.ReadAll(r.begin("2-2", 1, 0, strings.NewReader("all of it"))); err != nil || !bytes.Equal(got, []byte("all of it")) {
		t.Errorf("what is sent is %q, %v", got, err)
	}
}
