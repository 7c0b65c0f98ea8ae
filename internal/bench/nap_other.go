//go:build !linux

package bench

import "time"

func keepThread() (release func()) { return func() {} }

// nap sleeps by the runtime's timers.
func nap(d time.Duration) { time.Sleep(d) }
