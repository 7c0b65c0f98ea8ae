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
	// Sync is what a sync of the log does: "" works, "hang" waits until it is
	// set otherwise, "fail" returns an I/O error.
	Sync string
	// RefuseEvery makes Raft refuse each so-manieth entry that is proposed
	// here; 0 for none.
	RefuseEvery int
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
	for m.settings.Sync == "hang" {
		m.changed.Wait()
	}
	if m.settings.Sync == "fail" {
		return syscall.EIO
	}
	return nil
}

func (m *machine) files() consensus.FS { return crookedFiles{machine: m} }

// crookedFiles are the operating system's, but for their syncs.
type crookedFiles struct {
	consensus.OSFS
	machine *machine
}

// Create implements types.VFS.
func (c crookedFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := c.OSFS.Create(dir, name, size)
	return crookedFile{f, c.machine}, err
}

// OpenWriter implements types.VFS.
func (c crookedFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := c.OSFS.OpenWriter(dir, name)
	return crookedFile{f, c.machine}, err
}

type crookedFile struct {
	types.WritableFile
	machine *machine
}

// Sync implements types.WritableFile.
func (f crookedFile) Sync() error {
	if err := f.machine.sync(); err != nil {
		return err
	}
	return f.WritableFile.Sync()
}
