package snapshot

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
)

func TestCompressedFilesAreReadByContent(t *testing.T) {
	whole := mustWrite(t, smallContent())
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	z.Write(whole)
	z.Close()
	for name, b := range map[string][]byte{
		"gzip": gz.Bytes(), "snappy, one block": snappyEncode(whole, len(whole)), "snappy, many blocks": snappyEncode(whole, 99),
		"snappy, two streams joined": append(snappyEncode(whole[:50], 50), snappyEncode(whole[50:], 64)...),
	} {
		t.Run(name, func(t *testing.T) {
			got, trailer, err := readAll(b)
			if err != nil || !reflect.DeepEqual(got.nodes, smallNodes()) || string(trailer.Extension) != "owner's block" {
				t.Fatalf("%v, %v, %v", got.nodes, trailer, err)
			}
			for n := range b {
				_, _, err := readAll(b[:n])
				inMagic := n < len(snappyMagic) && errors.Is(err, ErrNotSnapshot)
				if !errors.Is(err, ErrTruncated) && !inMagic {
					t.Errorf("cut to %d of %d bytes: error %v, want ErrTruncated", n, len(b), err)
				}
			}
			for bit := range len(b) * 8 {
				bad := bytes.Clone(b)
				bad[bit/8] ^= 1 << (bit % 8)
				got, _, err := readAll(bad)
				// Some bits of the wrapping mean nothing (a time, a version): then
				// the content must be whole.
				if err == nil && !reflect.DeepEqual(got.nodes, smallNodes()) {
					t.Errorf("bit %d of byte %d flipped: other nodes and no error", bit%8, bit/8)
				}
				if err != nil && !isRefusal(err) {
					t.Errorf("bit %d of byte %d flipped: error %v", bit%8, bit/8, err)
				}
			}
		})
	}
}

// snappyEncode writes Java's stream with literals only.
func snappyEncode(b []byte, block int) []byte {
	out := append(bytes.Clone(snappyMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(b) > 0 {
		n := min(block, len(b))
		raw := binary.AppendUvarint(nil, uint64(n))
		for part := b[:n]; len(part) > 0; {
			k := min(60, len(part))
			raw = append(append(raw, byte(k-1)<<2), part[:k]...)
			part = part[k:]
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(raw))), raw...)
		b = b[n:]
	}
	return out
}

func TestSnappyElementsDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want string
	}{
		"a literal":                      {[]byte{3, 2 << 2, 'a', 'b', 'c'}, "abc"},
		"a literal with a length byte":   {[]byte{3, 60 << 2, 2, 'a', 'b', 'c'}, "abc"},
		"a short copy that overlaps":     {[]byte{7, 1 << 2, 'a', 'b', 1<<2 | 1, 2}, "abababa"},
		"a copy with a two-byte offset":  {[]byte{4, 1 << 2, 'a', 'b', 1<<2 | 2, 2, 0}, "abab"},
		"a copy with a four-byte offset": {[]byte{4, 1 << 2, 'a', 'b', 1<<2 | 3, 2, 0, 0, 0}, "abab"},
		"a copy of nothing":              {[]byte{6, 1 << 2, 'a', 'b', 1, 0}, ""},
		"a copy from before the start":   {[]byte{6, 1 << 2, 'a', 'b', 1, 3}, ""},
		"more than announced":            {[]byte{2, 2 << 2, 'a', 'b', 'c'}, ""},
		"less than announced":            {[]byte{4, 2 << 2, 'a', 'b', 'c'}, ""},
		"a cut literal":                  {[]byte{4, 3 << 2, 'a', 'b', 'c'}, ""},
		"a cut tag":                      {[]byte{4, 1 << 2, 'a', 'b', 1<<2 | 2, 2}, ""},
		"a length out of proportion":     {[]byte{0xff, 0xff, 0x03, 0, 'a'}, ""},
		"nothing":                        {nil, ""},
	} {
		got, err := snappyDecode(nil, tc.in)
		if string(got) != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tc.want)
		}
	}
}
