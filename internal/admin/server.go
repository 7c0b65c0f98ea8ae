package admin

import (
	"net/netip"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

// Server is what this room asks of the running server. Calls may come from
// any goroutine and overlap; they return copies that the caller keeps, and
// may take the server's locks for a short time but never wait for the network
// or the disk, except DirSizes, which may list directories. All of them work
// in every phase, also before the first serving and after the stop.
type Server interface {
	// Serving tells whether clients are served. While it is false every word
	// except ruok, envi, isro, gtmk and stmk answers that the server is not
	// currently serving requests.
	Serving() bool

	// Health judges this server for probes. It works when not serving too:
	// that is its purpose.
	Health() Health

	// Stats returns the counters of srvr, stat and mntr.
	Stats() Stats

	// Connections lists the open client connections, those without a session
	// and the one that asks included, in no order.
	Connections() []Connection

	// ResetStats sets back what srst resets in the server itself: packet
	// counts, request latency and the response-size statistics (and on a
	// leader the proposal sizes). The metrics registry is reset by this room.
	ResetStats()

	// ResetConnectionStats sets back every connection's statistics (crst):
	// packets 0, last operation "NA", last cxid and zxid -1, latencies 0.
	ResetConnectionStats()

	// Conf returns the configuration in force.
	Conf() Conf

	// DirSizes returns the bytes held below the data and the log directory.
	DirSizes() (data, log int64)

	// Sessions tells when which session would expire, as this server knows it.
	Sessions() Sessions

	// Ephemerals lists the sessions that own ephemeral nodes, with sorted
	// paths, in the order of session ids.
	Ephemerals() []SessionPaths

	// ConnectionBuckets tells when which connection would be closed for
	// silence, soonest first.
	ConnectionBuckets() []ConnectionBucket

	// WatchSummary counts the data watch table only, as Apache's wchs does.
	WatchSummary() WatchSummary

	// WatchesBySession lists the data watch table by session (wchc), paths
	// and sessions sorted. Expensive with many watches.
	WatchesBySession() []SessionPaths

	// WatchesByPath lists the data watch table by path (wchp), paths and
	// sessions sorted. Expensive with many watches.
	WatchesByPath() []PathSessions

	// Watches lists the watches of every kind, by path, then session. Expensive
	// with many watches.
	Watches() []Watch

	// CountPaths counts the requests by path from now on, until the function
	// that it returns is called, which lists them, the most requested first.
	// Paths behind the first 100,000 different ones are left out.
	CountPaths() (end func() []PathLoad)

	// Quotas lists the namespaces (first path components) with a quota below
	// them. It walks the quota nodes only.
	Quotas() []NamespaceQuota

	// Digests returns the tree digests kept, oldest first (Apache keeps one
	// for every 128 zxids, at most 1024).
	Digests() []Digest
}

// Modes as srvr and mntr print them.
const (
	ModeStandalone = "standalone"
	ModeLeader     = "leader"
	ModeFollower   = "follower"
	ModeObserver   = "observer"
	ModeReadOnly   = "read-only"
)

// Health is the server's own judgement for probes.
type Health struct {
	// Live is false only when a restart would help: the server has given up.
	Live bool `json:"live"`
	// Ready is true while clients are served.
	Ready bool `json:"ready"`
	// Reason says in a sentence why Live or Ready is false; empty otherwise.
	Reason string `json:"reason"`
	// Mode is one of the Mode constants, empty before it is known.
	Mode string `json:"mode"`
	// Address is where clients connect, host:port, empty before it listens.
	Address string `json:"address"`
	// Zxid is the last one applied.
	Zxid proto.Zxid `json:"zxid"`
	// CommandLevel is that of the ensemble, as this server has applied it.
	CommandLevel int `json:"command_level"`
	// Warning says what an operator should mend although clients are served,
	// as server lines that differ; empty otherwise.
	Warning string `json:"warning,omitempty"`
}

// Sizes are the last, smallest and largest size in bytes; -1 when there was
// none since the last reset.
type Sizes struct {
	Last, Min, Max int64
}

// Stats are the server-wide numbers of srvr, stat and mntr.
type Stats struct {
	Mode     string // one of the Mode constants
	ReadOnly bool   // the read-only server of an ensemble without quorum

	// PacketsReceived and PacketsSent count frames since the start or the
	// last srst. A four-letter word counts as one received, and its answer,
	// unless empty, as one sent, as on Apache.
	PacketsReceived int64
	PacketsSent     int64

	Latency     metrics.SummaryValue // of answered requests, in milliseconds
	Connections int                  // open client connections
	Outstanding int64                // requests received and not yet answered
	LastZxid    proto.Zxid           // the last applied
	StartTime   time.Time            // with its monotonic reading, for uptime

	Responses Sizes // replies and watch events, in bytes without the length prefix
	Proposals Sizes // leader only: proposals, in bytes

	Nodes               int   // znodes, the four of /zookeeper and the root included
	DataSize            int64 // sum of path and data lengths in bytes (Apache's approximate data size)
	Ephemerals          int   // ephemeral nodes
	Watches             int   // watches of every kind
	GlobalSessions      int64
	LocalSessions       int64
	AuthFailed          int64   // failed auth packets
	NonMTLSLocal        int64   // connections from loopback without a client certificate
	NonMTLSRemote       int64   // connections from elsewhere without one
	OutstandingTLS      int64   // TLS handshakes under way
	ConnectionDropRatio float64 // probability with which the connection throttle drops, 0–1
	FsyncThreshold      int64   // syncs slower than the warning threshold

	// PeerState is mntr's peer_state in an ensemble ("leading - broadcast");
	// empty on a standalone server, which has no such line.
	PeerState string

	// QuorumSize counts the participants; 0 on a standalone server.
	QuorumSize int
	// ObserverMaster is the server that an observer follows, nil elsewhere.
	ObserverMaster *int64
	// Leader is what only a leader of an ensemble tells, nil elsewhere.
	Leader *LeaderStats
}

// LeaderStats are the gauges of a leader.
type LeaderStats struct {
	Learners           int // other servers that follow this one
	SyncedFollowers    int // those of them that vote, or are no members (yet)
	SyncedNonVoting    int // those that are no members
	SyncedObservers    int
	PendingSyncs       int
	UptimeMilliseconds int64 // since it began to serve as the leader
}

// Connection is one client connection, as stat and cons print it.
type Connection struct {
	Remote          netip.AddrPort
	Reading         bool  // false while the server has stopped reading from it
	WritePending    bool  // bytes wait for the socket
	Outstanding     int64 // requests received and not yet answered
	PacketsReceived int64
	PacketsSent     int64
	Secure          bool

	// Session is 0 before the session is established; everything below is
	// printed only when it is not.
	Session        proto.SessionID
	LastOp         string // Apache's short name, such as GETD (proto.OpCode.StatName); "NA" when none or failed before it was known
	Established    time.Time
	Timeout        time.Duration
	LastCxid       int64      // -1 when none
	LastZxid       proto.Zxid // of the last reply; -1 when none
	LastResponseMS int64      // monotonic milliseconds of the last reply; 0 when none
	LastLatencyMS  int64
	MinLatencyMS   int64 // 0 when none
	AvgLatencyMS   int64
	MaxLatencyMS   int64
}

// Conf is what conf prints.
type Conf struct {
	ClientPort        int
	SecureClientPort  int    // -1 when there is none
	DataDir           string // absolute; Apache prints its version-2 directory
	DataLogDir        string
	TickTime          time.Duration
	MaxClientCnxns    int
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	ListenBacklog     int // -1 when not configured
	ServerID          int64

	// Ensemble is nil on a standalone server.
	Ensemble *EnsembleConf
}

// EnsembleConf is what conf prints in addition in an ensemble.
type EnsembleConf struct {
	InitLimit, SyncLimit       int // ticks
	ElectionAlg                int // 3, the only one left in ZooKeeper
	ElectionPorts, QuorumPorts []int
	PeerType                   int    // 0 participant, 1 observer
	Membership                 string // the server lines and version=, without a last newline
	ReadOnly                   bool   // without quorum: the membership is not printed
}

// Sessions is the first part of dump. A server that runs the expiry clock
// (standalone or leader) fills Buckets; a follower fills Global.
type Sessions struct {
	Buckets []SessionBucket
	// Follower selects the follower's form, with Global.
	Follower bool
	Global   []SessionTimeout // in the order of ids
	// Local holds this server's local sessions when they are enabled, else nil.
	Local []SessionBucket
}

// SessionBucket holds the sessions that expire at the same tick.
type SessionBucket struct {
	Expire time.Time
	IDs    []proto.SessionID
}

// SessionTimeout is one session and its negotiated timeout.
type SessionTimeout struct {
	ID      proto.SessionID
	Timeout time.Duration
}

// ConnectionBucket holds the connections that would be closed at the same
// tick.
type ConnectionBucket struct {
	Expire      time.Time
	Connections []BucketConnection
}

// BucketConnection names a connection in a bucket.
type BucketConnection struct {
	Remote  netip.AddrPort
	Session proto.SessionID // 0 when none
}

// SessionPaths is one session with the paths of its ephemerals or watches.
type SessionPaths struct {
	Session proto.SessionID
	Paths   []string
}

// PathSessions is one path with the sessions that watch it.
type PathSessions struct {
	Path     string
	Sessions []proto.SessionID
}

// WatchSummary is what wchs prints.
type WatchSummary struct {
	Connections int // connections with at least one data watch
	Paths       int // paths with at least one data watch
	Watches     int // (connection, path) pairs
}

// NamespaceQuota sums up the quotas below one first path component, as mntr's
// quota gauges do: of a limit the hard one counts, or the soft one where there
// is no hard one (-1 when neither is set), and usage is what the stat nodes
// say.
type NamespaceQuota struct {
	Namespace              string // without the leading slash
	CountLimit, BytesLimit int64
	CountUsage, BytesUsage int64
	HasLimit, HasUsage     bool // false: the gauge has no line for this namespace
}

// Digest is the tree digest after a zxid.
type Digest struct {
	Zxid    proto.Zxid
	Version int // of the digest's definition; Apache's is 2
	Digest  uint64
}

// PathLoad is how often a path was asked for.
type PathLoad struct {
	Path   string `json:"path"`
	Reads  int64  `json:"reads"`
	Writes int64  `json:"writes"`
}

// Watch is one session's watch on one path.
type Watch struct {
	Path    string
	Session proto.SessionID
	// Kind is "data" or "children" for one that fires once, else "persistent"
	// or "recursive".
	Kind string
}
