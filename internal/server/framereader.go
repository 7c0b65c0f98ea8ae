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
	// smallReadBytes is the buffer that an idle connection keeps; the usual
	// single request fits.
	smallReadBytes = 256
	// largeReadBytes is the pooled buffer of a busy connection.
	largeReadBytes = 64 << 10
)

var largeBuffers = sync.Pool{New: func() any { b := make([]byte, largeReadBytes); return &b }}

// frameReader cuts the byte stream of one connection into frames. While the
// connection is idle it holds only the small buffer inside it.
type frameReader struct {
	conn     net.Conn
	maxFrame int
	small    [smallReadBytes]byte
	large    *[]byte // pooled; nil while small is in use
	buf      []byte  // small or large
	from, to int     // unread bytes of buf
}

func (r *frameReader) init(conn net.Conn, maxFrame int) {
	r.conn, r.maxFrame = conn, maxFrame
	r.buf = r.small[:]
}

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

// shrink gives the pooled buffer back when all has been read and the last read
// did not fill more than the small one would hold.
func (r *frameReader) shrink() {
	if r.large != nil && r.to <= smallReadBytes {
		r.release()
	}
	r.from, r.to = 0, 0
}

// release gives the pooled buffer back.
func (r *frameReader) release() {
	if r.large != nil {
		largeBuffers.Put(r.large)
		r.large, r.buf = nil, r.small[:]
		r.from, r.to = 0, 0
	}
}
