package bench

import (
	"runtime"
	"syscall"
	"time"
)

// keepThread keeps the goroutine on its thread until the function that it
// returns is called.
func keepThread() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// nap sleeps by the kernel's clock, which is about fifty microseconds coarse.
func nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal may cut it short, which does not matter
}
