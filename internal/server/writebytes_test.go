package server

import (
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestTheBytesOfWritesOnTheirWayAreBounded(t *testing.T) {
	var w writeBytes
	for i, step := range []struct {
		admit   int
		want    bool
		release int
	}{
		{admit: 100 << 20, want: true}, // alone
		{admit: 1, want: false, release: 100 << 20},
		{admit: writesMaxBytes - 1, want: true},
		{admit: writesMaxBytes + 2, want: false},
		{admit: writesMaxBytes + 1, want: true},
		{admit: 1, want: false, release: writesMaxBytes - 1},
		{admit: 1, want: false, release: 2},
		{admit: 1, want: true, release: writesMaxBytes},
	} {
		if got := w.admit(step.admit); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
		w.release(step.release)
	}
	if left := w.sum.Load(); left != 0 {
		t.Errorf("%d bytes are left", left)
	}
}

// A write that waits for room is answered when there is some, and the session is
// heard meanwhile; one of a connection that is closed leaves nothing behind.
func TestAWriteWaitsForRoomAndGivesItBack(t *testing.T) {
	s := startServer(t, testConfig(t))
	waits, ends := connect(t, s, proto.ConnectRequest{}), connect(t, s, proto.ConnectRequest{})
	body := createBody("/n", "data", 0)
	s.writes.sum.Store(writesMaxBytes)
	waits.send(proto.OpCreate, body)
	ends.send(proto.OpCreate, createBody("/m", "data", 0))
	eventually(t, "both are in work", func() bool { return s.outstanding.Load() == 2 })
	if err := ends.net.Close(); err != nil {
		t.Fatal(err)
	}
	s.writes.release(writesMaxBytes)
	if r := waits.must(); r.Err != proto.ErrOK {
		t.Errorf("the write: %v", r)
	}
	eventually(t, "nothing is in work", func() bool { return s.outstanding.Load() == 0 && s.writes.sum.Load() == 0 })
}
