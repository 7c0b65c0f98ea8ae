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
}

// SystemClock returns the machine's clock.
func SystemClock() Clock {
	start := time.Now()
	return Clock{Wall: time.Now, Monotonic: func() time.Duration { return time.Since(start) }}
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
// nodes due at once.
type leaderClock struct {
	clock Clock

	mu   sync.Mutex
	last time.Time     // leader time at the last reading; zero before the first
	at   time.Duration // monotonic time of that reading
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
