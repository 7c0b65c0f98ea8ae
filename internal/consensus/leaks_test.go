package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openFiles counts the files of this process under a directory.
func openFiles(t *testing.T, dir string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, dir) {
			n++
		}
	}
	return n
}

func TestNothingLeaksOverStartsAndStops(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		life := func() {
			n := start(t, c)
			n.write(t, numbered(1, 20)...)
			if err := n.Snapshot(); err != nil {
				t.Fatal(err)
			}
			n.close(t)
		}
		life()
		before := runtime.NumGoroutine()
		for range 10 {
			life()
		}
		// Goroutines that have been told to end may still be about to.
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range 10_000 {
			if runtime.NumGoroutine() <= before {
				break
			}
			<-tick.C
		}
		if after := runtime.NumGoroutine(); after > before {
			stacks := make([]byte, mib)
			t.Errorf("%d goroutines, before %d\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
		}
		if n := openFiles(t, c.DataDir); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
}

func TestARefusedStartLeavesNothingOpen(t *testing.T) {
	c := testConfig(t.TempDir())
	furnish(t, c)
	before := runtime.NumGoroutine()
	for _, damage := range []func(){
		func() { c.ServerID = 9 },
		func() { c.ServerID, c.LogStore = 0, LogStoreBolt },
		func() {
			c.LogStore = LogStoreWAL
			flip(t, filepath.Join(c.layout().log(LogStoreWAL), walMetaName), 30, 1)
		},
	} {
		damage()
		if _, err := Open(c, newJournal(), newObserver()); err == nil {
			t.Fatal("opened")
		}
		if n := openFiles(t, c.DataDir); n != 0 {
			t.Errorf("%d files are open after a refusal", n)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 10_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		<-tick.C
	}
	t.Errorf("%d goroutines after refusals, before %d", runtime.NumGoroutine(), before)
}

// TestAStartOnAFullDisk stands for a restart while the disk is full: it either
// goes on or says so, and starts whole once there is space.
func TestAStartOnAFullDisk(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
			t.Logf("no file system can be mounted here (%v)", err)
			return
		}
		t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
		c.DataDir = filepath.Join(disk, "data")
		n := start(t, c)
		n.write(t, numbered(1, 50)...)
		if err := n.Snapshot(); err != nil {
			t.Fatal(err)
		}
		n.close(t)
		filler := filepath.Join(disk, "filler")
		fill(t, filler)
		j, o := newJournal(), newObserver()
		full, err := Open(c, j, o)
		if err == nil {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			r := &running{Node: full, journal: j, observer: o}
			r.awaitLeading(t)
			requireCommands(t, j, numbered(1, 50))
			r.write(t, numbered(51, 60)...)
			r.close(t)
			return
		}
		t.Logf("refused: %v", err)
		if !isNoSpace(err) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrLess) {
			t.Fatalf("open on a full disk: %v", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		n = start(t, c)
		requireCommands(t, n.journal, numbered(1, 50))
	})
}
