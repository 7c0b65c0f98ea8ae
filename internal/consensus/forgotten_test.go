package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// One member runs on an old copy of its data, and with a server that was down it
// is a majority that has forgotten what it acknowledged. Whoever still has that
// keeps it and stops, so that an operator can choose; the library would throw it
// away, and let a running server go on with a state that nobody else has.
func TestAServerKeepsWhatALeaderHasForgotten(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		servers := ensembleWith(t, 3, func(config *Config) { config.LogStore = c.LogStore })
		leader, others := leaderOf(t, servers)
		want := holds(t, servers, nil, "one", "two", "three")
		old, absent := others[0], others[1]
		stop := func(servers ...*testServer) {
			t.Helper()
			for _, s := range servers {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		stop(old)
		backup := t.TempDir()
		copyTree(t, old.config.DataDir, backup)
		old.open(t)
		leaderOf(t, servers)
		stop(absent)
		both := []*testServer{leader, old}
		var more []string
		for i := range 20 {
			more = append(more, fmt.Sprint("acknowledged ", i))
		}
		all := holds(t, both, slices.Clone(want), more...)
		stop(old, leader)
		if err := os.RemoveAll(old.config.DataDir); err != nil {
			t.Fatal(err)
		}
		copyTree(t, backup, old.config.DataDir)
		old.open(t)
		absent.open(t)
		forgetful := []*testServer{old, absent}
		leaderOf(t, forgetful)
		want = holds(t, forgetful, want, "new one", "new two")

		for range 2 { // it does not give in
			leader.open(t)
			<-leader.Failed()
			if err := leader.Err(); !errors.Is(err, ErrForgotten) {
				t.Fatalf("it stopped for another reason: %v", err)
			}
			stop(leader)
		}
		holds(t, forgetful, want, "the others go on")
		r, err := Recover(leader.config, newJournal(), false, func() {})
		if err != nil || r.Last < uint64(len(all)) {
			t.Errorf("what it has cannot be recovered: %+v, %v", r, err)
		}
	})
}

func TestWhatWasAppliedIsNotRemovedFromTheEndOfTheLog(t *testing.T) {
	for name, row := range map[string]struct {
		first, low, high          uint64
		applied, settled, covered uint64
		keeps                     bool
	}{
		"a tail that nobody acknowledged":                 {1, 11, 20, 10, 10, 5, false},
		"one applied entry":                               {1, 10, 20, 10, 0, 5, true},
		"one applied before the last start":               {1, 10, 20, 3, 10, 0, true},
		"applied entries that a snapshot holds, too":      {1, 10, 20, 15, 15, 15, true},
		"everything, since a snapshot took its place":     {1, 1, 20, 15, 15, 15, false},
		"everything, though the snapshot is older":        {1, 1, 20, 15, 15, 14, true},
		"everything, though it was applied at any time":   {1, 1, 20, 3, 15, 14, true},
		"everything of a server that has applied nothing": {1, 1, 20, 0, 0, 0, false},
	} {
		m, err := newMark(&memoryFile{})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.raise(row.high, 1, row.settled); err != nil {
			t.Fatal(err)
		}
		s := &logStore{mark: m, applied: func() uint64 { return row.applied }, covered: func() uint64 { return row.covered }}
		if err := s.keepSettled(row.low, row.high, row.first); errors.Is(err, ErrForgotten) != row.keeps {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheMarkKeepsWhatWasSettled(t *testing.T) {
	file := &memoryFile{}
	m, err := newMark(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		if err := m.raise(10+i, 1, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.lower(3, 1); err != nil {
		t.Fatal(err)
	}
	if m, err = readMark(file, "again"); err != nil || m.settles() != 4 || m.index != 3 {
		t.Fatalf("read %+v, %v", m, err)
	}
	if err := m.close(9); err != nil {
		t.Fatal(err)
	}
	if m, err = readMark(file, "again"); err != nil || m.settles() != 9 || m.index != 3 {
		t.Fatalf("read %+v, %v", m, err)
	}
	// A version of the program that knows nothing of it writes a slot alone.
	newest := int64((m.sequence-1)%2) * markSlotGap
	clear(file.data[newest+markSlotLen : newest+markSlotLen+markNoteLen])
	if m, err = readMark(file, "again"); err != nil || m.settles() != 4 {
		t.Fatalf("read %+v, %v", m, err)
	}
}

// Recover was run although the other disks were not lost. Their servers are a
// majority of the ensemble as they know it, and would be a second one.
func TestAMajorityThatTurnsUpAfterARecoveryStops(t *testing.T) {
	servers := ensemble(t, 3)
	leaderOf(t, servers)
	want := holds(t, servers, nil, "one", "two", "three")
	for _, s := range servers {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Recover(servers[0].config, newJournal(), true, func() {})
	if err != nil || !r.Done {
		t.Fatalf("recovered %+v, %v", r, err)
	}
	servers[0].open(t)
	eventuallyTrue(t, "the recovered server leads", func() bool { return servers[0].events.leading.Load() })
	servers[0].journal.await(t, len(want))
	for range 2 { // whenever they are started
		for _, s := range servers[1:] {
			s.open(t)
		}
		for _, s := range servers[1:] {
			<-s.Failed()
			if err := s.Err(); !errors.Is(err, ErrSuperseded) {
				t.Errorf("server %d: %v", s.config.ServerID, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range servers[1:] {
		if err := os.RemoveAll(s.config.DataDir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(s.config.DataDir, 0o755); err != nil {
			t.Fatal(err)
		}
		s.open(t)
	}
	leaderOf(t, servers)
	holds(t, servers, want, "four", "five", "six")
}

// What a caller says of itself stops nobody.
func TestAStrangerCannotSupersedeAnEnsemble(t *testing.T) {
	servers := ensemble(t, 3)
	leaderOf(t, servers)
	s := servers[0]
	var h hello
	body := fmt.Sprintf(`{"version":1,"kind":"probe","cluster":"x","from":"2-1","to":"1-0","superseded":[%q]}`, s.stable.identity().ClusterID)
	if err := json.Unmarshal([]byte(body), &h); err != nil {
		t.Fatal(err)
	}
	if w := s.answer(h); w.ID == "" {
		t.Errorf("answered %+v", w)
	}
	holds(t, servers, nil, "one", "two", "three")
}
