package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxFrameBytes is ZooKeeper's default of jute.maxbuffer: the longest
// frame accepted, without its 4-byte length (0xfffff, not 1 MiB).
const DefaultMaxFrameBytes = 0xfffff

// ErrFrameLength is returned when a frame's length is negative or above the
// limit; nothing has been set aside for it.
var ErrFrameLength = errors.New("proto: frame length out of range")

// ReadFrame reads one frame into buf if it fits, else into a new slice that
// grows as bytes arrive, so that a length alone reserves no memory.
func ReadFrame(r io.Reader, buf []byte, maxBytes int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > maxBytes {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrFrameLength, n, maxBytes)
	}
	return ReadBody(r, buf, n)
}

// growBytes is how much of a long frame is set aside before it arrives.
const growBytes = 64 << 10

// ReadBody reads the n bytes of a frame whose length has been read already.
func ReadBody(r io.Reader, buf []byte, n int) ([]byte, error) {
	if n <= cap(buf) {
		buf = buf[:n]
		_, err := io.ReadFull(r, buf)
		return buf, err
	}
	got := 0
	buf = make([]byte, min(n, growBytes))
	for {
		k, err := io.ReadFull(r, buf[got:])
		got += k
		if err != nil || got == n {
			return buf[:got], err
		}
		next := make([]byte, min(n, 2*len(buf)))
		copy(next, buf[:got])
		buf = next
	}
}

// BeginFrame appends room for a frame's length; EndFrame fills it in.
func BeginFrame(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// EndFrame writes the length of the frame that begins at start in dst.
func EndFrame(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}
