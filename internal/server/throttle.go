package server

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/proto"
)

// connectThrottle is a bucket of tokens that new connections take from, with a
// probability of refusal that grows while the bucket stays empty. It is off by
// default, as Apache's connection_throttle_* are.
type connectThrottle struct {
	config  config.Throttle
	local   bool // new sessions are local ones
	now     func() time.Duration
	deficit func(tokens int64) // told at every attempt
	size    int
	fill    int

	mu       sync.Mutex
	tokens   int
	filled   time.Duration // last filling
	adjusted time.Duration // last change of drop
	drop     float64       // probability of refusal, 0 to 1
}

func newConnectThrottle(c config.Throttle, local bool, now func() time.Duration, deficit func(int64)) *connectThrottle {
	t := &connectThrottle{config: c, local: local, now: now, deficit: deficit, size: c.Tokens, fill: c.FillCount}
	if c.Weighted {
		// The operator counts in global sessions.
		t.size, t.fill = t.size*c.GlobalWeight, t.fill*c.GlobalWeight
	}
	t.tokens = t.size
	t.filled, t.adjusted = now(), now()
	return t
}

// take tells whether a connection may be established. Session is the one that
// it asks for, 0 for a new one.
func (t *connectThrottle) take(session proto.SessionID) bool {
	if t.size == 0 {
		t.deficit(0)
		return true
	}
	need := 1
	if t.config.Weighted {
		switch {
		case session != 0:
			need = t.config.RenewWeight
		case t.local:
			need = t.config.LocalWeight
		default:
			need = t.config.GlobalWeight
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if since := now - t.filled; since > t.config.FillTime {
		refill := float64(since) * float64(t.fill) / float64(max(t.config.FillTime, 1))
		t.tokens = int(math.Min(float64(t.tokens)+math.Floor(refill), float64(t.size)))
		t.filled = now
	}
	if t.config.FreezeTime >= 0 && !t.lucky(now) {
		return false
	}
	if t.tokens < need {
		return false
	}
	t.tokens -= need
	t.deficit(int64(t.size - t.tokens))
	return true
}

// lucky adjusts the probability of refusal, and throws the dice. It requires mu.
func (t *connectThrottle) lucky(now time.Duration) bool {
	if now-t.adjusted > t.config.FreezeTime {
		missing := t.size - t.tokens
		switch {
		case missing == t.size:
			t.drop = min(t.drop+t.config.DropIncrease, 1)
		case float64(missing) <= math.Round(float64(t.size)*t.config.DecreaseRatio):
			t.drop = max(t.drop-t.config.DropDecrease, 0)
		}
		t.adjusted = now
	}
	return rand.Float64() >= t.drop
}

// dropChance is the probability of refusal now.
func (t *connectThrottle) dropChance() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drop
}

// admission is what the request throttle says to one request.
type admission uint8

const (
	admitted       admission = iota
	admitDrop                // stale: close the connection
	admitTooLarge            // over the limit on large requests: close the connection
	admitThrottled           // waited too long: answer THROTTLEDOP
)

// requestThrottle holds requests back before the queue, as Apache's
// request_throttle_* and largeRequest* do. All of it is off by default.
type requestThrottle struct {
	server     *Server
	largeBytes atomic.Int64 // of large requests in work
}

// admit lets a request in, after a wait if too many are in work. Received is
// when it came.
func (t *requestThrottle) admit(c *conn, op proto.OpCode, size int, received time.Duration) admission {
	limits, throttle := &t.server.config.Limits, &t.server.config.Throttle
	if limits.LargeRequestThreshold > 0 && size > limits.LargeRequestThreshold &&
		t.largeBytes.Load()+int64(size) > int64(limits.LargeRequestMaxBytes) {
		t.server.metrics.largeRejected.Inc()
		return admitTooLarge
	}
	if throttle.MaxRequests > 0 {
		waited := false
		for t.server.outstanding.Load() >= int64(throttle.MaxRequests) {
			if throttle.DropStale && t.stale(c, received) {
				t.server.metrics.staleRequests.Inc()
				t.server.metrics.staleDropped.Inc()
				return admitDrop
			}
			if !waited {
				waited = true
				t.server.metrics.throttleWaits.Inc()
			}
			if !t.server.pause(throttle.StallTime) {
				return admitDrop
			}
		}
	}
	if throttle.OpWaitTime > 0 && op != proto.OpPing && op != proto.OpCloseSession &&
		t.server.clock.Monotonic()-received > throttle.OpWaitTime {
		t.server.metrics.throttledOps.Inc()
		return admitThrottled
	}
	return admitted
}

// stale tells whether nobody waits for the request's answer any more.
func (t *requestThrottle) stale(c *conn, received time.Duration) bool {
	throttle := &t.server.config.Throttle
	if throttle.StaleConnectionCheck && c.Gone() {
		return true
	}
	waited := t.server.clock.Monotonic() - received
	return throttle.StaleLatencyCheck && waited > time.Duration(c.timeout.Load())*time.Millisecond
}

// hold counts a large request as in work, release as done.
func (t *requestThrottle) hold(size int)    { t.count(size, 1) }
func (t *requestThrottle) release(size int) { t.count(size, -1) }

func (t *requestThrottle) count(size int, sign int64) {
	if l := t.server.config.Limits.LargeRequestThreshold; l > 0 && size > l {
		t.largeBytes.Add(sign * int64(size))
	}
}
