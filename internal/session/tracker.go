package session

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Due names a session whose time is up, and the owner generation that was
// known when it was last heard: apply closes it only if that still holds.
type Due struct {
	ID         proto.SessionID
	Generation uint64
}

// Tracker knows when each session is due. Times are durations since any fixed
// moment of a monotonic clock. Deadlines are rounded up to the next multiple
// of the tick, as Apache does: a session is due between its timeout and its
// timeout plus one tick after it was last heard.
//
// It has its own lock, below the state lock.
type Tracker struct {
	tick time.Duration

	mu       sync.Mutex
	sessions map[proto.SessionID]*tracked
	buckets  map[time.Duration]map[proto.SessionID]*tracked // deadline → sessions
}

type tracked struct {
	timeout    time.Duration
	generation uint64
	deadline   time.Duration // the bucket it is in
}

// NewTracker returns an empty tracker with the given tick (tickTime).
func NewTracker(tick time.Duration) *Tracker {
	return &Tracker{
		tick:     tick,
		sessions: map[proto.SessionID]*tracked{},
		buckets:  map[time.Duration]map[proto.SessionID]*tracked{},
	}
}

func (t *Tracker) roundUp(at time.Duration) time.Duration { return (at/t.tick + 1) * t.tick }

// Track starts, or after a renewal restarts, a session's clock with its full
// timeout.
func (t *Tracker) Track(id proto.SessionID, timeout time.Duration, generation uint64, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		s = &tracked{}
		t.sessions[id] = s
	} else {
		t.leaveBucket(id, s)
	}
	s.timeout, s.generation = timeout, generation
	t.enterBucket(id, s, t.roundUp(now+timeout))
}

// Touch records that a session was heard at the given time. A session that is
// not tracked, or was heard later already, stays as it is.
func (t *Tracker) Touch(id proto.SessionID, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return
	}
	if d := t.roundUp(at + s.timeout); d > s.deadline {
		t.leaveBucket(id, s)
		t.enterBucket(id, s, d)
	}
}

// Remove forgets a session that has been closed.
func (t *Tracker) Remove(id proto.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil {
		t.leaveBucket(id, s)
		delete(t.sessions, id)
	}
}

// Due returns the sessions whose deadline has come, in order of their ids.
// They stay tracked and are returned again a tick later, until Remove: the
// proposal to close one may be lost.
func (t *Tracker) Due(now time.Duration) []Due {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []Due
	retry := t.roundUp(now)
	for deadline, bucket := range t.buckets {
		if deadline > now {
			continue
		}
		for id, s := range bucket {
			due = append(due, Due{ID: id, Generation: s.generation})
			t.leaveBucket(id, s)
			t.enterBucket(id, s, retry)
		}
	}
	slices.SortFunc(due, func(a, b Due) int { return cmp.Compare(a.ID, b.ID) })
	return due
}

// Reseed forgets all and tracks the given sessions, each with its full
// timeout, as a new leader does.
func (t *Tracker) Reseed(all []Session, now time.Duration) {
	t.mu.Lock()
	clear(t.sessions)
	clear(t.buckets)
	t.mu.Unlock()
	for i := range all {
		s := &all[i]
		t.Track(s.ID, time.Duration(s.TimeoutMillis)*time.Millisecond, s.Generation, now)
	}
}

// Buckets returns the ids by deadline, for the four-letter word dump.
func (t *Tracker) Buckets() map[time.Duration][]proto.SessionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[time.Duration][]proto.SessionID, len(t.buckets))
	for deadline, bucket := range t.buckets {
		for id := range bucket {
			out[deadline] = append(out[deadline], id)
		}
	}
	return out
}

func (t *Tracker) leaveBucket(id proto.SessionID, s *tracked) {
	b := t.buckets[s.deadline]
	if delete(b, id); len(b) == 0 {
		delete(t.buckets, s.deadline)
	}
}

func (t *Tracker) enterBucket(id proto.SessionID, s *tracked, deadline time.Duration) {
	s.deadline = deadline
	b := t.buckets[deadline]
	if b == nil {
		b = map[proto.SessionID]*tracked{}
		t.buckets[deadline] = b
	}
	b[id] = s
}
