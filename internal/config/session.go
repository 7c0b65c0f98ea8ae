package config

import (
	"math"
	"time"
)

// bareTickTime is the tick of the sample configuration that Apache ships and
// of every container image; the 3000 ms in Apache's code are met only by files
// that leave tickTime out.
const bareTickTime = 2000 * time.Millisecond

// unset marks a session limit that follows the tick.
const unset = -1 * time.Millisecond

// Session says how long sessions live.
type Session struct {
	// TickTime is the unit of ZooKeeper's times and the width of an expiry
	// bucket. Whole milliseconds above 0. Default 3000 ms (Apache's code).
	TickTime time.Duration
	// MinTimeout is the shortest timeout a client is given. Default 2 ticks.
	MinTimeout time.Duration
	// MaxTimeout is the longest timeout a client is given, at most 2^31-1 ms
	// because it is a 32-bit number on the wire. Default 20 ticks.
	MaxTimeout time.Duration
	// Local keeps sessions out of the log until they need to be in it. Default
	// false (Apache's localSessionsEnabled). Only an ensemble has them.
	Local bool
	// LocalUpgrade turns a local session into a global one when it creates an
	// ephemeral node. Default false (Apache's localSessionsUpgradingEnabled).
	LocalUpgrade bool
}

// DefaultSession returns Apache's defaults, with the limits not yet derived
// from the tick.
func DefaultSession() Session {
	return Session{TickTime: 3000 * time.Millisecond, MinTimeout: unset, MaxTimeout: unset}
}

// derive fills in the limits that follow the tick and reports which ones did.
func (s *Session) derive() (minimum, maximum bool) {
	if s.MinTimeout == unset {
		s.MinTimeout, minimum = 2*s.TickTime, true
	}
	if s.MaxTimeout == unset {
		s.MaxTimeout, maximum = 20*s.TickTime, true
	}
	return minimum, maximum
}

// Validate checks relations and ranges.
func (s Session) Validate() error {
	s.derive()
	switch {
	case s.TickTime <= 0:
		return invalid("tickTime", "%d must be above 0 ms", s.TickTime.Milliseconds())
	case s.MinTimeout > s.MaxTimeout:
		return invalid("minSessionTimeout", "%d ms must not be above maxSessionTimeout, %d ms",
			s.MinTimeout.Milliseconds(), s.MaxTimeout.Milliseconds())
	case s.MaxTimeout <= 0:
		return invalid("maxSessionTimeout", "%d must be above 0 ms", s.MaxTimeout.Milliseconds())
	case s.MaxTimeout.Milliseconds() > math.MaxInt32:
		return invalid("maxSessionTimeout", "%d ms is more than a client can be told, %d",
			s.MaxTimeout.Milliseconds(), math.MaxInt32)
	}
	return nil
}
