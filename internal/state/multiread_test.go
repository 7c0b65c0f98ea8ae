package state

import (
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// One frame may ask for the largest node tens of thousands of times; what does
// not fit any more fails by itself.
func TestAMultiReadFailsWhatIsBehindItsLimit(t *testing.T) {
	m := newMachine(t)
	c := newClient(1, 1)
	m.entry(c.create())
	m.entry(c.command(proto.OpCreate, createBody("/n", 0, strings.Repeat("x", 1000))))
	ops := make([]proto.MultiOp, 50)
	for i := range ops {
		ops[i] = proto.MultiOp{Type: proto.OpGetData, Read: proto.PathWatch{Path: "/n"}}
	}
	for limit, want := range map[int]int{0: 50, 1 << 20: 50, 10_000: 10, 1: 1} {
		box := &outbox{session: 1}
		m.Read(box, &ReadRequest{Header: proto.RequestHeader{Xid: 1, Type: proto.OpMultiRead},
			Body: proto.AppendMulti(nil, ops), Identities: anyone, MultiReadMaxBytes: limit}, nil)
		got := box.take()
		if len(got) != 1 || got[0].Err != proto.ErrOK {
			t.Fatalf("limit %d: %+v", limit, got)
		}
		d := proto.NewDecoder(got[0].body)
		answered := 0
		for i := range ops {
			h := d.MultiHeader()
			switch {
			case h.Type == proto.OpGetData && answered == i:
				d.Buffer()
				d.Stat()
				answered++
			case h.Type == proto.OpError && h.Err == proto.ErrMarshalling && d.Int() == int32(proto.ErrMarshalling):
			default:
				t.Fatalf("limit %d, op %d: %+v", limit, i, h)
			}
		}
		if h := d.MultiHeader(); d.Err() != nil || !h.Done || len(d.Rest()) != 0 || answered != want {
			t.Errorf("limit %d: %d ops answered, want %d; end %+v, %v", limit, answered, want, h, d.Err())
		}
	}
}
