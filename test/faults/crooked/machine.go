package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/server"
)

// Settings are how a machine is to fail. The zero value is a good machine.
type Settings struct {
	// ClockOffset is added to the wall clock's time.
	ClockOffset time.Duration
	// Disk is how the log's disk is: "" good, "hang" lets syncs wait until it is
	// set otherwise, "fail" fails them with an I/O error, "full" has no space,
	// "unread" lets reads wait.
	Disk string
	// RefuseEvery makes Raft refuse each so-manieth entry that is proposed
	// here; 0 for none.
	RefuseEvery int
	// CommandLevel is the highest command level that the program supports, 0 for
	// the product's own. It is read at the start only.
	CommandLevel byte
}

// machine is what lies below a server.
type machine struct {
	path string

	mu       sync.Mutex
	changed  sync.Cond // on mu
	settings Settings  // guarded by mu
	entries  int       // guarded by mu; proposed so far
}

func newMachine(path string) *machine {
	m := &machine{path: path}
	m.changed.L = &m.mu
	m.look()
	return m
}

// watch looks at the file of settings until the end.
func (m *machine) watch(ctx context.Context) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.look()
		}
	}
}

// look reads the file, which is replaced whole; without one nothing changes.
func (m *machine) look() {
	text, err := os.ReadFile(m.path)
	var s Settings
	if err != nil || json.Unmarshal(text, &s) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s != m.settings {
		m.settings = s
		m.changed.Broadcast()
	}
}

func (m *machine) get() Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// clock is the machine's clock; only its wall time can be off.
func (m *machine) clock() server.Clock {
	c := server.SystemClock()
	c.Wall = func() time.Time { return time.Now().Add(m.get().ClockOffset) }
	return c
}

// refusals are the errors with which Raft loses one entry and takes the next.
var refusals = []error{raft.ErrLeadershipTransferInProgress, raft.ErrAbortedByRestore, raft.ErrEnqueueTimeout}

// refuse is asked before each entry.
func (m *machine) refuse() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries++
	if every := m.settings.RefuseEvery; every > 0 && m.entries%every == 0 {
		return refusals[m.entries/every%len(refusals)]
	}
	return nil
}

// sync waits or fails as the settings say.
func (m *machine) sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.settings.Disk == "hang" {
		m.changed.Wait()
	}
	switch m.settings.Disk {
	case "fail":
		return syscall.EIO
	case "full":
		return syscall.ENOSPC
	}
	return nil
}

// read waits as the settings say.
func (m *machine) read() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.settings.Disk == "unread" {
		m.changed.Wait()
	}
}

// space fails if there is none.
func (m *machine) space() error {
	if m.get().Disk == "full" {
		return syscall.ENOSPC
	}
	return nil
}

func (m *machine) files() consensus.FS { return crookedFiles{machine: m} }

// crookedFiles are the operating system's, but for their syncs, their reads and
// their space.
type crookedFiles struct {
	consensus.OSFS
	machine *machine
}

// Create implements types.VFS.
func (c crookedFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if err := c.machine.space(); err != nil {
		return nil, err
	}
	f, err := c.OSFS.Create(dir, name, size)
	return crookedFile{f, c.machine}, err
}

// OpenWriter implements types.VFS.
func (c crookedFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := c.OSFS.OpenWriter(dir, name)
	return crookedFile{f, c.machine}, err
}

// OpenReader implements types.VFS.
func (c crookedFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	f, err := c.OSFS.OpenReader(dir, name)
	return crookedReader{f, c.machine}, err
}

// WriteFile implements consensus.FS.
func (c crookedFiles) WriteFile(dir, name string, data []byte) error {
	if err := c.machine.sync(); err != nil {
		return err
	}
	return c.OSFS.WriteFile(dir, name, data)
}

type crookedFile struct {
	types.WritableFile
	machine *machine
}

// WriteAt implements types.WritableFile. A disk that fills up takes a part.
func (f crookedFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.machine.space(); err != nil {
		n, _ := f.WritableFile.WriteAt(p[:len(p)/2], at)
		return n, err
	}
	return f.WritableFile.WriteAt(p, at)
}

// ReadAt implements types.WritableFile.
func (f crookedFile) ReadAt(p []byte, at int64) (int, error) {
	f.machine.read()
	return f.WritableFile.ReadAt(p, at)
}

// Sync implements types.WritableFile.
func (f crookedFile) Sync() error {
	if err := f.machine.sync(); err != nil {
		return err
	}
	return f.WritableFile.Sync()
}

type crookedReader struct {
	types.ReadableFile
	machine *machine
}

// ReadAt implements types.ReadableFile.
func (f crookedReader) ReadAt(p []byte, at int64) (int, error) {
	f.machine.read()
	return f.ReadableFile.ReadAt(p, at)
}
