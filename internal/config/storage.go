package config

import (
	"path/filepath"
	"time"
)

// LogStore names a store for the Raft log.
type LogStore string

// The log stores.
const (
	// LogStoreWAL is a write-ahead log of segment files; one sync for a write.
	LogStoreWAL LogStore = "wal"
	// LogStoreBolt is a B+tree file; two syncs for a write.
	LogStoreBolt LogStore = "bolt"
)

// ownDir is the directory below dataDir and dataLogDir that is ours. Apache's
// is version-2, and we never write there.
const ownDir = "zooraft"

// Storage says where data is kept and when a snapshot is taken.
type Storage struct {
	// DataDir holds snapshots and myid. Required in a zoo.cfg; ./zooraft-data
	// without one.
	DataDir string
	// LogDir holds the log. Default: DataDir (Apache's dataLogDir).
	LogDir string
	// AutoCreate makes missing directories. Default true (Apache's
	// datadir.autocreate).
	AutoCreate bool
	// LogStore is the store of the Raft log. Default LogStoreWAL. Ours
	// (raftLogStore).
	LogStore LogStore
	// SnapCount is the number of writes after which a snapshot is taken; each
	// server draws its own number from half of it to all of it. At least 2.
	// Default 100000 (Apache).
	SnapCount int
	// SnapSizeLimit is the growth of the log in bytes after which a snapshot is
	// taken, drawn the same way; 0 or less turns it off. Default 4 GiB (Apache's
	// snapSizeLimitInKb).
	SnapSizeLimit int64
	// SnapRetainCount is the number of snapshots kept, at least 3. Default 3
	// (Apache's autopurge.snapRetainCount). Applied after each new snapshot,
	// whatever autopurge.purgeInterval says.
	SnapRetainCount int
	// PreAllocSize is the step in bytes by which a log file grows. Default
	// 64 MiB (Apache's preAllocSize).
	PreAllocSize int64
	// SnapshotCompression is "", "gz" or "snappy". Default "" (Apache's
	// snapshot.compression.method).
	SnapshotCompression string
	// LastZxidInSnapshot writes the last processed zxid behind a snapshot.
	// Default true (Apache's serializeLastProcessedZxid.enabled).
	LastZxidInSnapshot bool
	// Digest keeps a digest of the tree and writes it into snapshots. Default
	// true (Apache's digest.enabled).
	Digest bool
	// FsyncWarningThreshold is the time above which a sync of the log is logged.
	// Default 1 s (Apache's fsync.warningthresholdms).
	FsyncWarningThreshold time.Duration
}

// DefaultStorage returns Apache's defaults and ours.
func DefaultStorage() Storage {
	return Storage{
		AutoCreate:            true,
		LogStore:              LogStoreWAL,
		SnapCount:             100000,
		SnapSizeLimit:         4194304 * 1024,
		SnapRetainCount:       minSnapRetainCount,
		PreAllocSize:          65536 * 1024,
		LastZxidInSnapshot:    true,
		Digest:                true,
		FsyncWarningThreshold: time.Second,
	}
}

// minSnapRetainCount is the least number of snapshots Apache keeps.
const minSnapRetainCount = 3

// OwnDataDir is the directory of our snapshots and stable store.
func (s Storage) OwnDataDir() string { return filepath.Join(s.DataDir, ownDir) }

// OwnLogDir is the directory of our log.
func (s Storage) OwnLogDir() string { return filepath.Join(s.LogDir, ownDir) }

// Validate checks relations and ranges.
func (s Storage) Validate() error {
	switch {
	case s.DataDir == "":
		return invalid("dataDir", "is not set")
	case s.LogStore != LogStoreWAL && s.LogStore != LogStoreBolt:
		return invalid("raftLogStore", "%q is neither wal nor bolt", s.LogStore)
	case s.SnapCount < 2:
		return invalid("snapCount", "%d must be 2 or more", s.SnapCount)
	case s.SnapRetainCount < minSnapRetainCount:
		return invalid("autopurge.snapRetainCount", "%d must be %d or more", s.SnapRetainCount, minSnapRetainCount)
	}
	return nil
}
