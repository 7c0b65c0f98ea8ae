package server

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// parkedConn waits until the only connection of the server is parked.
func parkedConn(t *testing.T, s *Server) (c *conn) {
	t.Helper()
	eventually(t, "the connection is parked", func() bool {
		all := s.conns.all()
		if len(all) != 1 {
			return false
		}
		c = all[0]
		return c.parked.Load()
	})
	return c
}

func pingFrame() []byte {
	return proto.EndFrame(proto.AppendInt(proto.AppendInt(proto.BeginFrame(nil), proto.XidPing), int32(proto.OpPing)), 0)
}

func TestAParkedConnectionIsServedAsAnyOther(t *testing.T) {
	ping := pingFrame()
	for _, test := range []struct {
		name string
		do   func(t *testing.T, s *Server, c *client, parked *conn)
	}{
		{"a request is answered, and the connection parked again", func(t *testing.T, s *Server, c *client, _ *conn) {
			for range 3 {
				<-time.After(lull + lull/2) // else it is busy, and its goroutine stays
				c.write(ping)
				if _, err := proto.ReadFrame(c.net, nil, 1<<20); err != nil {
					t.Fatal(err)
				}
				parkedConn(t, s)
			}
		}},
		{"a request in two pieces is answered", func(t *testing.T, _ *Server, c *client, _ *conn) {
			for _, piece := range [][]byte{ping[:3], ping[3:7], ping[7:]} {
				c.write(piece)
				<-time.After(5 * time.Millisecond)
			}
			if _, err := proto.ReadFrame(c.net, nil, 1<<20); err != nil {
				t.Fatal(err)
			}
		}},
		{"the client closes it", func(t *testing.T, s *Server, c *client, _ *conn) {
			if err := c.net.Close(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the connection is gone", func() bool { return s.conns.count() == 0 })
		}},
		{"the client only says that it sends no more", func(t *testing.T, s *Server, c *client, _ *conn) {
			if err := c.net.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the connection is gone", func() bool { return s.conns.count() == 0 })
		}},
		{"the client resets it", func(t *testing.T, s *Server, c *client, _ *conn) {
			if err := errors.Join(c.net.(*net.TCPConn).SetLinger(0), c.net.Close()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the connection is gone", func() bool { return s.conns.count() == 0 })
		}},
		{"the server closes it", func(t *testing.T, s *Server, c *client, parked *conn) {
			parked.close(reasonTest, "")
			if _, err := proto.ReadFrame(c.net, nil, 1<<20); !errors.Is(err, io.EOF) {
				t.Fatalf("the client reads %v", err)
			}
			eventually(t, "the connection is gone", func() bool { return s.conns.count() == 0 })
		}},
		{"the server closes it behind what it has to say", func(t *testing.T, s *Server, c *client, parked *conn) {
			parked.Push(ping)
			parked.closeBehind(reasonTest)
			parked.out.kick()
			if _, err := proto.ReadFrame(c.net, nil, 1<<20); err != nil {
				t.Fatal(err)
			}
			if _, err := proto.ReadFrame(c.net, nil, 1<<20); !errors.Is(err, io.EOF) {
				t.Fatalf("the client reads %v", err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, testConfig(t))
			c := connect(t, s, proto.ConnectRequest{})
			_ = c.net.SetDeadline(time.Now().Add(waitLimit)) // fails only on a closed socket
			test.do(t, s, c, parkedConn(t, s))
		})
	}
}

// Connections that are parked, told and closed from both ends at the same time
// leave nothing behind, and the server can stop in the middle of it: its stop
// waits for all goroutines.
func TestParkingAndClosingDoNotMeet(t *testing.T) {
	s := startServer(t, testConfig(t))
	ping := pingFrame()
	var clients sync.WaitGroup
	for range 60 {
		c := connect(t, s, proto.ConnectRequest{})
		clients.Go(func() {
			for range rand.IntN(4) {
				_, _ = c.net.Write(ping) // the server may have closed it
				<-time.After(time.Duration(rand.IntN(130)) * time.Millisecond)
			}
			_ = c.net.Close()
		})
	}
	for _, c := range s.conns.all() {
		if rand.IntN(3) == 0 {
			c.close(reasonTest, "")
		}
	}
	clients.Wait()
	eventually(t, "all connections are gone", func() bool { return s.conns.count() == 0 })
	for range 20 {
		connect(t, s, proto.ConnectRequest{})
	}
}
