package server

import (
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/proto"
)

// heardAt is the reports' side of server 2, whose process has run for a while.
func heardAt(up time.Duration) *heard {
	return newHeard(&Server{serverID: 2, config: config.Default(), clock: Clock{Monotonic: func() time.Duration { return up }}, stopped: make(chan struct{})})
}

// confirmation is what a leader sends for a report that was built at a time.
func confirmation(server, built int64) []byte {
	return proto.AppendLong(proto.AppendLong([]byte{messageConfirmed}, server), built)
}

// A leader may keep what it owes the former process of a server, which had run for
// days, and confirm it after that server's restart. It must not count: the server
// would take all that its clients say for confirmed already, report nothing for as
// many days, and the leader would expire their sessions.
func TestAConfirmationForAFormerProcessIsNone(t *testing.T) {
	former := heardAt(10 * 24 * time.Hour)
	k := heardAt(time.Minute)
	k.take(1, confirmation(2, former.base+int64(10*24*time.Hour)))
	k.take(1, confirmation(2, int64(30*time.Second)))        // without any base
	k.take(1, confirmation(2, k.base+int64(2*time.Minute)))  // of the future
	k.take(1, confirmation(3, k.base+int64(30*time.Second))) // another server's
	if got := k.confirmed.Load(); got != 0 {
		t.Errorf("confirmed up to %v", time.Duration(got))
	}
	k.take(1, confirmation(2, k.base+int64(30*time.Second)))
	if got := time.Duration(k.confirmed.Load()); got != 30*time.Second {
		t.Errorf("the own report is confirmed up to %v", got)
	}
}

// What was owed in a reign is not confirmed in a later one.
func TestWhatIsOwedEndsWithTheReign(t *testing.T) {
	k := heardAt(time.Minute)
	s := k.server
	k.owed[3] = 7
	s.running.Add(1)
	go k.confirm()
	k.doubt()
	deadline := time.After(30 * time.Second)
	for owes := true; owes; {
		k.mu.Lock()
		owes = len(k.owed) > 0
		k.mu.Unlock()
		select {
		case <-deadline:
			t.Fatal("it is still owed")
		case <-time.After(time.Millisecond):
		}
	}
	close(s.stopped)
	s.running.Wait()
}
