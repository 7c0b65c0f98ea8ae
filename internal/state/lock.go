package state

import (
	"math/bits"
	"runtime"
	"sync"
)

/*
The state lock is read-write, and each read takes and returns it: two changes of a
word that all processors share, some 50 to 100 ns each once several want it, when the
read itself takes a few hundred. So the lock has lanes. A reader takes the one of its
session; the goroutine that writes takes them all, which costs it 20 to 50 ns for each
lane and log entry, without readers.
*/

// lanesMax bounds what a writer has to take. Source: our choice.
const lanesMax = 64

// spreadLock is a read-write lock whose readers do not disturb each other. Its
// methods without a lane are the writer's.
type spreadLock struct {
	lanes []lockLane // a power of two of them, at least one
}

// lockLane has cache lines of its own; processors fetch them in pairs.
type lockLane struct {
	mu sync.RWMutex
	_  [128 - 24]byte
}

// newSpreadLock makes a lock with two lanes for each processor, so that readers on
// all of them seldom meet.
func newSpreadLock() spreadLock {
	n := 1
	if processors := runtime.GOMAXPROCS(0); processors > 1 {
		n = 1 << bits.Len(uint(2*processors-1))
	}
	return spreadLock{lanes: make([]lockLane, min(n, lanesMax))}
}

// lane is where a reader waits that is known by this number.
func (l *spreadLock) lane(reader uint64) *sync.RWMutex {
	return &l.lanes[reader&uint64(len(l.lanes)-1)].mu
}

func (l *spreadLock) Lock() {
	for i := range l.lanes {
		l.lanes[i].mu.Lock()
	}
}

func (l *spreadLock) Unlock() {
	for i := range l.lanes {
		l.lanes[i].mu.Unlock()
	}
}
