package zktest

import (
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/server"
)

// clock is a clock that is moved by hand, for all servers of an ensemble. It
// knows who sleeps by it, and moves from one awakening to the next, waiting
// each time until whoever woke up sleeps again: so a long step takes the same
// course as if the time had passed.
type clock struct {
	begin time.Time // wall time at 0

	mu       sync.Mutex
	settled  sync.Cond         // on mu: busy or sleepers changed
	now      time.Duration     // guarded by mu
	busy     int               // guarded by mu; sleepers that are awake
	sleepers map[*sleeper]bool // guarded by mu
}

type sleeper struct {
	at   time.Duration
	wake chan struct{}
}

func newClock() *clock {
	c := &clock{begin: time.Now(), sleepers: map[*sleeper]bool{}}
	c.settled.L = &c.mu
	return c
}

func (c *clock) monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) server() server.Clock {
	return server.Clock{
		Wall:      func() time.Time { return c.begin.Round(0).Add(c.monotonic()) },
		Monotonic: c.monotonic,
		Begin: func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.busy++
		},
		SleepUntil: c.sleepUntil,
	}
}

// sleepUntil implements server.Clock.
func (c *clock) sleepUntil(at time.Duration, quit <-chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.settled.Broadcast()
	s := &sleeper{at: at, wake: make(chan struct{})}
	if at > c.now {
		c.busy--
		c.sleepers[s] = true
		c.settled.Broadcast()
		c.mu.Unlock()
		select {
		case <-s.wake:
		case <-quit:
		}
		c.mu.Lock()
		if c.sleepers[s] { // quit
			delete(c.sleepers, s)
			return false
		}
	}
	select {
	case <-quit:
		c.busy--
		return false
	default:
		return true
	}
}

// advance moves the clock.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	target := c.now + max(d, 0)
	for {
		for c.busy > 0 {
			c.settled.Wait()
		}
		var next *sleeper
		for s := range c.sleepers {
			if s.at <= target && (next == nil || s.at < next.at) {
				next = s
			}
		}
		if next == nil {
			c.now = target
			return
		}
		c.now = max(c.now, next.at)
		delete(c.sleepers, next)
		c.busy++
		close(next.wake)
	}
}
