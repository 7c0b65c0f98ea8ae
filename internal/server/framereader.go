package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/zooraft/zooraft/internal/proto"
)

const (
	// smallReadBytes is the pooled buffer of a connection whose goroutine waits;
	// the usual single request fits. A parked connection has none.
	smallReadBytes = 256
	// largeReadBytes is the pooled buffer of a busy connection.
	largeReadBytes = 64 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallReadBytes]byte) }}
	largeBuffers = sync.Pool{New: func() any { b := make([]byte, largeReadBytes); return &b }}
)

// frameReader cuts the byte stream of one connection into frames. Between two
// frames it can do without a buffer.
type frameReader struct {
	conn     net.Conn
	maxFrame int
	small    *[smallReadBytes]byte // pooled; nil before it is used
	large    *[]byte               // pooled; nil while small is in use
	buf      []byte                // small or large, or nil
	from, to int                   // unread bytes of buf
}

func (r *frameReader) init(conn net.Conn, maxFrame int) {
	r.conn, r.maxFrame = conn, maxFrame
}

// empty tells whether all that was read has been taken.
func (r *frameReader) empty() bool { return r.from == r.to }

// Read implements io.Reader for the rare argument of a four-letter word.
func (r *frameReader) Read(p []byte) (int, error) {
	if r.from == r.to {
		return r.conn.Read(p)
	}
	n := copy(p, r.buf[r.from:r.to])
	r.from += n
	return n, nil
}

// head returns the next 4 bytes and consumes them.
func (r *frameReader) head() ([4]byte, error) {
	var h [4]byte
	if err := r.need(4); err != nil {
		return h, err
	}
	copy(h[:], r.buf[r.from:])
	r.from += 4
	return h, nil
}

// await waits for something to read, if there is nothing yet.
func (r *frameReader) await() error {
	if !r.empty() {
		return nil
	}
	r.shrink()
	return r.need(1)
}

// next returns the next frame, valid until the following call, and whether
// another one is already here in full.
func (r *frameReader) next() (frame []byte, more bool, err error) {
	if r.from == r.to {
		r.shrink()
	}
	h, err := r.head()
	if err != nil {
		return nil, false, err
	}
	frame, err = r.body(int32(binary.BigEndian.Uint32(h[:])))
	return frame, r.complete(), err
}

// body returns the n bytes after a frame's length.
func (r *frameReader) body(length int32) ([]byte, error) {
	n := int(length)
	if n < 0 || n > r.maxFrame {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", proto.ErrFrameLength, n, r.maxFrame)
	}
	if n <= largeReadBytes {
		if err := r.need(n); err != nil {
			return nil, err
		}
		frame := r.buf[r.from : r.from+n : r.from+n]
		r.from += n
		return frame, nil
	}
	return proto.ReadBody(r, nil, n)
}

// complete tells whether a whole frame is in the buffer.
func (r *frameReader) complete() bool {
	if r.to-r.from < 4 {
		return false
	}
	n := int32(binary.BigEndian.Uint32(r.buf[r.from:]))
	return n < 0 || int(n) <= r.to-r.from-4
}

// need reads until n unread bytes are in the buffer, n ≤ largeReadBytes.
func (r *frameReader) need(n int) error {
	if r.buf == nil {
		r.useSmall()
	}
	for r.to-r.from < n {
		switch {
		case r.large == nil && (n > len(r.buf)-r.from || r.to == len(r.buf)):
			r.grow()
		case n > len(r.buf)-r.from:
			r.to = copy(r.buf, r.buf[r.from:r.to])
			r.from = 0
		}
		k, err := r.conn.Read(r.buf[r.to:])
		r.to += k
		if err != nil && r.to-r.from < n {
			if err == io.EOF && r.to > r.from {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// grow moves the unread bytes into a pooled buffer.
func (r *frameReader) grow() {
	r.large = largeBuffers.Get().(*[]byte)
	r.to = copy(*r.large, r.buf[r.from:r.to])
	r.from, r.buf = 0, *r.large
}

// useSmall takes the small buffer, for nothing that is unread.
func (r *frameReader) useSmall() {
	if r.small == nil {
		r.small = smallBuffers.Get().(*[smallReadBytes]byte)
	}
	r.buf, r.from, r.to = r.small[:], 0, 0
}

// shrink gives the large buffer back when all has been read and the last read
// did not fill more than the small one would hold.
func (r *frameReader) shrink() {
	if r.large != nil && r.to <= smallReadBytes {
		largeBuffers.Put(r.large)
		r.large = nil
		r.useSmall()
	}
	r.from, r.to = 0, 0
}

// release gives all buffers back. What is unread is lost.
func (r *frameReader) release() {
	if r.large != nil {
		largeBuffers.Put(r.large)
	}
	if r.small != nil {
		smallBuffers.Put(r.small)
	}
	r.large, r.small, r.buf, r.from, r.to = nil, nil, nil, 0, 0
}
