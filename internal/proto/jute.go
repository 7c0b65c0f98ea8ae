package proto

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"
)

// ErrTruncated is returned when a record ends before its last field, or when a
// length field is negative (other than −1) or longer than what is left. The
// client's answer to it is ErrMarshalling.
var ErrTruncated = errors.New("proto: record is truncated or has an impossible length")

// NullString stands for jute's null string (length −1), which is distinct from
// the empty one. It is not valid UTF-8, so that no decoded string equals it.
const NullString = "\xff"

// Decoder reads jute primitives from a byte slice. The first failure sticks:
// all later reads return zero values, and Err tells it. It allocates in
// proportion to the input, whatever lengths the input claims.
type Decoder struct {
	buf []byte
	off int
	err error
}

// NewDecoder returns a decoder of b. Buffers that it returns alias b.
func NewDecoder(b []byte) *Decoder { return &Decoder{buf: b} }

// Err returns ErrTruncated if any read so far failed, else nil.
func (d *Decoder) Err() error { return d.err }

// Rest returns the bytes not read yet.
func (d *Decoder) Rest() []byte { return d.buf[d.off:] }

func (d *Decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.buf)-d.off {
		d.err = ErrTruncated
		return nil
	}
	b := d.buf[d.off : d.off+n : d.off+n]
	d.off += n
	return b
}

// Int reads a 4-byte big-endian integer.
func (d *Decoder) Int() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Long reads an 8-byte big-endian integer.
func (d *Decoder) Long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads one byte; any value but 0 is true.
func (d *Decoder) Bool() bool {
	if b := d.take(1); b != nil {
		return b[0] != 0
	}
	return false
}

// Buffer reads a length and that many bytes; nil stands for null (−1), an
// empty non-nil slice for length 0. The slice aliases the decoder's input.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	if n == -1 || d.err != nil {
		return nil
	}
	b := d.take(int(n))
	if b == nil && d.err == nil {
		return []byte{}
	}
	return b
}

// String reads a string, NullString for null. Malformed UTF-8 becomes U+FFFD
// as in Java's decoder, so that the result is always valid UTF-8.
func (d *Decoder) String() string {
	n := d.Int()
	if d.err != nil {
		return ""
	}
	if n == -1 {
		return NullString
	}
	return DecodeText(d.take(int(n)))
}

// Count reads the element count of a vector whose elements take at least
// minSize bytes each. It returns −1 for null. A count below −1 is an empty
// vector, as in ZooKeeper's reader.
func (d *Decoder) Count(minSize int) int {
	n := int(d.Int())
	switch {
	case d.err != nil:
		return 0
	case n < -1:
		return 0
	case n > 0 && n > (len(d.buf)-d.off)/minSize:
		d.err = ErrTruncated
		return 0
	}
	return n
}

// Strings reads a vector of strings; nil stands for null.
func (d *Decoder) Strings() []string {
	n := d.Count(4)
	if n < 0 || d.err != nil {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, d.String())
	}
	if d.err != nil {
		return nil
	}
	return out
}

// DecodeText decodes bytes as Java's String(bytes, UTF_8) does: each maximal
// malformed part becomes one U+FFFD.
func DecodeText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = malformedLen(b)
		}
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// malformedLen returns the length of the malformed sequence at the start of b:
// a lead byte with those continuation bytes that could still have been right.
// Java takes an encoded surrogate (ed a0 80 and above) for one such sequence,
// where Go and the Unicode standard see three.
func malformedLen(b []byte) int {
	lo, hi, want := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		want = 1
	case c >= 0xe0 && c <= 0xef:
		want = 2
		if c == 0xe0 {
			lo = 0xa0
		}
	case c >= 0xf0 && c <= 0xf4:
		want = 3
		if c == 0xf0 {
			lo = 0x90
		}
		if c == 0xf4 {
			hi = 0x8f
		}
	}
	n := 1
	for n <= want && n < len(b) && b[n] >= lo && b[n] <= hi {
		n++
		lo, hi = 0x80, 0xbf
	}
	return n
}

// The Append functions add one jute primitive to dst and return it.

// AppendInt adds a 4-byte big-endian integer.
func AppendInt(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendLong adds an 8-byte big-endian integer.
func AppendLong(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendBool adds one byte, 1 for true.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendBuffer adds a length and the bytes; nil becomes null.
func AppendBuffer(dst []byte, v []byte) []byte {
	if v == nil {
		return AppendInt(dst, -1)
	}
	return append(AppendInt(dst, int32(len(v))), v...)
}

// AppendString adds a length and the bytes; NullString becomes null.
func AppendString(dst []byte, v string) []byte {
	if v == NullString {
		return AppendInt(dst, -1)
	}
	return append(AppendInt(dst, int32(len(v))), v...)
}

// AppendStrings adds a vector of strings; nil becomes null.
func AppendStrings(dst []byte, v []string) []byte {
	if v == nil {
		return AppendInt(dst, -1)
	}
	dst = AppendInt(dst, int32(len(v)))
	for _, s := range v {
		dst = AppendString(dst, s)
	}
	return dst
}
