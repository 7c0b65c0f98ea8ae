package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

/*
How much memory a server takes beside what it holds.

Go's collector runs when the heap has grown by GOGC percent, 100 by default, and
what it frees goes back to the system slowly. For a database that is wrong at
both ends: a server with few nodes collects dozens of times a second, for its
heap of a few megabytes is full at once; one with many nodes that are written no
more keeps twice their size until somebody looks. So while serve runs, once a
look (lookInterval), and after each collection, for until the next one what is live
may be many times what it was, as while a snapshot is loaded:

	headroom = what is live, but at least headroomMin and at most headroomMax
	GOGC     = headroom / live

and when almost nothing has been allocated for quietLooks looks, the garbage is
collected and its memory given back. The tree is made so that marking it costs
little: some 20 ms of a processor for a million nodes.

GOGC in the environment leaves the percentage alone, GOMEMLIMIT is obeyed by the
runtime whatever is set here (as is a container's limit: memorylimit.go), and
--keep-memory gives nothing back. A program
that embeds a server has its own policy, which is why this is not in a room.
*/
const (
	lookInterval = 5 * time.Second
	// headroomMin is what a small heap may grow by between two collections.
	headroomMin = 64 << 20
	// headroomMax is what the largest one may.
	headroomMax = 1 << 30
	// percentMax bounds GOGC: what is live may have been measured before the
	// first clients came.
	percentMax = 800
	// quietLooks is how many looks in a row must have found nothing going on:
	// 15 seconds.
	quietLooks = 3
	// quietBytes is how much may be allocated from one look to the next while
	// nothing goes on; the heartbeats of an ensemble take a quarter of it.
	quietBytes = 4 << 20
	// returnMin is how much a return must bring, beside a sixteenth of what is
	// live, and how much must have been allocated since the one before.
	returnMin = 8 << 20
)

// memorySample is what the runtime says, in bytes.
type memorySample struct {
	allocated uint64 // since the process began
	live      uint64 // found by the last collection, with stacks and globals
	held      uint64 // of the heap, not given back
}

// memoryPolicy decides; it has neither clock nor effect.
type memoryPolicy struct {
	percent  int
	last     uint64 // allocated at the last look
	returned uint64 // allocated when memory was given back last
	quiet    int
}

// room returns the new GOGC, 0 if it is to stay as it is.
func (p *memoryPolicy) room(s memorySample) (percent int) {
	live := max(s.live, 1)
	want := int(min(min(max(live, headroomMin), headroomMax)*100/live, percentMax))
	if p.percent == 0 || 4*want < 3*p.percent || 3*want > 4*p.percent {
		p.percent, percent = want, want
	}
	return percent
}

// look takes one sample at each lookInterval. It returns what room does, and whether
// memory is to be given back now.
func (p *memoryPolicy) look(s memorySample) (percent int, giveBack bool) {
	percent = p.room(s)
	live := max(s.live, 1)
	if s.allocated-p.last > quietBytes {
		p.quiet = 0
	} else {
		p.quiet++
	}
	p.last = s.allocated
	if p.quiet < quietLooks || s.held < live+live/16+returnMin || s.allocated-p.returned < returnMin+live/16 {
		return percent, false
	}
	p.returned = s.allocated
	return percent, true
}

func sampleMemory() memorySample {
	v := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(v)
	n := func(i int) uint64 {
		if v[i].Value.Kind() != metrics.KindUint64 {
			return 0 // of a runtime that does not know it
		}
		return v[i].Value.Uint64()
	}
	return memorySample{allocated: n(0), live: n(1) + n(2) + n(3), held: n(4) + n(5) + n(6)}
}

// keepMemory applies the policy until the context ends.
func keepMemory(ctx context.Context, giveBack bool) {
	_, own := os.LookupEnv("GOGC")
	var p memoryPolicy
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	collected := make(chan struct{}, 1)
	afterCollection(ctx, collected)
	for {
		percent, idle := p.look(sampleMemory())
		if idle && giveBack {
			debug.FreeOSMemory()
		}
		for again := true; again; {
			if percent != 0 && !own {
				debug.SetGCPercent(percent)
			}
			select {
			case <-ctx.Done():
				return
			case <-collected:
				percent = p.room(sampleMemory())
			case <-tick.C:
				again = false
			}
		}
	}
}

// afterCollection tells of each collection, until the context ends: the runtime
// calls when it finds that a small object is not used any more.
func afterCollection(ctx context.Context, collected chan<- struct{}) {
	object := new([16]byte)
	runtime.AddCleanup(object, func(struct{}) {
		if ctx.Err() != nil {
			return
		}
		afterCollection(ctx, collected) // before who waits can begin the next one
		select {
		case collected <- struct{}{}:
		default:
		}
	}, struct{}{})
}
