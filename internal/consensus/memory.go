package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

/*
A node in memory differs from one on a disk in its stores and in nothing else:
the same log store with its checksums and its mark stands on an engine that is
a map, the stable store on a value, the snapshots on byte slices. What was
stored counts as synced at once. It exists for tests inside one process, so no
configuration file can ask for it.

The refused design is to leave Raft out for such servers: what a test then
passes would not be what production runs.
*/

// Memory is what a node in memory keeps instead of files. It outlives the
// node, so that a server can be stopped and started again in one process. One
// node uses it at a time.
type Memory struct {
	mu     sync.Mutex
	used   bool        // guarded by mu
	stable []byte      // guarded by mu; nil until the first start
	marked *memoryFile // guarded by mu; nil until the first start

	log       *raft.InmemStore
	snapshots *memorySnapshots
}

// NewMemory returns an empty one.
func NewMemory() *Memory {
	return &Memory{log: raft.NewInmemStore(), snapshots: &memorySnapshots{}}
}

// take makes a node its only user.
func (m *Memory) take() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used {
		return fmt.Errorf("%w: the memory is used by another server", ErrLocked)
	}
	m.used = true
	return nil
}

func (m *Memory) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = false
}

// mark returns the mark, a new one if the node has not formed yet.
func (m *Memory) mark(fresh bool) (*mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fresh || m.marked == nil {
		m.marked = &memoryFile{}
		return newMark(m.marked)
	}
	return readMark(m.marked, "the mark in memory")
}

// memoryStable is the stable store's one value.
type memoryStable struct{ memory *Memory }

// Set implements stableFile.
func (s memoryStable) Set(_, value []byte) error {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.stable = bytes.Clone(value)
	return nil
}

// Get implements stableFile.
func (s memoryStable) Get([]byte) ([]byte, error) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.memory.stable == nil {
		return nil, errKeyNotFound
	}
	return bytes.Clone(s.memory.stable), nil
}

// Close implements stableFile.
func (memoryStable) Close() error { return nil }

// openMemoryIdentity is openIdentity for a node in memory.
func (n *Node) openMemoryIdentity() error {
	file := memoryStable{n.cfg.Memory}
	if _, err := file.Get(nil); err != nil {
		data, err := sealRecord("stable", n.newIdentity())
		if err == nil {
			err = file.Set(nil, data)
		}
		if err != nil {
			return err
		}
	}
	rec, err := readIdentity(file)
	if err != nil {
		return err
	}
	if !rec.Formed {
		// A first start that did not get to its first entry begins anew.
		n.cfg.Memory.log = raft.NewInmemStore()
	}
	n.stable = &stableStore{path: "memory", disk: n.disk, db: file, rec: rec}
	if n.id = rec; rec.ServerID != n.cfg.ServerID {
		return fmt.Errorf("%w: the memory was written by server %d, this is server %d", ErrIdentityMismatch, rec.ServerID, n.cfg.ServerID)
	}
	return nil
}

// memoryEngine is the log as a map.
type memoryEngine struct{ *raft.InmemStore }

func (memoryEngine) confirm() error { return nil }

func (memoryEngine) room() int { return 0 }

// Close implements io.Closer.
func (memoryEngine) Close() error { return nil }

// memoryFile is the file of the mark. Only the mark calls it, under its lock.
type memoryFile struct{ data []byte }

// WriteAt implements io.WriterAt.
func (f *memoryFile) WriteAt(b []byte, at int64) (int, error) {
	if end := int(at) + len(b); end > len(f.data) {
		f.data = append(f.data, make([]byte, end-len(f.data))...)
	}
	return copy(f.data[at:], b), nil
}

// ReadAt implements io.ReaderAt.
func (f *memoryFile) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Sync implements types.WritableFile.
func (*memoryFile) Sync() error { return nil }

// Close implements io.Closer.
func (*memoryFile) Close() error { return nil }

// memorySnapshots is Raft's snapshot store in memory. It keeps the newest one.
type memorySnapshots struct {
	mu      sync.Mutex
	serial  int                // guarded by mu
	meta    *raft.SnapshotMeta // guarded by mu; of the newest, nil for none
	state   []byte             // guarded by mu; never written after it was stored
	spoiled bool               // guarded by mu; the newest could not be restored
}

var _ snapshotKeeper = (*memorySnapshots)(nil)

// Create implements raft.SnapshotStore.
func (s *memorySnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return &memorySink{store: s, meta: raft.SnapshotMeta{
		Version: version, ID: snapshotName(index, term, s.serial), Index: index, Term: term,
		Configuration: configuration.Clone(), ConfigurationIndex: configurationIndex,
	}}, nil
}

// List implements raft.SnapshotStore.
func (s *memorySnapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return nil, nil
	}
	return []*raft.SnapshotMeta{s.meta}, nil
}

// Open implements raft.SnapshotStore.
func (s *memorySnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil || s.meta.ID != id {
		return nil, nil, fmt.Errorf("snapshot %s: %w", id, os.ErrNotExist)
	}
	return s.meta, io.NopCloser(bytes.NewReader(s.state)), nil
}

func (s *memorySnapshots) bounds() (oldest, newest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return 0, 0
	}
	return s.meta.Index, s.meta.Index
}

func (s *memorySnapshots) newestIndex() uint64 {
	_, newest := s.bounds()
	return newest
}

func (s *memorySnapshots) keepFrom() (uint64, bool) {
	index, _ := s.bounds()
	return index, index > 0
}

func (s *memorySnapshots) dropBefore(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta != nil && s.meta.Index < index {
		s.meta, s.state = nil, nil
	}
}

// openedIndex is the index of the only snapshot that can have been opened.
func (s *memorySnapshots) openedIndex() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return 0
	}
	return s.meta.Index
}

func (s *memorySnapshots) setAside(error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta, s.state, s.spoiled = nil, nil, true
}

func (s *memorySnapshots) allSetAside() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoiled && s.meta == nil
}

// memorySink is one snapshot being written, by one goroutine.
type memorySink struct {
	store *memorySnapshots
	meta  raft.SnapshotMeta
	state bytes.Buffer
	done  bool
}

// ID implements raft.SnapshotSink.
func (s *memorySink) ID() string { return s.meta.ID }

// Write implements raft.SnapshotSink.
func (s *memorySink) Write(b []byte) (int, error) {
	if s.done {
		return 0, errors.New("consensus: a snapshot that is closed is written")
	}
	return s.state.Write(b)
}

// Close implements raft.SnapshotSink.
func (s *memorySink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	s.meta.Size = int64(s.state.Len())
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.meta == nil || s.store.meta.Index <= s.meta.Index {
		s.store.meta, s.store.state = &s.meta, slices.Clip(s.state.Bytes())
	}
	return nil
}

// Cancel implements raft.SnapshotSink.
func (s *memorySink) Cancel() error {
	s.done = true
	return nil
}
