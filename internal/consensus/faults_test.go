package consensus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// faultyFS is the operating system's file layer with faults on demand.
type faultyFS struct {
	OSFS
	mu     sync.Mutex
	write  error         // guarded by mu; what writes and creations return
	sync   error         // guarded by mu; what syncs return
	hang   chan struct{} // guarded by mu; syncs wait for it
	synced int           // guarded by mu
}

func (f *faultyFS) set(write, sync error, hang chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write, f.sync, f.hang = write, sync, hang
}

// awaitSync runs a function and returns once a sync has been asked for since.
func (f *faultyFS) awaitSync(cause func()) {
	asked := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.synced
	}
	before := asked()
	cause()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for asked() == before {
		<-tick.C
	}
}

func (f *faultyFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f.mu.Lock()
	err := f.write
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	file, err := f.OSFS.Create(dir, name, size)
	return &faultyFile{WritableFile: file, fs: f}, err
}

func (f *faultyFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	file, err := f.OSFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{WritableFile: file, fs: f}, nil
}

func (f *faultyFS) WriteFile(dir, name string, data []byte) error {
	f.mu.Lock()
	err := f.write
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.OSFS.WriteFile(dir, name, data)
}

type faultyFile struct {
	types.WritableFile
	fs *faultyFS
}

func (f *faultyFile) WriteAt(b []byte, offset int64) (int, error) {
	f.fs.mu.Lock()
	err := f.fs.write
	f.fs.mu.Unlock()
	if err != nil {
		n, _ := f.WritableFile.WriteAt(b[:len(b)/2], offset)
		return n, err
	}
	return f.WritableFile.WriteAt(b, offset)
}

func (f *faultyFile) Sync() error {
	f.fs.mu.Lock()
	err, hang := f.fs.sync, f.fs.hang
	f.fs.synced++
	f.fs.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if err != nil {
		return err
	}
	return f.WritableFile.Sync()
}

// settle waits until nothing that was applied is still counted as on its way.
func (r *running) settle(t *testing.T) {
	t.Helper()
	if err := r.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// awaitPropose waits until Propose answers as it should in a state of the disk.
func awaitPropose(t *testing.T, r *running, want error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		r.next++
		if err := r.Propose(r.next, []byte("probe")); errors.Is(err, want) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("propose never answered %v; status %+v", want, r.Status())
		}
	}
}

func TestAFullDiskRefusesWritesAndHealsByItself(t *testing.T) {
	fs := &faultyFS{}
	c := testConfig(t.TempDir())
	c.FS = fs
	c.DiskFullPatience = 10 * time.Millisecond
	logs := captureLogs(&c)
	n := start(t, c)
	n.write(t, numbered(1, 20)...)
	n.settle(t)
	fs.set(syscall.ENOSPC, nil, nil)
	if err := n.Propose(1000, []byte("hanging")); err != nil {
		t.Fatal(err)
	}
	if lost := <-n.observer.lost; !slices.Equal(lost, []uint64{1000}) {
		t.Fatalf("tokens %v are unknown, want 1000", lost)
	}
	if err := n.Propose(1001, []byte("refused")); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("propose on a full disk: %v", err)
	}
	if s := n.Status(); s.Disk != DiskFull || s.Role != "leader" || s.NotReady == "" {
		t.Fatalf("status %+v", s)
	}
	fs.set(nil, nil, nil)
	n.journal.await(t, 21) // the hanging one is applied after all
	awaitPropose(t, n, nil)
	n.journal.await(t, 22)
	if s := n.Status(); s.Disk != DiskOK || s.NotReady != "" || s.Term != 2 {
		t.Fatalf("status %+v", s)
	}
	want := append(numbered(1, 20), "hanging", "probe")
	requireCommands(t, n.journal, want)
	n.close(t)
	if text := logs.String(); !strings.Contains(text, "disk of the log is full") || !strings.Contains(text, "has space again") {
		t.Errorf("logged:\n%s", text)
	}
	n = start(t, c)
	requireCommands(t, n.journal, want)
}

func TestASmallDiskFillsAndHeals(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
			t.Logf("no file system can be mounted here (%v); the faulty file layer stands in", err)
			return
		}
		t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
		c.DataDir = filepath.Join(disk, "data")
		c.SegmentBytes = 64 * mib // the default, which would fill this disk
		c.DiskFullPatience = 10 * time.Millisecond
		n := start(t, c)
		n.write(t, numbered(1, 20)...)
		n.settle(t)
		filler := filepath.Join(disk, "filler")
		fill(t, filler)
		big := strings.Repeat("x", 64*kib)
		accepted := []string{}
		for i := 0; ; i++ {
			command := fmt.Sprint(i, big)
			n.next++
			err := n.Propose(n.next, []byte(command))
			if errors.Is(err, ErrDiskFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			accepted = append(accepted, command)
			for n.journal.len() < 20+len(accepted) && n.Status().Disk == DiskOK {
				select {
				case <-n.journal.changed:
				case <-time.After(time.Millisecond):
				}
			}
		}
		if n.Status().Disk != DiskFull {
			t.Fatalf("status %+v", n.Status())
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		n.journal.await(t, 20+len(accepted))
		awaitPropose(t, n, nil)
		n.journal.await(t, 21+len(accepted))
		want := append(append(numbered(1, 20), accepted...), "probe")
		requireCommands(t, n.journal, want)
		n.close(t)
		n = start(t, c)
		requireCommands(t, n.journal, want)
	})
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, 64*kib)
	for len(block) > 0 {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFailedSyncStopsTheNodeForGood(t *testing.T) {
	fs := &faultyFS{}
	c := testConfig(t.TempDir())
	c.FS = fs
	n := start(t, c)
	n.write(t, numbered(1, 20)...)
	n.settle(t)
	fs.set(nil, syscall.EIO, nil)
	if err := n.Propose(1000, []byte("lost")); err != nil {
		t.Fatal(err)
	}
	<-n.Failed()
	if err := n.Err(); !errors.Is(err, ErrDiskFailed) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("reason %v", err)
	}
	if lost := <-n.observer.lost; !slices.Equal(lost, []uint64{1000}) {
		t.Fatalf("tokens %v are unknown, want 1000", lost)
	}
	if leading := <-n.observer.leading; leading {
		t.Fatal("a stopped node leads")
	}
	fs.set(nil, nil, nil) // the disk is well again, the process stays stopped
	if err := n.Propose(1001, nil); !errors.Is(err, ErrStopped) {
		t.Fatalf("propose: %v", err)
	}
	if s := n.Status(); s.Disk != DiskFailed || s.Role != "stopped" || !strings.Contains(s.NotReady, "input/output error") {
		t.Fatalf("status %+v", s)
	}
	n.close(t)
	n = start(t, c)
	if got := n.journal.list(); len(got) < 20 || !slices.Equal(got[:20], numbered(1, 20)) {
		t.Fatalf("after the restart: %q", got)
	}
}

func TestCloseOfAHungNodeIsBounded(t *testing.T) {
	fs := &faultyFS{}
	c := testConfig(t.TempDir())
	c.FS = fs
	c.CloseTimeout = 50 * time.Millisecond
	n := start(t, c)
	n.write(t, numbered(1, 20)...)
	n.settle(t)
	hang := make(chan struct{})
	fs.set(nil, nil, hang)
	fs.awaitSync(func() {
		if err := n.Propose(1000, []byte("hanging")); err != nil {
			t.Fatal(err)
		}
	})
	if err := n.Close(); !errors.Is(err, ErrCloseTimeout) {
		t.Fatalf("close: %v", err)
	}
	if lost := <-n.observer.lost; !slices.Equal(lost, []uint64{1000}) {
		t.Fatalf("tokens %v are unknown, want 1000", lost)
	}
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrLocked) {
		t.Fatalf("open beside an abandoned node: %v", err)
	}
	fs.set(nil, nil, nil)
	close(hang)
	<-n.down
	awaitUnlocked(t, c)
	n = start(t, c)
	if got := n.journal.list(); !slices.Equal(got[:20], numbered(1, 20)) {
		t.Fatalf("after the restart: %q", got)
	}
}

// awaitUnlocked waits until an abandoned node has let go of its directory.
func awaitUnlocked(t *testing.T, c Config) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 30_000 {
		locks, err := c.layout().lock()
		if err == nil {
			locks.close()
			return
		}
		<-tick.C
	}
	t.Fatal("the data directory stays locked")
}

func TestAStallShowsInTheStatus(t *testing.T) {
	fs := &faultyFS{}
	c := testConfig(t.TempDir())
	c.FS = fs
	var shift sync.Map
	c.Now = func() time.Time {
		if _, late := shift.Load("late"); late {
			return time.Now().Add(time.Minute)
		}
		return time.Now()
	}
	n := start(t, c)
	hang := make(chan struct{})
	fs.set(nil, nil, hang)
	fs.awaitSync(func() {
		if err := n.Propose(1, []byte("slow")); err != nil {
			t.Fatal(err)
		}
	})
	shift.Store("late", true)
	if s := n.Status(); s.Disk != DiskStalled || s.NotReady == "" {
		t.Errorf("status %+v", s)
	}
	fs.set(nil, nil, nil)
	close(hang)
	n.journal.await(t, 1)
	if s := n.Status(); s.Disk != DiskOK {
		t.Errorf("status %+v", s)
	}
}
