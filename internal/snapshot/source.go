package snapshot

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"

	"github.com/zooraft/zooraft/internal/proto"
)

// growStep is how much memory a length field of the input may claim before its
// bytes have arrived, in bytes.
const growStep = 1 << 20

// source reads an input's uncompressed bytes, counting each into both
// checksums. The first error sticks: later reads return zero values.
type source struct {
	r       *bufio.Reader
	adler   hash.Hash32
	crc     uint32
	off     int64 // bytes read so far, uncompressed
	scratch []byte
	decoder proto.Decoder // of the part that small read last
	err     error
}

// newSource looks at the first bytes and undoes the compression they tell.
func newSource(r io.Reader) (*source, error) {
	plain := bufio.NewReaderSize(r, bufferSize)
	s := &source{r: plain, adler: adler32.New(), scratch: make([]byte, 0, 512)}
	head, err := plain.Peek(len(snappyMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		z, err := gzip.NewReader(plain)
		if err != nil {
			return nil, s.readError("the gzip header", err)
		}
		s.r = bufio.NewReaderSize(z, bufferSize)
	case bytes.Equal(head, snappyMagic):
		s.r = bufio.NewReaderSize(&snappyReader{r: plain}, bufferSize)
	}
	return s, nil
}

// small reads n bytes, at most 512, and returns a decoder of them that is
// valid until the next call.
func (s *source) small(what string, n int) *proto.Decoder {
	s.decoder = proto.Decoder{}
	if s.err != nil {
		return &s.decoder
	}
	b := s.scratch[:n]
	if _, err := io.ReadFull(s.r, b); err != nil {
		s.err = s.readError(what, err)
		return &s.decoder
	}
	s.account(b)
	s.decoder = *proto.NewDecoder(b)
	return &s.decoder
}

// appendBytes reads n bytes behind dst, taking memory only as they arrive.
func (s *source) appendBytes(what string, dst []byte, n int32) []byte {
	if n < 0 {
		s.err = s.corrupt(what, fmt.Sprintf("length %d", n))
		return nil
	}
	for left := int(n); left > 0; {
		step := min(left, growStep)
		start := len(dst)
		if start == 0 {
			dst = make([]byte, step)
		} else {
			dst = append(dst, make([]byte, step)...)
		}
		if _, err := io.ReadFull(s.r, dst[start:]); err != nil {
			s.err = s.readError(what, err)
			return nil
		}
		s.account(dst[start:])
		left -= step
	}
	return dst
}

// readError names the error of a read by kind: an input that ends, damaged
// compression, or the reader's own failure.
func (s *source) readError(what string, err error) error {
	var inflate flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: in %s, behind byte %d", ErrTruncated, what, s.off)
	case errors.Is(err, ErrCorrupt):
		return fmt.Errorf("%w (in %s, behind byte %d)", err, what, s.off)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &inflate):
		return s.corrupt(what, err.Error())
	}
	return fmt.Errorf("snapshot: reading %s: %w", what, err)
}

func (s *source) corrupt(what, why string) error {
	return fmt.Errorf("%w: in %s, before byte %d: %s", ErrCorrupt, what, s.off, why)
}

// adlerContinue returns the checksum as it would be after b, without counting b.
func adlerContinue(h hash.Hash32, b []byte) uint32 {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	next := adler32.New()
	if err == nil {
		err = next.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
	}
	if err != nil {
		panic("snapshot: the Adler-32 of the standard library cannot copy its state: " + err.Error())
	}
	next.Write(b)
	return next.Sum32()
}
