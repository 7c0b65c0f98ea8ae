package consensus

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"
)

// Names of the log stores, as they stand in a configuration file (raftLogStore).
const (
	LogStoreWAL  = "wal"  // github.com/hashicorp/raft-wal: one sync for each append. The default.
	LogStoreBolt = "bolt" // github.com/hashicorp/raft-boltdb: a B+tree, two syncs for each append.
	// LogStoreMemory keeps everything in Config.Memory. No file can name it: it
	// is for tests inside one process.
	LogStoreMemory = "memory"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	// maxEntryBytes bounds one encoded log entry. raft-wal writes but cannot
	// read back a record above 64 MiB, so 60 MiB leaves room for its framing.
	maxEntryBytes = 60 * mib
	// maxBatchBytes is the cap of Config.MaxBatchBytes: Raft's documentation
	// discourages entries above 512 KiB because they delay heartbeats.
	maxBatchBytes = 512 * kib
	// minSegmentBytes is the smallest log segment that is worth a file.
	minSegmentBytes = 256 * kib
)

// Config says where a node keeps its data and how it behaves. Nothing that the
// state machine applies may depend on it. Start from DefaultConfig.
type Config struct {
	// DataDir holds zooraft/ with the lock, the stable store and the snapshots. Required.
	DataDir string
	// LogDir holds zooraft/log-wal or zooraft/log-bolt; empty means DataDir.
	// It is zoo.cfg's dataLogDir.
	LogDir string
	// ServerID is zoo.cfg's myid, 0 to 255; 0 for a server alone, which a member may be too.
	ServerID int
	// LogStore is LogStoreWAL or LogStoreBolt. An existing directory refuses the other one.
	LogStore string

	// Memory holds the data of LogStoreMemory, and is nil with the others. Then
	// DataDir and LogDir are not used.
	Memory *Memory

	// Peers is the configured membership, this server included. Empty means a
	// server alone; then the fields below are not used.
	Peers []Peer
	// MembershipIsSet says that Peers is only where to find the others, and that
	// SetMembership tells what is wanted: before its first call a leader leaves
	// Raft's configuration as it is. Default false: Peers is what is wanted.
	MembershipIsSet bool
	// PeerListen is host:port of the peer port, as net.Listen takes it, or several
	// of these with bars between.
	PeerListen string
	// PeerListener is the open peer port instead of PeerListen, for servers in
	// one process: ports are taken first and the membership made of them. The
	// node closes it. Default nil.
	PeerListener net.Listener
	// PeerDial opens a connection to another server, whose Address is then one
	// of its addresses. Default: TCP. A test that cuts servers off hands in its own.
	PeerDial func(to Peer, timeout time.Duration) (net.Conn, error)
	// StreamTimeout is how long a peer stream may be silent. Default 4 s,
	// at least 100 ms; the server derives it from syncLimit and tickTime.
	StreamTimeout time.Duration

	// SnapCount is the number of applied commands after which a snapshot is
	// taken: a random number in (SnapCount/2, SnapCount], drawn anew each
	// time. Default 100000 and minimum 2, both ZooKeeper's.
	SnapCount int
	// SnapSizeLimitBytes does the same for the bytes of applied commands.
	// Default 4 GiB, ZooKeeper's snapSizeLimitInKb; 0 or less switches it off.
	SnapSizeLimitBytes int64
	// SnapRetainCount is the number of snapshots that are kept, with the log
	// back to the oldest of them. Default and minimum 3, ZooKeeper's.
	SnapRetainCount int
	// SnapSyncBytes is the number of bytes after which a snapshot being
	// written is synced. Default 4 MiB: measured, without it the last sync
	// stalls commits for up to half a second per GB.
	SnapSyncBytes int

	// SegmentBytes is the size of a preallocated segment of the wal log store.
	// Default 64 MiB, ZooKeeper's preAllocSize; 256 KiB to 1 GiB. A small disk
	// lowers it to a sixteenth of the disk.
	SegmentBytes int

	// MaxBatchBytes bounds the commands packed into one entry. Default and cap
	// 512 KiB; a larger single command makes an entry alone.
	MaxBatchBytes int
	// MaxBatchCommands bounds their number. Default 1024, 1 to 65536.
	MaxBatchCommands int
	// InFlight is the number of entries that may be on their way at once, 1 or 2.
	InFlight int
	// MaxQueueCommands and MaxQueueBytes bound what waits to be packed; beyond
	// them Propose returns ErrQueueFull. Defaults 100000 and 64 MiB.
	MaxQueueCommands int
	MaxQueueBytes    int
	// LogCacheBytes bounds the cache of recent entries that replication reads
	// from. Default 16 MiB; at most 1 MiB of it is used by a server alone.
	LogCacheBytes int

	// ElectionTimeout is the one time from which Raft's four are derived; see
	// timeouts. Default 1 s: with 400 ms, leaders on a machine of two cores
	// under several loads at once lost their lease. A leader whose process dies
	// is replaced without waiting for it (hurry), and so is one that is missing
	// when all servers start (resume); a stopped one, or one that is cut off, in
	// one to two of these. Ten heartbeats a second for each follower at 1 s are
	// most of what an idle ensemble does, so the server derives it from tickTime.
	// At least 20 ms.
	ElectionTimeout time.Duration
	// DiskFullPatience is how long a proposal may hang on a full disk before
	// its fate is reported as unknown. Default 2 s.
	DiskFullPatience time.Duration
	// DiskProbeInterval is the pause between looks for space. Default 250 ms.
	DiskProbeInterval time.Duration
	// DiskStallLimit is how long a leader's append may take before it gives way
	// to the others. Default 4 s, at least 20 ms; the server derives it from
	// syncLimit and tickTime.
	DiskStallLimit time.Duration
	// CloseTimeout bounds Close. Default 10 s.
	CloseTimeout time.Duration

	// CommandLevels tells the command level that is in force in the state
	// machine, and the highest that it supports; see level.go. It is called from
	// any goroutine and may not block. Default: 1 and 1.
	CommandLevels func() (inForce, supports int)
	// Stamp gives the leader's time in Unix milliseconds and the switch bits
	// for the entry being packed. It may not block; one goroutine at a time
	// calls it, often one that is in Propose. Default: the machine's clock and no
	// bits.
	Stamp func() (timeMillis int64, flags uint32)
	// Pack adds a command to dst in the form in which the wal log store is to hold
	// it; Unpack adds the command that was packed. A log is to be opened with the
	// Unpack of the Pack that it was written with, or it is refused as corrupt.
	// Both are called from any goroutine. Default: the command as it is.
	Pack   func(dst, command []byte) []byte
	Unpack func(dst, packed []byte) ([]byte, error)
	// Now dates snapshots and durations in messages. Default time.Now.
	Now func() time.Time
	// RandInt64N returns a number in [0, n). It must be safe for use from
	// several goroutines. Default math/rand/v2.
	RandInt64N func(n int64) int64
	// FS is the file layer of the wal log store. Default: the operating system.
	FS FS
	// BoltSynced is called when a change of the bolt log has reached the disk,
	// whose files bbolt opens itself: it may block, or fail the change, as FS may
	// in a sync of the wal log. Only tests set it. Default nil.
	BoltSynced func() error
	// Refuse is asked about each entry before Raft is; with an error the entry
	// is lost as Raft can lose one. Only tests set it. Default nil.
	Refuse func() error
	// Observe is told what the log costs. Default: nothing is called.
	Observe Observer
	// Logger receives this room's messages, and Raft's own from the level
	// warning up. Default slog.Default().
	Logger *slog.Logger
}

// DefaultConfig returns the defaults for a data directory.
func DefaultConfig(dataDir string) Config {
	return Config{
		DataDir:            dataDir,
		LogStore:           LogStoreWAL,
		SnapCount:          100_000,
		SnapSizeLimitBytes: 4 << 30,
		SnapRetainCount:    3,
		SnapSyncBytes:      4 * mib,
		SegmentBytes:       64 * mib,
		MaxBatchBytes:      maxBatchBytes,
		MaxBatchCommands:   1024,
		InFlight:           2,
		MaxQueueCommands:   100_000,
		MaxQueueBytes:      64 * mib,
		LogCacheBytes:      16 * mib,
		ElectionTimeout:    time.Second,
		DiskFullPatience:   2 * time.Second,
		DiskProbeInterval:  250 * time.Millisecond,
		CloseTimeout:       10 * time.Second,
		DiskStallLimit:     4 * time.Second,
		StreamTimeout:      4 * time.Second,
		PeerDial: func(to Peer, timeout time.Duration) (net.Conn, error) {
			return net.DialTimeout("tcp", to.Address, timeout)
		},
		CommandLevels: func() (int, int) { return 1, 1 },
		Stamp:         func() (int64, uint32) { return time.Now().UnixMilli(), 0 },
		Pack:          func(dst, command []byte) []byte { return append(dst, command...) },
		Unpack:        func(dst, packed []byte) ([]byte, error) { return append(dst, packed...), nil },
		Now:           time.Now,
		RandInt64N:    rand.Int64N,
		FS:            OSFS{},
		Logger:        slog.Default(),
	}
}

// Validate checks every field and the relations between them.
func (c Config) Validate() error {
	switch {
	case c.LogStore == LogStoreMemory && c.Memory != nil:
	case c.LogStore == LogStoreMemory || c.Memory != nil:
		return fmt.Errorf("%w: LogStore %q and Memory belong together", ErrInvalidConfig, LogStoreMemory)
	case c.DataDir == "":
		return fmt.Errorf("%w: DataDir is empty", ErrInvalidConfig)
	case c.LogStore != LogStoreWAL && c.LogStore != LogStoreBolt:
		return fmt.Errorf("%w: LogStore is %q, want %q or %q", ErrInvalidConfig, c.LogStore, LogStoreWAL, LogStoreBolt)
	}
	if _, ok := c.peer(c.ServerID); !ok && !c.alone() {
		return fmt.Errorf("%w: server %d is not among the peers", ErrInvalidConfig, c.ServerID)
	}
	if c.Stamp == nil || c.Now == nil || c.RandInt64N == nil || c.FS == nil || c.Logger == nil || c.PeerDial == nil || c.CommandLevels == nil || c.Pack == nil || c.Unpack == nil {
		return fmt.Errorf("%w: CommandLevels, Stamp, Pack, Unpack, Now, RandInt64N, FS, PeerDial and Logger must be set", ErrInvalidConfig)
	}
	ranges := []struct {
		name      string
		value     int64
		low, high int64
	}{
		{"ServerID", int64(c.ServerID), 0, 254},
		{"SnapCount", int64(c.SnapCount), 2, 1 << 40},
		{"SnapRetainCount", int64(c.SnapRetainCount), 3, 1 << 20},
		{"SnapSyncBytes", int64(c.SnapSyncBytes), 64 * kib, 1 << 30},
		{"SegmentBytes", int64(c.SegmentBytes), minSegmentBytes, 1 << 30},
		{"MaxBatchBytes", int64(c.MaxBatchBytes), 1, maxBatchBytes},
		{"MaxBatchCommands", int64(c.MaxBatchCommands), 1, 65536},
		{"InFlight", int64(c.InFlight), 1, 2},
		{"MaxQueueCommands", int64(c.MaxQueueCommands), 1, 1 << 30},
		{"MaxQueueBytes", int64(c.MaxQueueBytes), 1, 1 << 40},
		{"LogCacheBytes", int64(c.LogCacheBytes), 0, 1 << 40},
		{"ElectionTimeout", int64(c.ElectionTimeout), int64(20 * time.Millisecond), int64(time.Hour)},
		{"DiskFullPatience", int64(c.DiskFullPatience), 1, int64(time.Hour)},
		{"DiskProbeInterval", int64(c.DiskProbeInterval), 1, int64(time.Hour)},
		{"DiskStallLimit", int64(c.DiskStallLimit), int64(20 * time.Millisecond), int64(time.Hour)},
		{"CloseTimeout", int64(c.CloseTimeout), 1, int64(time.Hour)},
		{"StreamTimeout", int64(c.StreamTimeout), int64(100 * time.Millisecond), int64(time.Hour)},
	}
	for _, r := range ranges {
		if r.value < r.low || r.value > r.high {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, r.name, r.value, r.low, r.high)
		}
	}
	return nil
}

// timeouts are Raft's four times. The library works only if
//
//	heartbeat gap < lease ≤ heartbeat ≤ election
//
// (hashicorp/raft#604; it sends heartbeats at a tenth of the heartbeat
// timeout), so all come from Config.ElectionTimeout here and nowhere else.
type timeouts struct {
	heartbeat time.Duration // a follower without contact for one to two of these campaigns
	election  time.Duration // a candidate without a majority for one to two of these starts over
	lease     time.Duration // a leader without a majority for this long steps down
	commit    time.Duration // an idle leader appends nothing, to tell commits, after one to two of these: a note of ours may have been lost
}

func (c Config) timeouts() timeouts {
	return timeouts{
		heartbeat: c.ElectionTimeout,
		election:  c.ElectionTimeout,
		lease:     c.ElectionTimeout,
		commit:    c.ElectionTimeout / 2,
	}
}

// cacheBytes is the limit of the log cache. A server alone replicates to nobody,
// and gets what it applies from the library, which has it in memory.
func (c Config) cacheBytes() int {
	if c.alone() {
		return min(c.LogCacheBytes, mib)
	}
	return c.LogCacheBytes
}

// logDir is the directory that holds zooraft/log-….
func (c Config) logDir() string {
	if c.LogDir == "" {
		return c.DataDir
	}
	return c.LogDir
}
