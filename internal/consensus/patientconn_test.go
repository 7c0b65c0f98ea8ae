package consensus

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// slowConn is a connection over which a part takes a fixed time, by its own clock.
type slowConn struct {
	net.Conn
	clock           time.Time
	takes           time.Duration
	readBy, writeBy time.Time
	written         int
}

func (c *slowConn) SetDeadline(t time.Time) error      { c.readBy, c.writeBy = t, t; return nil }
func (c *slowConn) SetReadDeadline(t time.Time) error  { c.readBy = t; return nil }
func (c *slowConn) SetWriteDeadline(t time.Time) error { c.writeBy = t; return nil }

// pass lets the time of one part go by.
func (c *slowConn) pass(by time.Time) error {
	if c.clock = c.clock.Add(c.takes); !by.IsZero() && c.clock.After(by) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (c *slowConn) Write(b []byte) (int, error) {
	if len(b) > progressBytes {
		return 0, errors.New("written in one part")
	}
	if err := c.pass(c.writeBy); err != nil {
		return 0, err
	}
	c.written += len(b)
	return len(b), nil
}

func (c *slowConn) Read(b []byte) (int, error) { return len(b), c.pass(c.readBy) }

func TestAMessageMayTakeLongAsLongAsItGetsOn(t *testing.T) {
	const length = 40*progressBytes + 1
	for _, c := range []struct {
		name  string
		takes time.Duration
		begin func(c net.Conn, until time.Time) error
		want  error
	}{
		{"a question over a slow way", progressTime * 3 / 4, net.Conn.SetDeadline, nil},
		{"one of a pipeline", progressTime * 3 / 4, net.Conn.SetWriteDeadline, nil},
		{"a way over which nothing gets", progressTime * 5 / 4, net.Conn.SetDeadline, os.ErrDeadlineExceeded},
		{"a pipeline over such a way", progressTime * 5 / 4, net.Conn.SetWriteDeadline, os.ErrDeadlineExceeded},
		{"no deadline", time.Hour, func(c net.Conn, _ time.Time) error { return c.SetDeadline(time.Time{}) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			way := &slowConn{takes: c.takes, clock: time.Unix(1_800_000_000, 0)}
			conn := newPatientConn(way)
			conn.now = func() time.Time { return way.clock }
			if err := c.begin(conn, way.clock.Add(progressTime)); err != nil {
				t.Fatal(err)
			}
			n, err := conn.Write(make([]byte, length))
			if !errors.Is(err, c.want) || n != way.written || err == nil && n != length {
				t.Fatalf("%d of %d bytes, %v", n, length, err)
			}
			if c.want == nil {
				if _, err := conn.Read(make([]byte, 10)); err != nil {
					t.Errorf("its answer: %v", err)
				}
			}
		})
	}
	t.Run("an answer of a pipeline has its own deadline", func(t *testing.T) {
		way := &slowConn{clock: time.Unix(1_800_000_000, 0)}
		conn := newPatientConn(way)
		conn.now = func() time.Time { return way.clock }
		by := way.clock.Add(progressTime)
		_ = conn.SetDeadline(by)
		_ = conn.SetReadDeadline(by)
		way.takes = 2 * progressTime
		if _, err := conn.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it came after its deadline: %v", err)
		}
	})
}
