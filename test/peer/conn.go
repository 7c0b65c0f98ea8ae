package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

var (
	// ErrClosed is returned when the server has closed the connection, with
	// or without a TCP reset.
	ErrClosed = errors.New("peer: the server closed the connection")
	// ErrTimeout is returned when nothing came within the time given.
	ErrTimeout = errors.New("peer: nothing came in time")
)

// maxReceiveBytes bounds a frame from a server, which does not limit what it
// sends: a longer one is a broken stream.
const maxReceiveBytes = 256 << 20

// Conn is a raw connection to a server: frames out, frames in. Sending and
// receiving may be done by two goroutines, one each.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// Dial opens a connection and sends nothing. It is closed at the test's end.
func Dial(tb testing.TB, addr string) *Conn {
	tb.Helper()
	c, err := Open(addr)
	if err != nil {
		tb.Fatalf("peer: %v", err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// Open is Dial for callers without a test at hand.
func Open(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		// A server that closes at accept can be faster than connect.
		return nil, classify(err)
	}
	return &Conn{Conn: c, r: bufio.NewReader(c)}, nil
}

// SendRaw writes bytes as they are, without a length in front.
func (c *Conn) SendRaw(b []byte) error {
	_, err := c.Write(b)
	return classify(err)
}

// Send writes one frame: the payload's length and the payload.
func (c *Conn) Send(payload []byte) error {
	return c.SendRaw(append(proto.AppendInt(nil, int32(len(payload))), payload...))
}

// SendRequest writes one frame that holds a request header and a body.
func (c *Conn) SendRequest(xid int32, op proto.OpCode, body []byte) error {
	b := proto.AppendInt(proto.AppendInt(nil, xid), int32(op))
	return c.Send(append(b, body...))
}

// Receive returns the next frame's payload, ErrClosed after a close, or
// ErrTimeout. After ErrTimeout the stream may stand within a frame: do not
// receive again.
func (c *Conn) Receive(timeout time.Duration) ([]byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	b, err := proto.ReadFrame(c.r, nil, maxReceiveBytes)
	return b, classify(err)
}

// Connect sends a connect request and returns the answer.
func (c *Conn) Connect(req proto.ConnectRequest, timeout time.Duration) (proto.ConnectResponse, error) {
	if err := c.Send(req.Append(nil)); err != nil {
		return proto.ConnectResponse{}, err
	}
	b, err := c.Receive(timeout)
	if err != nil {
		return proto.ConnectResponse{}, err
	}
	return proto.DecodeConnectResponse(b)
}

// Call sends a request and returns the next reply, dropping notifications
// before it. Only for callers that have no other request under way.
func (c *Conn) Call(xid int32, op proto.OpCode, body []byte, timeout time.Duration) (proto.ReplyHeader, []byte, error) {
	if err := c.SendRequest(xid, op, body); err != nil {
		return proto.ReplyHeader{}, nil, err
	}
	for {
		b, err := c.Receive(timeout)
		if err != nil {
			return proto.ReplyHeader{}, nil, err
		}
		d := proto.NewDecoder(b)
		h := d.ReplyHeader()
		if d.Err() != nil {
			return h, nil, fmt.Errorf("peer: a reply of %d bytes: %w", len(b), d.Err())
		}
		if h.Xid != proto.XidNotification {
			return h, d.Rest(), nil
		}
	}
}

// classify turns the many forms of a close and of a deadline into one each.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %v", ErrTimeout, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: %v", ErrClosed, err)
	}
	return err
}
