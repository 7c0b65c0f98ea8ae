package consensus

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// levelled is an ensemble whose servers' command levels a test sets.
func levelled(t *testing.T, n int) (servers []*testServer, inForce, supports []*atomic.Int64) {
	servers = ensembleWith(t, n, func(c *Config) {
		f, s := &atomic.Int64{}, &atomic.Int64{}
		f.Store(1)
		s.Store(2)
		inForce, supports = append(inForce, f), append(supports, s)
		c.ElectionTimeout = 3 * time.Second // a machine under load must not cost the leader its lease
		c.CommandLevels = func() (int, int) { return int(f.Load()), int(s.Load()) }
	})
	return servers, inForce, supports
}

// A higher level needs every server, and each of them as it is now: one that is
// down may come back as an older build.
func TestTheCommonLevelIsWhatEveryServerHasReported(t *testing.T) {
	servers, _, supports := levelled(t, 3)
	common := func(want int, waitsFor ...int) {
		t.Helper()
		leader, _ := leaderOf(t, slices.DeleteFunc(slices.Clone(servers), func(s *testServer) bool { return s.Node == nil }))
		eventuallyTrue(t, fmt.Sprintf("the common level is %d, kept by %v", want, waitsFor), func() bool {
			level, who := leader.CommonLevel()
			return level == want && slices.Equal(who, waitsFor)
		})
	}
	common(2)
	_, others := leaderOf(t, servers)
	one := others[0]
	number := one.config.ServerID
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	one.Node = nil
	common(1, number)
	supports[number-1].Store(1)
	one.open(t)
	common(1, number)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	supports[number-1].Store(2)
	one.open(t)
	common(2)
}

// An older build that is put back after the level has risen gets no entry, has
// no vote, says why, and disturbs nobody. The newer build goes on where it was.
func TestAServerThatDoesNotSupportTheLevelGetsNothing(t *testing.T) {
	servers, inForce, supports := levelled(t, 3)
	leader, others := leaderOf(t, servers)
	old, other := others[0], others[1]
	number := old.config.ServerID
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*testServer{leader, other} {
		inForce[s.config.ServerID-1].Store(2)
	}
	supports[number-1].Store(1)
	old.open(t)
	term := leader.Status().Term
	for i := range 50 {
		eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(uint64(i+1), fmt.Appendf(nil, "%d", i)) == nil })
	}
	other.journal.await(t, 50)
	want := fmt.Sprintf("server %s supports command level 1 at most, and the ensemble is at level 2", old.id.raftID())
	eventuallyTrue(t, "the old server says why it takes no part", func() bool { return strings.Contains(old.Status().NotReady, want) })
	if n := old.journal.len(); n != 0 || old.events.route.Load() {
		t.Errorf("the old server has applied %d commands, route %t", n, old.events.route.Load())
	}
	if now := leader.Status(); now.Term != term || !now.Leading {
		t.Errorf("the leader of term %d is now %+v", term, now)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	supports[number-1].Store(2)
	old.open(t)
	old.journal.await(t, 50)
}

// older is a state machine that a snapshot with the command "new" is too new for.
type older struct{ *journal }

func (o older) Restore(r io.Reader) error {
	j := newJournal()
	if err := j.Restore(r); err != nil {
		return err
	}
	if slices.Contains(j.list(), "new") {
		return fmt.Errorf("%w: of level 2", ErrNewer)
	}
	return o.journal.Restore(strings.NewReader(""))
}

// A snapshot of a later version is no broken one: an older build stops on it,
// applies nothing from an older snapshot and the log either, and leaves
// everything to the newer build.
func TestASnapshotOfALaterVersionStopsTheServerAndIsKept(t *testing.T) {
	for name, snapshots := range map[string][]string{"the only one": {"new"}, "behind an older one": {"a", "new"}} {
		c := testConfig(t.TempDir())
		r := start(t, c)
		for _, command := range snapshots {
			r.write(t, command)
			if err := r.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		r.write(t, "last")
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		j := newJournal()
		n, err := Open(c, older{j}, newObserver())
		if err == nil {
			<-n.Failed()
			err = errors.Join(n.Err(), n.Close())
		}
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "of level 2") || j.len() != 0 {
			t.Errorf("%s: %v, %d commands were applied", name, err, j.len())
		}
		again := start(t, c)
		requireCommands(t, again.journal, append(slices.Clone(snapshots), "last"))
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
