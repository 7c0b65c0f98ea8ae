package config

import "time"

// Containers says how container and TTL nodes are kept and reaped.
type Containers struct {
	// ExtendedTypes allows TTL nodes. Default false with a zoo.cfg (Apache's
	// extendedTypesEnabled), true without.
	ExtendedTypes bool
	// Emulate353TTL marks TTL nodes the way Apache 3.5.3 did. Default false
	// (Apache's emulate353TTLNodes).
	Emulate353TTL bool
	// CheckInterval is the time between two rounds of the janitor. Default 60 s
	// (Apache's znode.container.checkIntervalMs).
	CheckInterval time.Duration
	// MaxPerMinute bounds the nodes reaped in a minute. Default 10000 (Apache's
	// znode.container.maxPerMinute).
	MaxPerMinute int
	// MaxNeverUsedInterval is the age at which a container that never had a
	// child is reaped; 0 means never. Default 0 (Apache's
	// znode.container.maxNeverUsedIntervalMs).
	MaxNeverUsedInterval time.Duration
}

// DefaultContainers returns Apache's defaults.
func DefaultContainers() Containers {
	return Containers{CheckInterval: time.Minute, MaxPerMinute: 10000}
}

// Validate checks relations and ranges.
func (c Containers) Validate() error {
	switch {
	case c.CheckInterval <= 0:
		return invalid("znode.container.checkIntervalMs", "%d must be above 0 ms", c.CheckInterval.Milliseconds())
	case c.MaxPerMinute <= 0:
		return invalid("znode.container.maxPerMinute", "%d must be above 0", c.MaxPerMinute)
	}
	return nil
}
