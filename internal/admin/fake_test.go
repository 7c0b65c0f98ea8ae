package admin

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

// fakeServer answers from fixed facts.
type fakeServer struct {
	stopped           bool
	health            Health
	stats             Stats
	connections       []Connection
	conf              Conf
	sessions          Sessions
	ephemerals        []SessionPaths
	buckets           []ConnectionBucket
	watches           []SessionPaths
	watchers          []PathSessions
	quotas            []NamespaceQuota
	digests           []Digest
	resets, connReset int
}

func (f *fakeServer) Serving() bool                         { return !f.stopped }
func (f *fakeServer) Health() Health                        { return f.health }
func (f *fakeServer) Stats() Stats                          { return f.stats }
func (f *fakeServer) Connections() []Connection             { return f.connections }
func (f *fakeServer) ResetStats()                           { f.resets++ }
func (f *fakeServer) ResetConnectionStats()                 { f.connReset++ }
func (f *fakeServer) Conf() Conf                            { return f.conf }
func (f *fakeServer) DirSizes() (data, log int64)           { return 478, 67108880 }
func (f *fakeServer) Sessions() Sessions                    { return f.sessions }
func (f *fakeServer) Ephemerals() []SessionPaths            { return f.ephemerals }
func (f *fakeServer) ConnectionBuckets() []ConnectionBucket { return f.buckets }
func (f *fakeServer) WatchSummary() WatchSummary            { return WatchSummary{2, 3, 4} }
func (f *fakeServer) WatchesBySession() []SessionPaths      { return f.watches }
func (f *fakeServer) WatchesByPath() []PathSessions         { return f.watchers }
func (f *fakeServer) Watches() []Watch                      { return []Watch{{"/a", sessionA, "recursive"}} }
func (f *fakeServer) CountPaths() func() []PathLoad {
	return func() []PathLoad { return []PathLoad{{Path: "/a", Reads: 3, Writes: 1}} }
}
func (f *fakeServer) Quotas() []NamespaceQuota { return f.quotas }
func (f *fakeServer) Digests() []Digest        { return f.digests }

const (
	sessionA = proto.SessionID(0x100000cb10f0000)
	sessionB = proto.SessionID(0x100000cb10f0001)
)

// busyServer has the clients that a real 3.9.5 had when the texts of the tests
// were taken from it.
func busyServer() *fakeServer {
	address := netip.MustParseAddrPort
	latency := metrics.SummaryValue{Min: 0, Avg: 7, Max: 60, Count: 12, Sum: 84}
	early, late := time.Unix(1796035519, 0), time.Unix(1796035529, 0)
	return &fakeServer{
		stats: Stats{
			Mode: ModeStandalone, PacketsReceived: 37, PacketsSent: 35, Latency: latency, Connections: 4,
			LastZxid: 10, StartTime: time.Now(), Responses: Sizes{Last: 25, Min: 16, Max: 89},
			Proposals: Sizes{Last: 48, Min: 36, Max: 64}, Nodes: 9, GlobalSessions: 2,
		},
		connections: []Connection{
			{Remote: address("127.0.0.1:53650"), Reading: true, LastCxid: -1, LastZxid: -1},
			{
				Remote: address("127.0.0.1:53644"), Reading: true, PacketsReceived: 10, PacketsSent: 10,
				Session: sessionB, LastOp: "PING", Established: time.UnixMilli(1796035507674), Timeout: 20 * time.Second,
				LastCxid: 8, LastZxid: 8, LastResponseMS: 1410466, AvgLatencyMS: 3, MaxLatencyMS: 9,
			},
			{
				Remote: address("[::1]:37768"), Reading: true, WritePending: true, Outstanding: 2,
				Session: sessionA, LastOp: "NA", Established: time.UnixMilli(1796035507649), Timeout: 10 * time.Second,
				LastCxid: -1, LastZxid: -1,
			},
			{Remote: address("[::ffff:127.0.0.1]:53670"), PacketsReceived: 1, LastCxid: -1, LastZxid: -1},
		},
		conf: Conf{
			ClientPort: 2181, SecureClientPort: -1, DataDir: "/data/zooraft", DataLogDir: "/log/zooraft",
			TickTime: 2 * time.Second, MaxClientCnxns: 60, MinSessionTimeout: 4 * time.Second,
			MaxSessionTimeout: 40 * time.Second, ListenBacklog: -1,
		},
		sessions: Sessions{Buckets: []SessionBucket{
			{early, []proto.SessionID{sessionA}}, {late, []proto.SessionID{sessionB}},
		}},
		ephemerals: []SessionPaths{{sessionA, []string{"/a/b"}}, {sessionB, []string{"/e2", "/e3"}}},
		buckets: []ConnectionBucket{
			{early, []BucketConnection{{address("127.0.0.1:53680"), 0}, {address("[::1]:37768"), sessionA}}},
			{late, []BucketConnection{{address("127.0.0.1:53644"), sessionB}}},
		},
		watches:  []SessionPaths{{sessionA, []string{"/a"}}, {sessionB, []string{"/a", "/nope"}}},
		watchers: []PathSessions{{"/a", []proto.SessionID{sessionA, sessionB}}, {"/nope", []proto.SessionID{sessionB}}},
		quotas: []NamespaceQuota{
			{Namespace: "a", CountLimit: 5, BytesLimit: -1, CountUsage: 2, BytesUsage: 2, HasLimit: true, HasUsage: true},
			{Namespace: "b", CountUsage: 1, BytesUsage: 7, HasUsage: true},
		},
		digests: []Digest{{0x80, 2, 222193709548}, {0x100, 2, 1<<64 - 5}},
	}
}

var testBuild = Build{Version: "0.1.0", Revision: "4c2f01ab99d0e3b7", Time: time.Unix(1796035507, 0)}

func newTestAdmin(server Server) *Admin {
	return New(Config{Allows: func(string) bool { return true }, Build: testBuild, Zone: time.UTC}, server, metrics.NewRegistry())
}

// say returns the word's text as a client would see it.
func say(t *testing.T, a *Admin, name string, arg ...byte) string {
	t.Helper()
	word, ok := a.Word([4]byte([]byte(name)))
	if !ok {
		t.Fatalf("%q is no word", name)
	}
	var out strings.Builder
	if err := a.Execute(word, arg, &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String()
}
