package admin

import (
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// gauge is one gauge of mntr that comes from Stats.
type gauge struct {
	name, help string
	read       func(Stats) metrics.Value
}

func integer[N int | int64](n N) metrics.Value { return metrics.Int(int64(n)) }

// serverGauges are Apache's gauges of a server, standalone or not.
var serverGauges = []gauge{
	{"avg_latency", "Mean milliseconds from receipt to reply of a request.", func(s Stats) metrics.Value { return metrics.Float(s.Latency.Avg) }},
	{"max_latency", "Longest time in milliseconds from receipt to reply.", func(s Stats) metrics.Value { return integer(s.Latency.Max) }},
	{"min_latency", "Shortest time in milliseconds from receipt to reply.", func(s Stats) metrics.Value { return integer(s.Latency.Min) }},
	{"packets_received", "Frames received from clients.", func(s Stats) metrics.Value { return integer(s.PacketsReceived) }},
	{"packets_sent", "Frames sent to clients.", func(s Stats) metrics.Value { return integer(s.PacketsSent) }},
	{"num_alive_connections", "Open client connections.", func(s Stats) metrics.Value { return integer(s.Connections) }},
	{"outstanding_requests", "Requests received and not yet answered.", func(s Stats) metrics.Value { return integer(s.Outstanding) }},
	{"uptime", "Milliseconds since the server began to start.", func(s Stats) metrics.Value { return integer(time.Since(s.StartTime).Milliseconds()) }},
	{"znode_count", "Nodes in the tree.", func(s Stats) metrics.Value { return integer(s.Nodes) }},
	{"watch_count", "Watches of all kinds.", func(s Stats) metrics.Value { return integer(s.Watches) }},
	{"ephemerals_count", "Ephemeral nodes.", func(s Stats) metrics.Value { return integer(s.Ephemerals) }},
	{"approximate_data_size", "Bytes of all paths and data.", func(s Stats) metrics.Value { return integer(s.DataSize) }},
	{"global_sessions", "Sessions known to the whole ensemble.", func(s Stats) metrics.Value { return integer(s.GlobalSessions) }},
	{"local_sessions", "Sessions known to this server only.", func(s Stats) metrics.Value { return integer(s.LocalSessions) }},
	{"open_file_descriptor_count", "File descriptors in use by the process.", func(Stats) metrics.Value { return openDescriptors() }},
	{"max_file_descriptor_count", "File descriptors that the process may use.", func(Stats) metrics.Value { return maxDescriptors() }},
	{"connection_drop_probability", "Probability with which the connection throttle drops a connect request.", func(s Stats) metrics.Value { return metrics.Float(s.ConnectionDropRatio) }},
	{"last_client_response_size", "Bytes of the last reply to a read, -1 when there was none.", func(s Stats) metrics.Value { return integer(s.Responses.Last) }},
	{"max_client_response_size", "Bytes of the largest reply to a read, -1 when there was none.", func(s Stats) metrics.Value { return integer(s.Responses.Max) }},
	{"min_client_response_size", "Bytes of the smallest reply to a read, -1 when there was none.", func(s Stats) metrics.Value { return integer(s.Responses.Min) }},
	{"outstanding_tls_handshake", "TLS handshakes under way.", func(s Stats) metrics.Value { return integer(s.OutstandingTLS) }},
	{"auth_failed_count", "Failed authentications.", func(s Stats) metrics.Value { return integer(s.AuthFailed) }},
	{"non_mtls_remote_conn_count", "Connections from other hosts without a client certificate.", func(s Stats) metrics.Value { return integer(s.NonMTLSRemote) }},
	{"non_mtls_local_conn_count", "Connections from this host without a client certificate.", func(s Stats) metrics.Value { return integer(s.NonMTLSLocal) }},
}

// ensembleGauges are Apache's gauges of a server of an ensemble; those of a
// leader are left out elsewhere.
var ensembleGauges = []gauge{
	{"quorum_size", "Participants of the ensemble.", func(s Stats) metrics.Value {
		if s.QuorumSize == 0 {
			return metrics.Absent()
		}
		return integer(s.QuorumSize)
	}},
	{"observer_master_id", "Number of the server that this observer follows.", func(s Stats) metrics.Value {
		if s.ObserverMaster == nil {
			return metrics.Absent()
		}
		return integer(*s.ObserverMaster)
	}},
	ofLeader("learners", "Servers that follow this leader.", func(l *LeaderStats) int64 { return int64(l.Learners) }),
	ofLeader("synced_followers", "Servers in sync with this leader that are no observers.", func(l *LeaderStats) int64 { return int64(l.SyncedFollowers) }),
	ofLeader("synced_non_voting_followers", "Servers in sync with this leader that are no members.", func(l *LeaderStats) int64 { return int64(l.SyncedNonVoting) }),
	ofLeader("synced_observers", "Observers in sync with this leader.", func(l *LeaderStats) int64 { return int64(l.SyncedObservers) }),
	ofLeader("pending_syncs", "Syncs that wait at the leader: none, they go through the log.", func(l *LeaderStats) int64 { return int64(l.PendingSyncs) }),
	ofLeader("leader_uptime", "Milliseconds since this server leads.", func(l *LeaderStats) int64 { return l.UptimeMilliseconds }),
	ofProposals("last_proposal_size", "Bytes of the last write put into the log, -1 when there was none.", func(p Sizes) int64 { return p.Last }),
	ofProposals("max_proposal_size", "Bytes of the largest write put into the log, -1 when there was none.", func(p Sizes) int64 { return p.Max }),
	ofProposals("min_proposal_size", "Bytes of the smallest write put into the log, -1 when there was none.", func(p Sizes) int64 { return p.Min }),
}

func ofLeader(name, help string, read func(*LeaderStats) int64) gauge {
	return gauge{name, help, func(s Stats) metrics.Value {
		if s.Leader == nil {
			return metrics.Absent()
		}
		return metrics.Int(read(s.Leader))
	}}
}

func ofProposals(name, help string, read func(Sizes) int64) gauge {
	return gauge{name, help, func(s Stats) metrics.Value {
		if s.Leader == nil {
			return metrics.Absent()
		}
		return metrics.Int(read(s.Proposals))
	}}
}

func declareGauges(registry *metrics.Registry, server Server) {
	gauges := slices.Concat(serverGauges, ensembleGauges)
	descs := make([]metrics.Desc, len(gauges))
	for i, g := range gauges {
		descs[i] = metrics.Desc{Name: g.name, Help: g.help}
	}
	registry.Gauges(descs, func() []metrics.Value {
		stats := server.Stats()
		values := make([]metrics.Value, len(gauges))
		for i, g := range gauges {
			values[i] = g.read(stats)
		}
		return values
	})
	quota := func(name, help string, has func(NamespaceQuota) bool, read func(NamespaceQuota) int64) {
		registry.GaugeSet(name, help, func() map[string]metrics.Value {
			values := map[string]metrics.Value{}
			for _, q := range server.Quotas() {
				if has(q) {
					values[q.Namespace] = metrics.Int(read(q))
				}
			}
			return values
		})
	}
	limit := func(q NamespaceQuota) bool { return q.HasLimit }
	usage := func(q NamespaceQuota) bool { return q.HasUsage }
	quota("quota_count_limit_per_namespace", "Limit on nodes, by first path component.",
		limit, func(q NamespaceQuota) int64 { return q.CountLimit })
	quota("quota_bytes_limit_per_namespace", "Limit on bytes, by first path component.",
		limit, func(q NamespaceQuota) int64 { return q.BytesLimit })
	quota("quota_count_usage_per_namespace", "Nodes under quota, by first path component.",
		usage, func(q NamespaceQuota) int64 { return q.CountUsage })
	quota("quota_bytes_usage_per_namespace", "Bytes under quota, by first path component.",
		usage, func(q NamespaceQuota) int64 { return q.BytesUsage })
}

// openDescriptors counts the process's open files, the one that counts
// excluded; -1 where the system does not tell.
func openDescriptors() metrics.Value {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return metrics.Int(-1)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return metrics.Int(-1)
	}
	return metrics.Int(int64(len(names)) - 1)
}

func maxDescriptors() metrics.Value {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return metrics.Int(-1)
	}
	return metrics.Int(int64(limit.Cur))
}

// monitorReport is mntr.
type monitorReport struct {
	version string
	mode    string
	// peerState is empty on a standalone server.
	peerState string
	lines     []metrics.Line
}

func (a *Admin) monitorReport() monitorReport {
	stats := a.server.Stats()
	return monitorReport{a.config.Build.String(), stats.Mode, stats.PeerState, a.registry.Lines()}
}

func (r monitorReport) writeText(out io.Writer) {
	fmt.Fprintf(out, "zk_version\t%s\nzk_server_state\t%s\n", r.version, r.mode)
	if r.peerState != "" {
		fmt.Fprintf(out, "zk_peer_state\t%s\n", r.peerState)
	}
	for _, line := range r.lines {
		fmt.Fprintf(out, "zk_%s\t%v\n", line.Key, line.Value)
	}
}
