package server

import (
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// sink is a connection that takes everything.
type sink struct{ net.Conn }

func (sink) Write(b []byte) (int, error)      { return len(b), nil }
func (sink) Read([]byte) (int, error)         { return 0, io.EOF }
func (sink) SetDeadline(time.Time) error      { return nil }
func (sink) SetReadDeadline(time.Time) error  { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) Close() error                     { return nil }

// BenchmarkRequestsBesideEachOther is what a read costs from its frame to the
// outbox, sockets left out, by as many connections as there are processors (-cpu):
// what of it is shared keeps them from one another. Sixteen requests come together.
func BenchmarkRequestsBesideEachOther(b *testing.B) {
	s := startServer(b, testConfig(b))
	writer := connect(b, s, proto.ConnectRequest{})
	if r := writer.create("/a", string(make([]byte, 1024)), 0); r.Err != 0 {
		b.Fatal(r)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var sessions atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		c := newConn(s, s.lastConn.Add(1), sink{}, netip.MustParseAddrPort("127.0.0.1:1"))
		c.session.Store(sessions.Add(1))
		frame := proto.AppendInt(proto.AppendInt(nil, 1), int32(proto.OpGetData))
		frame = append(frame, pathBody("/a", false)...)
		for n := 1; pb.Next(); n++ {
			if !c.handle(frame, s.clock.Monotonic()) {
				b.Error("the connection was closed")
				return
			}
			if n%16 == 0 {
				c.out.flush()
			}
			c.holdBack()
		}
		c.out.flush()
	})
}
