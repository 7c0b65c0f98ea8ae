package server

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
)

// connStats is what the words cons and stat tell of one connection.
type connStats struct {
	received atomic.Int64
	sent     atomic.Int64
	// asksWord tells that the connection began with a four-letter word: nothing
	// more is read from it.
	asksWord atomic.Bool
	// hasReadOnly tells whether the connect request had the readOnly byte. It
	// is written before the session is proposed and only read afterwards.
	hasReadOnly bool

	mu           sync.Mutex // below the state lock
	lastOp       string
	lastCxid     int64
	lastZxid     proto.Zxid
	lastResponse time.Duration
	lastLatency  int64
	latencySum   int64
	latencyCount int64
	latencyMin   int64
	latencyMax   int64
}

// unasked is Apache's last operation of a connection that has asked nothing; a
// reset makes it "NA". Its last cxid and zxid are 0, and -1 after a reset.
const unasked = "null"

func (s *connStats) reset() {
	s.received.Store(0)
	s.sent.Store(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastOp, s.lastCxid, s.lastZxid = "NA", -1, -1
	s.lastResponse, s.lastLatency = 0, 0
	s.latencySum, s.latencyCount, s.latencyMin, s.latencyMax = 0, 0, 0, 0
}

// replied notes one answered request. A write that failed is no operation, as
// on Apache; a read that failed is one.
func (s *connStats) replied(op proto.OpCode, xid int32, reply proto.ReplyHeader, at, latency time.Duration) {
	ms := latency.Milliseconds()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastOp, s.lastZxid, s.lastResponse, s.lastLatency = op.StatName(), reply.Zxid, at, ms
	if op.IsWrite() && reply.Err != proto.ErrOK {
		s.lastOp = proto.OpError.StatName()
	}
	if xid >= 0 {
		s.lastCxid = int64(xid)
	}
	if s.latencyCount == 0 || ms < s.latencyMin {
		s.latencyMin = ms
	}
	s.latencyMax = max(s.latencyMax, ms)
	s.latencySum += ms
	s.latencyCount++
}

// serverMetrics are this room's metrics.
type serverMetrics struct {
	packetsReceived metrics.Spread // since the start or the last srst
	packetsSent     metrics.Spread // likewise
	authFailed      atomic.Int64
	lastResponse    atomic.Int64 // size of the last reply or event; -1 when none
	lastProposal    atomic.Int64 // size of the last command applied while this server leads an ensemble; -1 when none

	latency            *metrics.Summary
	readLatency        *metrics.AdvancedSummary
	updateLatency      *metrics.AdvancedSummary
	bytesReceived      *metrics.Counter
	responseBytes      *metrics.Counter
	watchBytes         *metrics.Counter
	responses          *metrics.Summary // sizes of replies and events
	proposals          *metrics.Summary // sizes of commands applied while this server leads an ensemble
	closed             *metrics.CounterSet
	dropped            *metrics.Counter // by the client
	closedNotServing   *metrics.Counter
	digestMismatches   *metrics.Counter // replicas that differ
	connectionRejected *metrics.Counter
	connectionRequests *metrics.Counter
	revalidated        *metrics.Counter
	tokenDeficit       *metrics.Summary
	sessionlessExpired *metrics.Counter
	staleSessions      *metrics.Counter
	throttleWaits      *metrics.Counter
	throttledOps       *metrics.Counter
	staleRequests      *metrics.Counter
	staleDropped       *metrics.Counter
	largeRejected      *metrics.Counter
	sequenceLow        *metrics.Counter
	quotaExceeded      *metrics.CounterSet
}

func newServerMetrics(r *metrics.Registry) *serverMetrics {
	m := &serverMetrics{
		packetsReceived:    metrics.NewSpread(),
		packetsSent:        metrics.NewSpread(),
		latency:            metrics.NewSummary().Spread(),
		responses:          metrics.NewSummary().Spread(),
		proposals:          metrics.NewSummary(),
		readLatency:        r.AdvancedSummary("readlatency", "Milliseconds from receipt to reply of a read.").Spread(),
		updateLatency:      r.AdvancedSummary("updatelatency", "Milliseconds from receipt to reply of a write.").Spread(),
		bytesReceived:      r.Counter("bytes_received_count", "Bytes received from clients, length prefixes included.").Spread(),
		responseBytes:      r.Counter("response_bytes", "Bytes of replies but those to pings, without length prefixes.").Spread(),
		watchBytes:         r.Counter("watch_bytes", "Bytes of watch notifications, without length prefixes."),
		closed:             r.CounterSet("connection_closed", "Connections that the server closed, by reason."),
		dropped:            r.Counter("connection_drop_count", "Client connections that ended because nothing more could be read from them."),
		closedNotServing:   r.Counter("cnxn_closed_without_zk_server_running", "Connections closed because the server was not serving."),
		digestMismatches:   r.Counter("digest_mismatches_count", "Times that the state differed from what a digest says."),
		connectionRejected: r.Counter("connection_rejected", "Connections refused by a limit on connections."),
		connectionRequests: r.Counter("connection_request_count", "Connect requests accepted for judgement."),
		revalidated:        r.Counter("connection_revalidate_count", "Connect requests that brought a session id."),
		tokenDeficit:       r.Summary("connection_token_deficit", "Tokens missing in the connection throttle at a connect request."),
		sessionlessExpired: r.Counter("sessionless_connections_expired", "Connections closed because they were silent past their timeout."),
		staleSessions:      r.Counter("stale_sessions_expired", "Sessions that this server proposed to close because they timed out."),
		throttleWaits:      r.Counter("request_throttle_wait_count", "Requests that had to wait for the request throttle."),
		throttledOps:       r.Counter("throttled_ops", "Requests refused because they waited too long for the request throttle."),
		staleRequests:      r.Counter("stale_requests", "Requests found stale: their connection was gone or they were too old."),
		staleDropped:       r.Counter("stale_requests_dropped", "Stale requests that were dropped unanswered."),
		largeRejected:      r.Counter("large_requests_rejected", "Requests refused by the limit on large requests."),
		sequenceLow:        r.Counter("sequence_counter_low", "Sequential creates below a node whose counter has passed two billion of its 2147483647."),
		quotaExceeded:      r.CounterSet("quota_exceeded_error_per_namespace", "Writes that met a quota, by first path component."),
	}
	m.lastResponse.Store(-1)
	m.lastProposal.Store(-1)
	return m
}

// prefixBytes is the length prefix of a frame.
const prefixBytes = 4

// pushed notes a reply or event that goes into an outbox: its size in bytes is
// that of the frame without the length prefix. Apache leaves replies to pings
// out of the bytes of replies, and so do we. Who is the connection's number, as in
// all that is counted for each request.
func (m *serverMetrics) pushed(who uint64, frame []byte) {
	size := int64(len(frame) - prefixBytes)
	m.packetsSent.Add(who, 1)
	m.responses.ObserveBy(who, size)
	if m.lastResponse.Load() != size { // all processors may read it at once
		m.lastResponse.Store(size)
	}
	switch int32(binary.BigEndian.Uint32(frame[prefixBytes:])) {
	case proto.XidNotification:
		m.watchBytes.Add(size)
	case proto.XidPing:
	default:
		m.responseBytes.AddBy(who, size)
	}
}

// traffic counts bytes by namespace, the first component of a path.
type traffic struct {
	reads, writes *metrics.SummarySet
}

func newTraffic(r *metrics.Registry) *traffic {
	return &traffic{
		reads:  r.SummarySet("read_per_namespace", "Bytes of path, data and Stat of reads, by first path component.").Spread(),
		writes: r.SummarySet("write_per_namespace", "Bytes of path and data of writes, by first path component."),
	}
}

// Read implements state.Traffic.
func (t *traffic) Read(a state.Asker, path string, bytes int) {
	if namespace := tree.Namespace(path); namespace != "" {
		t.reads.ObserveBy(a.(*conn).id, namespace, int64(bytes))
	}
}

// Wrote implements state.Traffic.
func (t *traffic) Wrote(path string, bytes int) { count(t.writes, path, bytes) }

func count(set *metrics.SummarySet, path string, bytes int) {
	if namespace := tree.Namespace(path); namespace != "" {
		set.Key(namespace).Observe(int64(bytes))
	}
}

// observe notes the latency of one answered request. Pings and syncs, which
// take no zxid, are reads here, as on Apache.
func (m *serverMetrics) observe(who uint64, op proto.OpCode, latency time.Duration) {
	ms := latency.Milliseconds()
	m.latency.ObserveBy(who, ms)
	switch {
	case op.IsWrite() && op != proto.OpSync:
		m.updateLatency.ObserveBy(who, ms)
	default:
		m.readLatency.ObserveBy(who, ms)
	}
}
