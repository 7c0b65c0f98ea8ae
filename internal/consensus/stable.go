package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// identity is what a server must remember beside the log to know whether the
// log it finds is whole and its own.
type identity struct {
	// ClusterID is random, drawn when the ensemble was formed.
	ClusterID string
	// ServerID is Config.ServerID. Incarnation counts how often this server
	// was replaced by an empty one; both make up the Raft id.
	ServerID    int
	Incarnation uint64
	// Alone tells the data of a server alone from those of a member with the
	// number 0; nil in data of builds that did not say so.
	Alone *bool `json:",omitempty"`
	// LogStore names the store that holds the log, LogDir the directory it was
	// last seen in (for messages only: a volume may be mounted elsewhere).
	LogStore string
	LogDir   string
	// Formed is set once this server belongs to an ensemble: for a server
	// alone when the first log entry is durable, else just before the first
	// entry is written or taken. Before that nothing was ever acknowledged,
	// and a start begins anew.
	Formed bool
	// Superseded are the ensembles in whose place Recover has put this one.
	Superseded []string `json:",omitempty"`
	// Founders are the members that the ensemble was formed of, if this server
	// is one that formed it.
	Founders []member
	// Former is set while the data of a server alone become a member's or back:
	// the ServerID that Raft's configuration may still have.
	Former *int `json:",omitempty"`
	// Promised is the list of founders that this server has agreed to, while it
	// belongs to no ensemble (promise.go).
	Promised []member
	// FloorIndex and FloorTerm rise with each snapshot: a log and snapshots
	// that end before it have lost something.
	FloorIndex uint64
	FloorTerm  uint64
	// Raft holds Raft's own keys: term and vote.
	Raft map[string][]byte
}

// alone tells whether the data are those of a server alone.
func (i identity) alone() bool {
	if i.Alone != nil {
		return *i.Alone
	}
	return i.ServerID == 0
}

func (i identity) raftID() string { return fmt.Sprintf("%d-%d", i.ServerID, i.Incarnation) }

// stableKey is the one key in the stable store. All values are one record,
// because a missing key cannot be told from a value that was never set, and a
// lost vote is two leaders in one term.
var stableKey = []byte("zooraft")

// currentTermKey is the library's name for its term.
var currentTermKey = []byte("CurrentTerm")

// errKeyNotFound has the text that Raft compares with.
var errKeyNotFound = errors.New("not found")

// stableFile is what the stable store keeps its one record in.
type stableFile interface {
	Set(key, value []byte) error
	Get(key []byte) ([]byte, error)
	Close() error
}

// stableStore is Raft's stable store and the identity, in raft-boltdb.
type stableStore struct {
	path string
	disk *disk
	// patient is set once Open is through: before that a failed write fails
	// the start, after it nobody could be told.
	patient atomic.Bool

	mu  sync.Mutex
	db  stableFile // guarded by mu; nil when closed
	rec identity   // guarded by mu; what is on disk
}

// stableOptions rebuild the free list at each start: the stored one has no
// checksum, and a wrong one makes bbolt overwrite pages that are in use.
var stableOptions = bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}

// createStable makes the file beside its place and renames it, so that it is
// either absent or complete.
func createStable(path string, rec identity) error {
	tmp := path + tempSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	options := stableOptions
	db, err := raftboltdb.New(raftboltdb.Options{Path: tmp, BoltOptions: &options})
	if err != nil {
		return fmt.Errorf("create %s: %w", tmp, err)
	}
	data, err := sealRecord("stable", rec)
	if err == nil {
		err = db.Set(stableKey, data)
	}
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

// openStable opens an existing file and checks its record.
func openStable(path string, d *disk) (*stableStore, error) {
	s := &stableStore{path: path, disk: d}
	if err := s.openLocked(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *stableStore) openLocked() error {
	options := stableOptions
	db, err := openBoltFile(filepath.Dir(s.path), s.path, false, &options)
	if err != nil {
		return err
	}
	rec, err := readIdentity(db)
	if err != nil {
		_ = db.Close()
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.db, s.rec = db, rec
	return nil
}

func readIdentity(db stableFile) (rec identity, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
		}
	}()
	data, err := db.Get(stableKey)
	if err != nil {
		return rec, fmt.Errorf("%w: the record cannot be read: %w", ErrCorrupt, err)
	}
	err = openRecord("stable", data, &rec)
	return rec, err
}

// identity returns the record as it is on disk.
func (s *stableStore) identity() identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.rec
	rec.Raft = maps.Clone(rec.Raft)
	return rec
}

// update changes the record durably.
func (s *stableStore) update(change func(*identity)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.rec
	rec.Raft = maps.Clone(rec.Raft)
	if rec.Raft == nil {
		rec.Raft = map[string][]byte{}
	}
	change(&rec)
	data, err := sealRecord("stable", rec)
	if err != nil {
		return err
	}
	if s.db == nil {
		return ErrStopped
	}
	if err := s.db.Set(stableKey, data); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.rec = rec
	return nil
}

// mustUpdate is update for Raft, which panics when its stable store fails: a
// full disk makes it wait, and after any other failure it never returns,
// because the node is being stopped and no answer would be true.
func (s *stableStore) mustUpdate(change func(*identity)) error {
	for {
		err := s.update(change)
		switch {
		case err == nil:
			s.disk.setFull(false)
			return nil
		case !s.patient.Load():
			return err
		case isNoSpace(err):
			s.disk.setFull(true)
			for isNoSpace(err) {
				if !s.disk.wait(stableRetry) {
					select {}
				}
				err = s.reopen()
			}
			if err != nil {
				_ = s.disk.fail(fmt.Errorf("%w: reopen: %w", ErrDiskFailed, err))
				select {}
			}
		default:
			_ = s.disk.fail(fmt.Errorf("%w: %w", ErrDiskFailed, err))
			select {}
		}
	}
}

// stableRetry is the pause before a full disk is tried again for a term or vote.
const stableRetry = 250 * time.Millisecond

func (s *stableStore) reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		_ = s.db.Close()
		s.db = nil
	}
	before := s.rec
	if err := s.openLocked(); err != nil {
		return err
	}
	if s.rec.ClusterID != before.ClusterID || s.rec.FloorIndex < before.FloorIndex {
		return fmt.Errorf("%w: %s changed while it was closed", ErrCorrupt, s.path)
	}
	return nil
}

// Set implements raft.StableStore.
func (s *stableStore) Set(key, value []byte) error {
	kept := append([]byte(nil), value...)
	return s.mustUpdate(func(i *identity) { i.Raft[string(key)] = kept })
}

// Get implements raft.StableStore.
func (s *stableStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.rec.Raft[string(key)]
	if !ok {
		return nil, errKeyNotFound
	}
	return append([]byte(nil), value...), nil
}

// SetUint64 implements raft.StableStore.
func (s *stableStore) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: stable value %s has %d bytes", ErrCorrupt, key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// close closes the file.
func (s *stableStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return err
}
