package server

import (
	"sync"
	"time"
)

// Clock is the source of time of one server. Both readings are handed in so
// that tests can set them.
type Clock struct {
	// Wall is the time of day; it may step.
	Wall func() time.Time
	// Monotonic is the time since any fixed moment; it never steps.
	Monotonic func() time.Duration
	// SleepUntil waits for a monotonic time; it returns false when quit closes.
	// The leader's duties, which work by time, wait by it. Default: a timer.
	SleepUntil func(at time.Duration, quit <-chan struct{}) bool
	// Begin says that a goroutine has begun which sleeps by this clock: from now
	// until SleepUntil returns false to it, it is asleep or on its way to sleep
	// again. A clock that is moved by hand waits for that. Default: nothing.
	Begin func()
}

// Filled returns the clock with defaults where nothing is set.
func (c Clock) Filled() Clock {
	system := SystemClock()
	if c.Wall == nil {
		c.Wall, c.Monotonic = system.Wall, system.Monotonic
	}
	if c.SleepUntil == nil {
		monotonic := c.Monotonic
		c.SleepUntil = func(at time.Duration, quit <-chan struct{}) bool { return sleep(at-monotonic(), quit) }
	}
	if c.Begin == nil {
		c.Begin = func() {}
	}
	return c
}

// SystemClock returns the machine's clock.
func SystemClock() Clock {
	start := time.Now()
	return Clock{Wall: time.Now, Monotonic: func() time.Duration { return time.Since(start) }}
}

// sleep waits by the machine's clock. It returns false when quit closes.
func sleep(wait time.Duration, quit <-chan struct{}) bool {
	if wait <= 0 {
		select {
		case <-quit:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-quit:
		return false
	}
}

// slewRatio is the greatest share of the elapsed time by which leader time is
// moved towards the wall clock: 1/8.
const slewRatio = 8

// leaderClock gives the time that the leader stamps into log entries: ctime,
// mtime, and what TTL and container timers are judged by.
//
// It follows the wall clock, but a step of the wall clock is taken in slowly:
// leader time runs at most an eighth faster or slower. So a clock that is set
// back does not stop time, and one that is set forward does not make all TTL
// nodes due at once. For the same reason a server that begins to lead goes on
// from the time of the leader that it followed, however far off its own clock
// is; only after a start of the whole ensemble is its own clock all there is.
type leaderClock struct {
	clock Clock

	mu   sync.Mutex
	last time.Time     // leader time at the last reading; zero before the first
	at   time.Duration // monotonic time of that reading
}

// follow learns the time of another leader, which is now.
func (l *leaderClock) follow(leaders time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.at = leaders, l.clock.Monotonic()
}

// now returns leader time. Within a process it never runs backwards.
func (l *leaderClock) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	wall, mono := l.clock.Wall(), l.clock.Monotonic()
	if l.last.IsZero() {
		l.last, l.at = wall, mono
		return wall
	}
	elapsed := mono - l.at
	even := l.last.Add(elapsed)
	limit := elapsed / slewRatio
	off := wall.Round(0).Sub(even.Round(0))
	// Small differences are the ordinary drift between the two clocks.
	l.last, l.at = even.Add(min(max(off, -limit), limit)), mono
	return l.last
}
