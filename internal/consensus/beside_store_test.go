package consensus

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// besideLog is a log store on a disk that can hang.
func besideLog(t *testing.T) (*cutLog, *faultyFS) {
	t.Helper()
	fs := &faultyFS{}
	c := &cutLog{t: t, random: rand.New(rand.NewPCG(1, 1)), fs: newPowerFS(rand.New(rand.NewPCG(1, 2))), disk: fs, dir: t.TempDir(), first: 1, entries: map[uint64][]byte{}, term: 1}
	c.open(true)
	c.log.eng = &aloneEngine{engine: c.log.eng, t: t}
	t.Cleanup(func() {
		fs.set(nil, nil, nil)
		_ = c.log.close()
	})
	return c, fs
}

// aloneEngine complains of appends and removals at the end that overlap.
type aloneEngine struct {
	engine
	t    *testing.T
	runs atomic.Int32
}

func (e *aloneEngine) StoreLogs(logs []*raft.Log) error {
	defer e.runs.Add(-1)
	if e.runs.Add(1) > 1 {
		e.t.Error("an append begins before another operation has ended")
	}
	return e.engine.StoreLogs(logs)
}

func (e *aloneEngine) DeleteRange(low, high uint64) error {
	defer e.runs.Add(-1)
	if e.runs.Add(1) > 1 {
		e.t.Error("a removal begins before an append has ended")
	}
	return e.engine.DeleteRange(low, high)
}

func entriesOf(first uint64, kinds ...raft.LogType) (logs []*raft.Log) {
	for i, kind := range kinds {
		logs = append(logs, &raft.Log{Index: first + uint64(i), Term: 1, Type: kind, Data: []byte("data")})
	}
	return logs
}

// Rule "other entries": only commands, and only a leader's, are taken before their
// sync.
func TestOnlyALeadersCommandsAreTakenBeforeTheirSync(t *testing.T) {
	for _, row := range []struct {
		name  string
		leads bool
		kinds []raft.LogType
		waits bool
	}{
		{"a leader's command", true, []raft.LogType{raft.LogCommand}, false},
		{"several of a leader's commands", true, []raft.LogType{raft.LogCommand, raft.LogCommand}, false},
		{"a follower's command", false, []raft.LogType{raft.LogCommand}, true},
		{"a change of the membership", true, []raft.LogType{raft.LogConfiguration}, true},
		{"what a new leader writes first", true, []raft.LogType{raft.LogNoop}, true},
		{"a barrier", true, []raft.LogType{raft.LogBarrier}, true},
		{"a barrier behind a command", true, []raft.LogType{raft.LogCommand, raft.LogBarrier}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, fs := besideLog(t)
			if err := c.log.StoreLogs(entriesOf(1, raft.LogConfiguration)); err != nil {
				t.Fatal(err)
			}
			c.leads = true
			hang := make(chan struct{})
			fs.set(nil, nil, hang)
			fs.awaitSync(func() { // one is on its way already
				if err := c.log.StoreLogs(entriesOf(2, raft.LogCommand)); err != nil {
					t.Fatal(err)
				}
			})
			c.leads = row.leads
			var released atomic.Bool
			early := make(chan bool, 1)
			go func() {
				if err := c.log.StoreLogs(entriesOf(3, row.kinds...)); err != nil {
					t.Error(err)
				}
				early <- !released.Load()
			}()
			if row.waits {
				<-time.After(50 * time.Millisecond) // long enough to return too early
			} else if !<-early {
				t.Fatal("it has waited")
			}
			fs.set(nil, nil, nil)
			released.Store(true)
			close(hang)
			if row.waits && <-early {
				t.Error("StoreLogs has returned before the sync")
			}
			last := 2 + uint64(len(row.kinds))
			if err := c.log.awaitSync(last); err != nil {
				t.Fatal(err)
			}
			if got, err := c.log.eng.LastIndex(); err != nil || got != last {
				t.Errorf("the disk has entries up to %d, %v, want %d", got, err, last)
			}
			if !c.log.has(last) {
				t.Error("the entry cannot be read")
			}
		})
	}
}

func (s *logStore) has(index uint64) bool {
	var l raft.Log
	return s.GetLog(index, &l) == nil && l.Index == index
}

// What is on its way to the disk is a part of the log to everybody who reads it,
// and goes there in one append when the one before is done.
func TestEntriesOnTheirWayToTheDiskArePartOfTheLog(t *testing.T) {
	c, fs := besideLog(t)
	if err := c.log.StoreLogs(entriesOf(1, raft.LogConfiguration, raft.LogCommand, raft.LogCommand)); err != nil {
		t.Fatal(err)
	}
	c.leads = true
	hang := make(chan struct{})
	fs.set(nil, nil, hang)
	fs.awaitSync(func() { _ = c.log.StoreLogs(entriesOf(4, raft.LogCommand)) })
	for i := range uint64(10) {
		if err := c.log.StoreLogs(entriesOf(5+i, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := c.log.LastIndex(); err != nil || last != 14 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
	for i := uint64(1); i <= 14; i++ {
		if !c.log.has(i) {
			t.Errorf("entry %d cannot be read", i)
		}
	}
	if got := c.log.durable(14); got != 3 {
		t.Errorf("%d entries are said to be synced", got)
	}
	if c.log.durable(2) != 2 {
		t.Error("an entry before is said not to be synced")
	}
	// A snapshot of all that has been applied trims the log, but not all of the disk's.
	trimmed := &trimmedEngine{engine: c.log.eng}
	c.log.eng = trimmed
	if err := c.log.DeleteRange(1, 3); err != nil || trimmed.high != 2 {
		t.Errorf("trimming goes to entry %d, %v, want 2", trimmed.high, err)
	}
	fs.mu.Lock()
	before := fs.synced
	fs.mu.Unlock()
	fs.set(nil, nil, nil)
	close(hang)
	if err := c.log.awaitSync(everything); err != nil {
		t.Fatal(err)
	}
	fs.mu.Lock()
	syncs := fs.synced - before
	fs.mu.Unlock()
	if syncs != 1 {
		t.Errorf("ten entries that waited took %d syncs", syncs)
	}
	for i := uint64(1); i <= 14; i++ {
		if !c.log.has(i) {
			t.Errorf("entry %d cannot be read", i)
		}
	}
}

// trimmedEngine notes what would be removed: the engine waits for its append.
type trimmedEngine struct {
	engine
	high uint64
}

func (e *trimmedEngine) DeleteRange(_, high uint64) error {
	e.high = high
	return nil
}

// A conflict removes entries from the end: not before they have arrived there, or
// they would come after all.
func TestARemovalAtTheEndWaitsForWhatIsOnItsWayToTheDisk(t *testing.T) {
	c, fs := besideLog(t)
	if err := c.log.StoreLogs(entriesOf(1, raft.LogConfiguration, raft.LogCommand)); err != nil {
		t.Fatal(err)
	}
	c.leads = true
	hang := make(chan struct{})
	fs.set(nil, nil, hang)
	fs.awaitSync(func() { _ = c.log.StoreLogs(entriesOf(3, raft.LogCommand, raft.LogCommand)) })
	var released atomic.Bool
	removed := make(chan error, 1)
	early := false
	go func() {
		err := c.log.DeleteRange(3, 4)
		early = !released.Load()
		removed <- err
	}()
	<-time.After(50 * time.Millisecond) // long enough to return too early
	fs.set(nil, nil, nil)
	released.Store(true)
	close(hang)
	if err := <-removed; err != nil || early {
		t.Fatalf("removed with %v, before the sync: %v", err, early)
	}
	c.leads = false
	if err := c.log.StoreLogs(entriesOf(3, raft.LogNoop)); err != nil {
		t.Fatal(err)
	}
	if last, err := c.log.LastIndex(); err != nil || last != 3 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
}
