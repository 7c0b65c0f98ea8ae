package consensus

import (
	"bytes"
	"errors"
	"testing"
)

func TestEntriesDecodeToWhatWasEncoded(t *testing.T) {
	cases := []struct {
		name     string
		commands [][]byte
	}{
		{"one command", [][]byte{[]byte("a")}},
		{"an empty command", [][]byte{{}}},
		{"several", [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("x"), 100_000)}},
		{"none", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, err := decodeEntry(encodeEntry(-5, 0xdeadbeef, c.commands))
			if err != nil || e.timeMillis != -5 || e.flags != 0xdeadbeef || len(e.commands) != len(c.commands) {
				t.Fatalf("%+v, %v", e, err)
			}
			for i := range c.commands {
				if !bytes.Equal(e.commands[i], c.commands[i]) {
					t.Errorf("command %d differs", i)
				}
			}
		})
	}
}

func TestEveryCutAndEveryOtherFormatOfAnEntryIsRefused(t *testing.T) {
	good := encodeEntry(1, 2, [][]byte{[]byte("one"), []byte("two")})
	for n := range good {
		if _, err := decodeEntry(good[:n]); !errors.Is(err, ErrEntryFormat) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := decodeEntry(append(bytes.Clone(good), 0)); !errors.Is(err, ErrEntryFormat) {
		t.Fatalf("one byte more: %v", err)
	}
	good[0] = entryFormat + 1
	if _, err := decodeEntry(good); !errors.Is(err, ErrEntryFormat) {
		t.Fatalf("another format: %v", err)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(encodeEntry(1, 2, [][]byte{[]byte("one"), []byte("two")}))
	f.Add(encodeEntry(0, 0, nil))
	f.Add([]byte{entryFormat, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil {
			return
		}
		if again := encodeEntry(e.timeMillis, e.flags, e.commands); !bytes.Equal(again, b) {
			t.Fatalf("%x decodes, and encodes to %x", b, again)
		}
	})
}

func FuzzScanTail(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0})
	f.Add(make([]byte, 100))
	f.Add(append(make([]byte, 32), 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		scan, err := scanTail(readerFile{bytes.NewReader(b)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if scan.goodEnd < 0 || scan.goodEnd > int64(len(b)) || scan.dirtyEnd > int64(len(b)+walFrameLen) {
			t.Fatalf("%d bytes scan to %+v", len(b), scan)
		}
	})
}

type readerFile struct{ *bytes.Reader }

func (readerFile) Close() error { return nil }
