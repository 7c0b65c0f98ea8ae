package server

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
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

// BenchmarkTheFloorOfAFanOut is what no server can do without: a write of an event's
// bytes to each of 9000 sockets, by one and by two goroutines, and (read-ns/event)
// what the clients then need to read them.
func BenchmarkTheFloorOfAFanOut(b *testing.B) {
	const sockets = 9000
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var ours [sockets]syscall.RawConn
	var theirs [sockets]net.Conn
	for i := range sockets {
		if theirs[i], err = net.Dial("tcp", ln.Addr().String()); err != nil {
			b.Fatal(err)
		}
		c, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _, _ = c.Close(), theirs[i].Close() }()
		if ours[i], err = c.(*net.TCPConn).SyscallConn(); err != nil {
			b.Fatal(err)
		}
	}
	event, in := make([]byte, 80), make([]byte, 512)
	for _, writers := range []int{1, 2} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			var reading time.Duration
			for b.Loop() {
				var all sync.WaitGroup
				for w := range writers {
					all.Go(func() {
						out := newPromptWriter()
						for i := w; i < sockets; i += writers {
							out.write(ours[i], event)
						}
					})
				}
				all.Wait()
				b.StopTimer()
				begin := time.Now()
				for _, c := range theirs {
					if _, err := c.Read(in); err != nil {
						b.Fatal(err)
					}
				}
				reading += time.Since(begin)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sockets, "ns/event")
			b.ReportMetric(float64(reading.Nanoseconds())/float64(b.N)/sockets, "read-ns/event")
		})
	}
}
