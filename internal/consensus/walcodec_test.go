package consensus

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// testCodec packs commands so that a test sees whether they were: reversed.
var testCodec = &packedCodec{pack: reversed, unpack: func(dst, b []byte) ([]byte, error) { return reversed(dst, b), nil }}

func reversed(dst, b []byte) []byte {
	for i := range b {
		dst = append(dst, b[len(b)-1-i])
	}
	return dst
}

// packable returns an entry of every kind, by name, with the form it takes.
func packable() map[string]struct {
	log  raft.Log
	kind byte
} {
	millis := int64(1_796_067_000_123) // 2026-11-30
	command := func(index uint64, millis int64, commands ...string) raft.Log {
		var all [][]byte
		for _, c := range commands {
			all = append(all, []byte(c))
		}
		return raft.Log{Index: index, Term: 3, Type: raft.LogCommand, AppendedAt: time.UnixMilli(millis),
			Data: encodeEntry(millis, 300, all)}
	}
	extended := command(70_000, millis, "abc")
	extended.Extensions = []byte("of another layer")
	return map[string]struct {
		log  raft.Log
		kind byte
	}{
		"one command":                 {command(70_000, millis, "abc"), packedOne},
		"an empty command":            {command(70_000, millis, ""), packedOne},
		"several commands":            {command(70_000, millis, "abc", "", "defg"), packedMany},
		"the first millisecond":       {command(70_000, packedEpoch, "abc"), packedOne},
		"the last one":                {command(70_000, packedEpoch+1<<packedTimeBits-1, "abc"), packedOne},
		"one before the first":        {command(70_000, packedEpoch-1, "abc"), packedPlain},
		"one after the last":          {command(70_000, packedEpoch+1<<packedTimeBits, "abc"), packedPlain},
		"the end of time":             {command(math.MaxUint64, math.MinInt64, "abc"), packedPlain},
		"no command":                  {command(70_000, millis), packedPlain},
		"extensions":                  {extended, packedPlain},
		"an envelope of a later form": {raft.Log{Index: 5, Term: math.MaxUint64, Type: raft.LogCommand, Data: []byte{2, 0}, AppendedAt: time.UnixMilli(millis)}, packedPlain},
		"an entry of Raft's own":      {raft.Log{Index: 1, Term: 1, Type: raft.LogNoop}, packedPlain},
		"a configuration":             {raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("servers"), AppendedAt: time.Unix(1, 999_999_999)}, packedPlain},
	}
}

func packed(t *testing.T, c wal.Codec, l *raft.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Encode(sealLogs([]*raft.Log{l})[0], &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacked(t *testing.T, b []byte, index uint64) *raft.Log {
	t.Helper()
	l := &raft.Log{Index: index}
	if err := testCodec.Decode(b, l); err != nil {
		t.Fatal(err)
	}
	if err := unsealLog(index, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAnEntryComesOutOfTheLogAsItWentIn(t *testing.T) {
	for name, c := range packable() {
		t.Run(name, func(t *testing.T) {
			b := packed(t, testCodec, &c.log)
			if got := b[1] & (1<<packedKindBits - 1); b[0] != packedMark || got != c.kind {
				t.Errorf("it was written as kind %d, want %d", got, c.kind)
			}
			got := unpacked(t, b, c.log.Index)
			if !got.AppendedAt.Equal(c.log.AppendedAt) {
				t.Errorf("it was appended at %v, and now at %v", c.log.AppendedAt, got.AppendedAt)
			}
			got.AppendedAt = c.log.AppendedAt
			if len(c.log.Data) == 0 {
				got.Data = c.log.Data
			}
			if !reflect.DeepEqual(*got, c.log) {
				t.Errorf("%+v came back as %+v", c.log, *got)
			}
		})
	}
}

// The form stands on disks: a change of it needs another kind.
func TestTheFormOfAnEntryOnTheDiskStaysAsItIs(t *testing.T) {
	entries := packable()
	for name, want := range map[string]string{
		"one command":            "000103379d955eac023b9788cf32636261",
		"several commands":       "000203cbcf5dfdac023b9788cf320303636261000467666564",
		"an entry of Raft's own": "000301fd2a5c830101000000000000000000000000ffff0000",
		"extensions":             "00030381e2875600010000000ee29fc5b80754d4c0ffff106f6620616e6f74686572206c6179657218012c0100003b7fef2da20100000100000003000000616263",
	} {
		l := entries[name].log
		if got := hex.EncodeToString(packed(t, testCodec, &l)); got != want {
			t.Errorf("%s is written as\n%s, want\n%s", name, got, want)
		}
	}
}

// Every bit of what is on the disk counts: a change is refused, or changes only
// the time at which an entry of Raft's own was appended.
func TestAnEntryWithAFlippedBitOrAnotherIndexIsRefused(t *testing.T) {
	for name, c := range packable() {
		b := packed(t, testCodec, &c.log)
		read := func(b []byte, index uint64) (l raft.Log, err error) {
			l.Index = index
			if err = testCodec.Decode(b, &l); err == nil {
				err = unsealLog(index, &l)
			}
			return l, err
		}
		for bit := 8; bit < 8*len(b); bit++ { // without the mark it is raft-wal's own form
			flipped := bytes.Clone(b)
			flipped[bit/8] ^= 1 << (bit % 8)
			want, _ := read(b, c.log.Index)
			got, err := read(flipped, c.log.Index)
			want.AppendedAt = got.AppendedAt
			if err == nil && !reflect.DeepEqual(want, got) {
				t.Errorf("%s with bit %d flipped is read as %+v", name, bit, got)
			}
		}
		for n := range b {
			if _, err := read(b[:n], c.log.Index); err == nil {
				t.Errorf("%s cut to %d bytes is read", name, n)
			}
		}
		if _, err := read(b, c.log.Index+1); err == nil {
			t.Errorf("%s is read as the next entry", name)
		}
	}
}

// A directory of the build before has its entries in raft-wal's own form, in
// full segments and in the open one, which is gone on with.
func TestALogInTheFormOfTheBuildBeforeIsReadAndGoneOnWith(t *testing.T) {
	dir := t.TempDir() + "/log-wal"
	before, err := openWALLog(OSFS{}, dir, minSegmentBytes, true, 0, &oldCodec{}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	const old = 600 // in several segments
	appendTestLogs(t, before, 1, old, 1000)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	e := openTestWAL(t, OSFS{}, dir, false)
	requireTestLogs(t, e, 1, old)
	appendTestLogs(t, e, old+1, old+3, 1000)
	_ = e.Close()
	e = openTestWAL(t, OSFS{}, dir, false)
	requireTestLogs(t, e, 1, old+3)
	appendTestLogs(t, e, old+4, 3*old, 1000)
	_ = e.Close()
	requireTestLogs(t, openTestWAL(t, OSFS{}, dir, false), 1, 3*old)
}

// oldCodec writes raft-wal's own form.
type oldCodec struct{ wal.BinaryCodec }

func (oldCodec) ID() uint64 { return packedCodecID }

func FuzzDecodeLoggedEntry(f *testing.F) {
	for _, c := range packable() {
		sealed := sealLogs([]*raft.Log{&c.log})[0]
		b, err := testCodec.append(nil, sealed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 0 && b[0] != packedMark {
			return // raft-wal's own form
		}
		l := raft.Log{Index: 7}
		if testCodec.Decode(b, &l) != nil {
			return
		}
		again, err := testCodec.append(nil, &l)
		if err != nil {
			t.Fatalf("%x is read as %+v, which cannot be written: %v", b, l, err)
		}
		second := raft.Log{Index: 7}
		if err := testCodec.Decode(again, &second); err != nil {
			t.Fatal(err)
		}
		second.AppendedAt = l.AppendedAt
		if !reflect.DeepEqual(l, second) {
			t.Fatalf("%+v was written and read as %+v", l, second)
		}
	})
}
