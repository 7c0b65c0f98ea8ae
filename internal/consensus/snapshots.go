package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

/*
A snapshot is a directory under snapshots/, named by index, term and a number
that makes it unique, all in decimal:

	snapshots/00000000000000104213-00000000000000000007-0000/
	    state   what the state machine wrote, byte for byte
	    meta    one record: index, term, configuration, size, a checksum for
	            each chunk of state

It is written under a name with .tmp and renamed when both files are synced, so
a name without .tmp is complete unless its bits have changed since. Checksums
are by chunk so that Restore never sees a byte that was not checked: a broken
snapshot leaves the state machine untouched and the next older one is tried.
*/
const (
	snapshotStateName = "state"
	snapshotMetaName  = "meta"
	snapshotChunk     = mib
)

// snapshotMeta is the record in the meta file.
type snapshotMeta struct {
	Index              uint64
	Term               uint64
	Configuration      []byte // as raft.EncodeConfiguration writes it
	ConfigurationIndex uint64
	Size               int64
	ChunkBytes         int
	ChunkSums          []uint32
	TakenMillis        int64 // when, by this server's clock; for people

	name string
}

func (m *snapshotMeta) raft() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version:            raft.SnapshotVersionMax,
		ID:                 m.name,
		Index:              m.Index,
		Term:               m.Term,
		Configuration:      raft.DecodeConfiguration(m.Configuration),
		ConfigurationIndex: m.ConfigurationIndex,
		Size:               m.Size,
	}
}

// snapshotKeeper is Raft's snapshot store with what the rest of the room asks
// of it.
type snapshotKeeper interface {
	raft.SnapshotStore
	bounds() (oldest, newest uint64)
	keepFrom() (uint64, bool)
	newestIndex() uint64
	openedIndex() uint64
	dropBefore(index uint64)
	setAside(cause error)
	allSetAside() bool
}

var _ snapshotKeeper = (*snapshotStore)(nil)

// snapshotStore is Raft's snapshot store. The library's FileSnapshotStore is
// refused: it syncs only at the end, leaves its meta file unchecked, and counts
// a broken snapshot among those it keeps.
type snapshotStore struct {
	dir       string
	retain    int
	syncBytes int
	logger    *slog.Logger
	now       func() time.Time
	saved     func(index, term uint64) // called when a snapshot is durable
	observe   *Observer                // may be nil
	stop      <-chan struct{}          // ends a snapshot that is being written

	mu   sync.Mutex
	good []*snapshotMeta // guarded by mu; newest first; not known to be broken
	// opened is the snapshot that Open was called for last, and spoiled says
	// that one could not be restored. Guarded by mu.
	opened  string
	spoiled bool
}

// openSnapshots reads the directory. Left-overs are removed; a snapshot whose
// meta record is bad is set aside at once, a bad state only when it is read.
func openSnapshots(dir string, retain, syncBytes int, logger *slog.Logger, now func() time.Time) (*snapshotStore, error) {
	s := &snapshotStore{dir: dir, retain: retain, syncBytes: syncBytes, logger: logger, now: now}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), tempSuffix):
			if err := os.RemoveAll(path); err != nil {
				return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
			}
		case !e.IsDir(): // not ours
		default:
			m, err := readSnapshotMeta(path)
			if err != nil {
				s.logger.Error("a snapshot is broken and will not be used", "snapshot", path, "error", err)
				continue
			}
			s.good = append(s.good, m)
		}
	}
	slices.SortFunc(s.good, func(a, b *snapshotMeta) int { return strings.Compare(b.name, a.name) })
	return s, nil
}

func snapshotName(index, term uint64, serial int) string {
	return fmt.Sprintf("%020d-%020d-%04d", index, term, serial)
}

func readSnapshotMeta(path string) (*snapshotMeta, error) {
	data, err := os.ReadFile(filepath.Join(path, snapshotMetaName))
	if err != nil {
		return nil, err
	}
	m := &snapshotMeta{name: filepath.Base(path)}
	if err := openRecord("snapshot", data, m); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(m.name, snapshotName(m.Index, m.Term, 0)[:41]) {
		return nil, fmt.Errorf("%w: the snapshot is of entry %d, term %d, which is not its name", ErrCorrupt, m.Index, m.Term)
	}
	info, err := os.Stat(filepath.Join(path, snapshotStateName))
	if err != nil {
		return nil, err
	}
	if info.Size() != m.Size {
		return nil, fmt.Errorf("%w: state has %d bytes, written were %d", ErrCorrupt, info.Size(), m.Size)
	}
	return m, nil
}

// List implements raft.SnapshotStore.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*raft.SnapshotMeta, 0, len(s.good))
	for _, m := range s.good {
		list = append(list, m.raft())
	}
	return list, nil
}

// bounds returns the oldest and newest snapshot's index, 0 for none.
func (s *snapshotStore) bounds() (oldest, newest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.good) == 0 {
		return 0, 0
	}
	return s.good[len(s.good)-1].Index, s.good[0].Index
}

// newestIndex is the index of the newest snapshot, 0 for none.
func (s *snapshotStore) newestIndex() uint64 {
	_, newest := s.bounds()
	return newest
}

// keepFrom is the index after which the log must be kept. Until there are as
// many snapshots as are to be kept, that is the whole log: one snapshot alone
// is no reason to give up the entries it covers.
func (s *snapshotStore) keepFrom() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.good) < s.retain {
		return 0, false
	}
	return s.good[s.retain-1].Index, true
}

// Open implements raft.SnapshotStore. The reader fails before it yields a byte
// of a chunk that does not have its checksum.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.good, func(m *snapshotMeta) bool { return m.name == id })
	var m *snapshotMeta
	if i >= 0 {
		m = s.good[i]
		s.opened = id
	}
	s.mu.Unlock()
	if m == nil {
		return nil, nil, fmt.Errorf("snapshot %s: %w", id, os.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(s.dir, id, snapshotStateName))
	if err != nil {
		s.setAside(err)
		return nil, nil, err
	}
	return m.raft(), &snapshotReader{meta: m, file: f}, nil
}

// openedIndex is the index of the snapshot that was opened last.
func (s *snapshotStore) openedIndex() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.good {
		if m.name == s.opened {
			return m.raft().Index
		}
	}
	return 0
}

// setAside takes the snapshot that was opened last, and could not be restored,
// out of use. Its files stay for whoever wants to look, until it would have
// been removed anyway.
func (s *snapshotStore) setAside(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logger.Error("a snapshot is broken; the next older one and the log are used instead",
		"snapshot", filepath.Join(s.dir, s.opened), "error", cause)
	s.dropLocked(func(m *snapshotMeta) bool { return m.name == s.opened })
	s.spoiled = true
}

// allSetAside tells whether there were snapshots and none is left.
func (s *snapshotStore) allSetAside() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoiled && len(s.good) == 0
}

// dropBefore forgets snapshots that the log does not reach back to: they lie
// before a snapshot that was installed, and cannot be followed by anything.
func (s *snapshotStore) dropBefore(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(func(m *snapshotMeta) bool { return m.Index < index })
}

func (s *snapshotStore) dropLocked(drop func(*snapshotMeta) bool) {
	s.good = slices.DeleteFunc(slices.Clone(s.good), drop)
}

// reapLocked removes what is older than the snapshots that are kept, broken
// and renamed ones included.
func (s *snapshotStore) reapLocked() error {
	if len(s.good) <= s.retain {
		return nil
	}
	oldest := s.good[s.retain-1].name
	s.good = s.good[:s.retain]
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var failures []error
	for _, e := range entries {
		if e.Name() < oldest && !strings.HasSuffix(e.Name(), tempSuffix) {
			// Renamed first: a half removed snapshot must not look complete.
			path := filepath.Join(s.dir, e.Name())
			if err := os.Rename(path, path+tempSuffix); err != nil {
				failures = append(failures, err)
				continue
			}
			failures = append(failures, os.RemoveAll(path+tempSuffix))
		}
	}
	return errors.Join(failures...)
}
