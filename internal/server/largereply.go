package server

import (
	"log/slog"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

const (
	// clientTakesBytes is the longest reply that Apache's Java client takes
	// unless its jute.maxbuffer says otherwise. On a longer one it closes the
	// connection, comes back, and asks the same again.
	clientTakesBytes = 0xfffff
	// largeRepliesQuiet is how long after a warning further large replies are
	// only counted. Source: our choice.
	largeRepliesQuiet = 10 * time.Second
)

// largeReplies warns of replies that many clients do not take, with what was
// asked: the client's own error names neither.
type largeReplies struct {
	logger *slog.Logger
	now    func() time.Duration // monotonic
	bytes  *metrics.SummarySet

	mu     sync.Mutex
	warned time.Duration // guarded by mu; when the last warning was given; before the first: never
	unsaid int           // guarded by mu; large ones since
}

func newLargeReplies(r *metrics.Registry, logger *slog.Logger, now func() time.Duration) *largeReplies {
	return &largeReplies{
		logger: logger, now: now, warned: now() - largeRepliesQuiet,
		bytes: r.SummarySet("large_reply_bytes_per_namespace",
			"Bytes of replies longer than the Java client takes by default, by first path component."),
	}
}

// sent is told of replies to reads and their length; small ones cost a comparison.
// Those that waited behind a write of their connection are left out: they hold one
// node's data at most, and nothing may be logged under the state lock.
func (l *largeReplies) sent(c *conn, r *state.ReadRequest, bytes int) {
	if bytes <= clientTakesBytes {
		return
	}
	path := firstPath(r)
	count(l.bytes, path, bytes)
	l.mu.Lock()
	now := l.now()
	quiet := now-l.warned < largeRepliesQuiet
	unsaid := l.unsaid
	if l.unsaid++; !quiet {
		l.warned, l.unsaid = now, 0
	}
	l.mu.Unlock()
	if quiet {
		return
	}
	attrs := []any{"op", r.Header.Type, "path", path, "bytes", bytes, "session", c.SessionID().String(), "client", c.remote}
	if unsaid > 0 {
		attrs = append(attrs, "large_ones_before", unsaid)
	}
	l.logger.Warn("a reply is longer than Java clients take by default, who then close, come back and ask again: raise jute.maxbuffer at the client, or split the node", attrs...)
}

// firstPath is the path of a read; of a multiRead that of its first op.
func firstPath(r *state.ReadRequest) string {
	if r.Header.Type == proto.OpMultiRead {
		if ops, err := proto.DecodeMulti(r.Body); err == nil && len(ops) > 0 {
			return ops[0].Read.Path
		}
		return ""
	}
	return proto.NewDecoder(r.Body).String()
}
