package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
)

// reason says why the server closed a connection. Every close has one; each is
// a key of the metric connection_closed and is logged once per burst.
type reason string

// The reasons.
const (
	reasonClientGone        reason = "client_gone"         // the client closed or reset it
	reasonSessionClosed     reason = "session_closed"      // the client closed its session
	reasonSessionExpired    reason = "session_expired"     // its session expired
	reasonSessionMoved      reason = "session_moved"       // another connection took the session over
	reasonSessionUnknown    reason = "session_unknown"     // it asked for a session that is over, or with a wrong password
	reasonZxidAhead         reason = "zxid_ahead"          // the client has seen more than this server
	reasonNotServing        reason = "not_serving"         // no client is served now
	reasonReadOnlyOver      reason = "read_only_over"      // read-only mode ends, for there is a leader again
	reasonStopping          reason = "server_stopping"     // the server stops
	reasonStateReset        reason = "state_reset"         // the whole state was replaced
	reasonFateUnknown       reason = "write_fate_unknown"  // a write of it may or may not have taken effect
	reasonTooManyFromHost   reason = "too_many_from_host"  // maxClientCnxns
	reasonTooMany           reason = "too_many"            // maxCnxns
	reasonConnectThrottle   reason = "connect_throttled"   // connection_throttle_*
	reasonStaleRequest      reason = "stale_request"       // request_throttle_*
	reasonLargeRequests     reason = "large_requests"      // largeRequestMaxBytes
	reasonFrameLength       reason = "frame_length"        // jute.maxbuffer
	reasonBadFrame          reason = "bad_frame"           // no connect request, no request header, or an auth packet that cannot be read
	reasonUnknownOperation  reason = "unknown_operation"   // an op code that is none, or not for clients
	reasonAuthFailed        reason = "auth_failed"         // credentials refused
	reasonTooManyIdentities reason = "too_many_identities" // auth packets without end
	reasonSessionless       reason = "sessionless_timeout" // no session in time
	reasonOutboxFull        reason = "outbox_full"         // it does not read what it asked for
	reasonNotConfirmed      reason = "not_confirmed"       // the leader has not confirmed for long that its session lives
	reasonWord              reason = "four_letter_word"    // a word has been answered
	reasonDiskFull          reason = "disk_full"           // no session can be made for want of disk
	reasonTest              reason = "test"                // a test that embeds the server asked for it
)

// burst is the time within which a reason is logged once.
const burst = 10 * time.Second

// closings counts and logs closed connections.
type closings struct {
	logger  *slog.Logger
	now     func() time.Duration
	counter *metrics.CounterSet

	mu    sync.Mutex
	since map[reason]time.Duration // start of the burst
	held  map[reason]int           // not logged since
}

func newClosings(logger *slog.Logger, now func() time.Duration, counter *metrics.CounterSet) *closings {
	return &closings{logger: logger, now: now, counter: counter,
		since: map[reason]time.Duration{}, held: map[reason]int{}}
}

// quiet are the reasons that belong to everyday life: counted, logged only at
// the level debug.
var quiet = map[reason]bool{reasonClientGone: true, reasonSessionClosed: true, reasonWord: true}

// record counts one closed connection and logs it unless its burst has been.
func (c *closings) record(r reason, remote, session, detail string) {
	c.counter.Key(string(r)).Inc()
	level := slog.LevelInfo
	if quiet[r] {
		level = slog.LevelDebug
	}
	c.mu.Lock()
	now := c.now()
	start, seen := c.since[r]
	if seen && now-start < burst && level > slog.LevelDebug {
		c.held[r]++
		c.mu.Unlock()
		return
	}
	held := c.held[r]
	c.since[r], c.held[r] = now, 0
	c.mu.Unlock()
	text := fmt.Sprintf("closed the connection of %s", remote)
	attrs := []any{"reason", string(r), "session", session}
	if detail != "" {
		attrs = append(attrs, "detail", detail)
	}
	if held > 0 {
		attrs = append(attrs, "same_before", held)
	}
	// Some closes are recorded under the state lock, where nothing is logged.
	go c.logger.Log(context.Background(), level, text, attrs...)
}
