package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// snappyMagic begins the stream of the snappy library for Java, which Apache
// uses with snapshot.compression.method=snappy. It is followed by two version
// numbers and by blocks of { int length, raw snappy block }. It is not
// snappy's own framing format.
var snappyMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	// snappyMaxBlock is the largest block accepted, in bytes, compressed or
	// not. Java's library writes 32 KiB unless told otherwise, and Apache does
	// not tell it.
	snappyMaxBlock = 16 << 20
	// snappyMaxRatio is above what the format can reach: three bytes of input
	// yield at most 64 of output.
	snappyMaxRatio = 22
)

// snappyReader undoes that stream. An end of input between two blocks is the
// end of the stream: the format has no end mark.
type snappyReader struct {
	r       *bufio.Reader
	started bool
	in, out []byte
	rest    []byte // of out, not handed over yet
}

func (s *snappyReader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next decodes one block into rest, or passes over a stream header. Headers may
// come again, where streams were joined.
func (s *snappyReader) next() error {
	var word [4]byte
	if _, err := io.ReadFull(s.r, word[:]); err != nil {
		return err
	}
	if !s.started || word[0] == snappyMagic[0] {
		s.started = true
		return s.header(word)
	}
	n := binary.BigEndian.Uint32(word[:])
	if n > snappyMaxBlock {
		return fmt.Errorf("%w: snappy block of %d bytes", ErrCorrupt, n)
	}
	if cap(s.in) < int(n) {
		s.in = make([]byte, n)
	}
	s.in = s.in[:n]
	if _, err := io.ReadFull(s.r, s.in); err != nil {
		return unexpected(err)
	}
	var err error
	s.out, err = snappyDecode(s.out[:0], s.in)
	s.rest = s.out
	return err
}

func (s *snappyReader) header(start [4]byte) error {
	var more [12]byte
	if _, err := io.ReadFull(s.r, more[:]); err != nil {
		return unexpected(err)
	}
	if string(start[:])+string(more[:4]) != string(snappyMagic) {
		return fmt.Errorf("%w: snappy header", ErrCorrupt)
	}
	if compatible := binary.BigEndian.Uint32(more[8:]); compatible > 1 {
		return fmt.Errorf("%w: snappy stream needs version %d", ErrCorrupt, compatible)
	}
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// snappyDecode appends the content of one raw block to dst, which is empty.
func snappyDecode(dst, src []byte) ([]byte, error) {
	bad := func(why string) ([]byte, error) {
		return nil, fmt.Errorf("%w: snappy block: %s", ErrCorrupt, why)
	}
	want, n := binary.Uvarint(src)
	if n <= 0 || want > snappyMaxBlock || want > uint64(len(src))*snappyMaxRatio {
		return bad("impossible length")
	}
	if uint64(cap(dst)) < want {
		dst = make([]byte, 0, want)
	}
	for src = src[n:]; len(src) > 0; {
		length, offset, used := snappyElement(src)
		if used == 0 || used > len(src) {
			return bad("cut element")
		}
		src = src[used:]
		if uint64(length) > want-uint64(len(dst)) {
			return bad("longer than it says")
		}
		if offset == 0 {
			if length > len(src) {
				return bad("cut literal")
			}
			dst = append(dst, src[:length]...)
			src = src[length:]
			continue
		}
		if offset < 0 || offset > len(dst) {
			return bad("copy from before the start")
		}
		// A copy may overlap what it writes: that is how runs are encoded.
		for range length {
			dst = append(dst, dst[len(dst)-offset])
		}
	}
	if uint64(len(dst)) != want {
		return bad("shorter than it says")
	}
	return dst, nil
}

// snappyElement reads the tag at the start of src: its length, how far back it
// copies from (0 for a literal, −1 for an impossible 0), and the bytes that the
// tag takes, 0 if they are not all there.
func snappyElement(src []byte) (length, offset, used int) {
	tag := src[0]
	switch tag & 3 {
	case 0:
		length = int(tag >> 2)
		if length < 60 {
			return length + 1, 0, 1
		}
		extra := length - 59
		if len(src) < 1+extra {
			return 0, 0, 0
		}
		length = 0
		for i := range extra {
			length |= int(src[1+i]) << (8 * i)
		}
		return length + 1, 0, 1 + extra
	case 1:
		if len(src) < 2 {
			return 0, 0, 0
		}
		length, offset, used = int(tag>>2&7)+4, int(tag>>5)<<8|int(src[1]), 2
	case 2:
		if len(src) < 3 {
			return 0, 0, 0
		}
		length, offset, used = int(tag>>2)+1, int(binary.LittleEndian.Uint16(src[1:])), 3
	default:
		if len(src) < 5 {
			return 0, 0, 0
		}
		length, offset, used = int(tag>>2)+1, int(binary.LittleEndian.Uint32(src[1:])), 5
	}
	if offset == 0 {
		offset = -1
	}
	return length, offset, used
}
