package consensus

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
)

// roomFS is a disk on which small files fit and segments do not, while refusal is set.
type roomFS struct {
	faultyFS
	room    sync.Mutex
	refusal error // guarded by room; what the creation of a segment returns
	probes  bool  // guarded by room; a probe of any size finds room all the same
	refused int   // guarded by room
}

func (r *roomFS) refuse(refusal error, probes bool) {
	r.room.Lock()
	defer r.room.Unlock()
	r.refusal, r.probes = refusal, probes
}

func (r *roomFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	r.room.Lock()
	err := r.refusal
	if size == 0 || name == probeName && r.probes {
		err = nil
	}
	if err != nil {
		r.refused++
	}
	r.room.Unlock()
	if err != nil {
		return nil, err
	}
	return r.faultyFS.Create(dir, name, size)
}

// awaitRefusals waits until some more creations were refused.
func (r *roomFS) awaitRefusals(t *testing.T, more int) {
	t.Helper()
	refused := func() int {
		r.room.Lock()
		defer r.room.Unlock()
		return r.refused
	}
	before := refused()
	eventuallyTrue(t, "room for a segment is looked for", func() bool { return refused() >= before+more })
}

// roomLog is a log store of small segments on such a disk; nothing of it is in a snapshot.
func roomLog(t *testing.T) (*cutLog, *roomFS, chan struct{}) {
	t.Helper()
	fs := &roomFS{}
	c := &cutLog{t: t, random: rand.New(rand.NewPCG(1, 1)), fs: newPowerFS(rand.New(rand.NewPCG(1, 2))), disk: fs, dir: t.TempDir(), first: 1, entries: map[uint64][]byte{}, term: 1}
	c.open(true)
	stop := make(chan struct{})
	var once sync.Once
	failed := make(chan struct{})
	c.log.probeDir = c.dir
	c.log.interval = time.Millisecond
	c.log.covered = func() uint64 { return 0 }
	c.log.disk = &disk{stop: stop, now: time.Now, changed: func(bool) {}, broken: func(err error) {
		c.failed = err
		once.Do(func() { close(failed) })
	}}
	t.Cleanup(func() {
		fs.refuse(nil, false)
		_ = c.log.close()
	})
	t.Cleanup(func() { close(stop) })
	return c, fs, failed
}

func kilobytes(first, last uint64) (logs []*raft.Log) {
	for i := first; i <= last; i++ {
		logs = append(logs, &raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: []byte(strings.Repeat("x", kib))})
	}
	return logs
}

// within runs a call that may wait, and fails if the disk is given up meanwhile.
func within(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

func (c *cutLog) returns(t *testing.T, what string, done <-chan error, failed <-chan struct{}) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-failed:
		t.Fatalf("%s: the disk was given up: %v", what, c.log.disk.refusal())
	case <-time.After(time.Minute):
		t.Fatalf("%s: it waits for ever; the disk is %s", what, c.log.disk.state())
	}
}

// Without room for the next segment the log must be left open: a follower that lags
// makes the leader read what no cache has.
func TestALogThatWaitsForRoomForASegmentIsRead(t *testing.T) {
	for _, row := range []struct {
		name   string
		probes bool // the room that was found is gone when the log is opened
	}{
		{"no room for a segment", false},
		{"room for a segment that another takes", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, fs, failed := roomLog(t)
			c.returns(t, "the first entries", within(func() error { return c.log.StoreLogs(kilobytes(1, 3)) }), failed)
			fs.refuse(syscall.ENOSPC, row.probes)
			last := uint64(3)
			appended := within(func() error {
				for ; last < 40; last++ { // more than a segment of 16 KiB
					if err := c.log.StoreLogs(kilobytes(last+1, last+1)); err != nil {
						return err
					}
				}
				return nil
			})
			eventuallyTrue(t, "the disk is full", func() bool { return c.log.disk.state() == DiskFull })
			fs.awaitRefusals(t, 2)
			read := within(func() error { return c.log.GetLog(2, new(raft.Log)) })
			if !row.probes { // before there is room
				c.returns(t, "a read", read, failed)
			}
			fs.refuse(nil, false)
			if row.probes {
				c.returns(t, "a read", read, failed)
			}
			c.returns(t, "the appends", appended, failed)
			if s := c.log.disk.state(); s != DiskOK {
				t.Errorf("the disk is %s", s)
			}
			for i := uint64(1); i <= last; i++ {
				if err := c.log.GetLog(i, new(raft.Log)); err != nil {
					t.Fatalf("entry %d: %v", i, err)
				}
			}
		})
	}
}

func TestAReadOfALogThatIsClosedEndsWithTheNode(t *testing.T) {
	c, _, failed := roomLog(t)
	c.returns(t, "the first entries", within(func() error { return c.log.StoreLogs(kilobytes(1, 3)) }), failed)
	stop := make(chan struct{})
	c.log.disk.stop = stop
	_ = c.log.eng.Close()
	c.log.eng = closedEngine{}
	read := within(func() error { return c.log.GetLog(2, new(raft.Log)) })
	close(stop)
	select {
	case err := <-read:
		if !errors.Is(err, ErrStopped) || errors.Is(err, ErrCorrupt) {
			t.Fatalf("read: %v", err)
		}
	case <-failed:
		t.Fatalf("the disk was given up: %v", c.failed)
	case <-time.After(time.Minute):
		t.Fatal("the read waits for ever")
	}
}

// raft-wal makes a segment for each removal at the end, and the library only logs
// that one failed: no append comes after it that could open the log anew.
func TestARemovalAtTheEndHealsOrStopsTheNode(t *testing.T) {
	for _, row := range []struct {
		name    string
		low     uint64
		refusal error
		broken  bool // by an earlier removal
		stops   bool
	}{
		{"no room for a segment", 3, syscall.ENOSPC, false, false},
		{"no room, and the log was broken before", 3, syscall.ENOSPC, true, false},
		{"the log was broken before", 3, nil, true, false},
		{"no room, and all is removed", 1, syscall.ENOSPC, false, false},
		{"the disk fails", 3, syscall.EIO, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, fs, failed := roomLog(t)
			c.returns(t, "the first entries", within(func() error { return c.log.StoreLogs(kilobytes(1, 5)) }), failed)
			fs.refuse(row.refusal, false)
			c.log.suspect.Store(row.broken)
			removed := within(func() error { return c.log.DeleteRange(row.low, 5) })
			if row.stops {
				if err := <-removed; !errors.Is(err, ErrDiskFailed) || !errors.Is(err, row.refusal) {
					t.Fatalf("removal: %v", err)
				}
				<-failed
				return
			}
			if row.refusal != nil {
				fs.awaitRefusals(t, 2)
				if s := c.log.disk.state(); s != DiskFull {
					t.Errorf("the disk is %s", s)
				}
			}
			fs.refuse(nil, false)
			c.returns(t, "the removal", removed, failed)
			if s := c.log.disk.state(); s != DiskOK {
				t.Errorf("the disk is %s", s)
			}
			next := kilobytes(row.low, 4)
			for _, l := range next {
				l.Term = 2
			}
			c.returns(t, "the entries in their place", within(func() error { return c.log.StoreLogs(next) }), failed)
			if last, err := c.log.LastIndex(); err != nil || last != 4 {
				t.Fatalf("the log ends at %d, %v", last, err)
			}
			var l raft.Log
			if err := c.log.GetLog(row.low, &l); err != nil || l.Term != 2 {
				t.Fatalf("entry %d has term %d, %v", row.low, l.Term, err)
			}
		})
	}
}
