package consensus

import (
	"log/slog"
	"sync"
	"time"
)

// refusals logs what was refused on the peer port, each reason once in a while
// and not many reasons at once: who is refused chooses how often, and a part of
// the text.
type refusals struct {
	mu     sync.Mutex
	since  time.Time           // guarded by mu; when the window began
	logged map[string]struct{} // guarded by mu; the texts in this window, ≤ refusalLines
	silent int                 // guarded by mu; refusals in this window without a line
}

const (
	// refusalPause is the window: how long the same refusal is not logged again.
	refusalPause = 30 * time.Second
	// refusalLines bounds the lines in one window.
	refusalLines = 20
	// refusalBytes bounds the reason in a line, which may quote a stranger.
	refusalBytes = 300
)

func (r *refusals) warn(logger *slog.Logger, remote, text string) {
	if len(text) > refusalBytes {
		text = text[:refusalBytes] + "…"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= refusalPause {
		if r.silent > 0 {
			logger.Warn("more connections on the peer port were refused for the same reasons", "count", r.silent, "since", r.since.Format(time.RFC3339))
		}
		r.since, r.logged, r.silent = now, map[string]struct{}{}, 0
	}
	if _, known := r.logged[text]; known || len(r.logged) >= refusalLines {
		r.silent++
		return
	}
	r.logged[text] = struct{}{}
	logger.Warn("a connection on the peer port was refused", "remote", remote, "reason", text)
}
