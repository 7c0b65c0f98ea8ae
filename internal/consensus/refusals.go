package consensus

import (
	"log/slog"
	"sync"
	"time"
)

// refusals logs each refusal once in a while.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text
}

// refusalPause is how long the same refusal is not logged again.
const refusalPause = 30 * time.Second

func (r *refusals) warn(logger *slog.Logger, remote, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.last[text]) < refusalPause {
		return
	}
	if r.last == nil || len(r.last) > 1000 {
		r.last = map[string]time.Time{}
	}
	r.last[text] = now
	logger.Warn("a connection on the peer port was refused", "remote", remote, "reason", text)
}
