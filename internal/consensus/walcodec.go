package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"
)

/*
An entry as a segment of raft-wal holds it. A lone write pays for an entry of its
own, so what can be told without storing it is left out: the index, which is what
the entry is asked for by; when it was appended, which is the leader's time; the
lengths of the envelope (entry.go), when there is one command; and what a usual
command has anyway (Config.Pack).

	+---+------+--------------+---------+------------------------------------
	| 0 | kind | term uvarint | sum u32 | as the kind says
	+---+------+--------------+---------+------------------------------------

	one    flags uvarint, time 40 bits, the packed command
	many   flags uvarint, time 40 bits, count uvarint, count × (len uvarint, packed command)
	plain  type, appended at (15 bytes), len uvarint, extensions, len uvarint, data

sum is the entry's checksum of logstore.go. It covers index, term, type, data and
extensions as they were before, so it also proves that they came back as they
were. The upper bits of kind are the upper bits of the time, in milliseconds since
2020; an entry of another time, envelope or type is plain.

The zero in front says that this is not raft-wal's own form, which begins with the
index, in which this build's predecessors wrote; a segment may hold both, and both
are read. The segment files bear raft-wal's own codec number: v0.4.0 writes it
whatever the codec is, and refuses to open what it wrote (walMeta.Load).
*/
type packedCodec struct {
	own    wal.BinaryCodec
	pack   func(dst, command []byte) []byte
	unpack func(dst, packed []byte) ([]byte, error)
}

const (
	packedMark  = 0
	packedOne   = 1
	packedMany  = 2
	packedPlain = 3

	packedKindBits = 2
	packedTimeLow  = 5 // bytes
	packedTimeBits = 8*packedTimeLow + 8 - packedKindBits
	packedHeadLen  = 2 + binary.MaxVarintLen64 + 4
	// packedEpoch is 2020-01-01 UTC in Unix milliseconds.
	packedEpoch = 1_577_836_800_000
	// packedCodecID is what raft-wal is told; it stands nowhere on the disk.
	packedCodecID = wal.FirstExternalCodecID
)

// errPacked is returned for an entry of a form that Encode does not write.
var errPacked = errors.New("not an entry of this log")

// ID implements wal.Codec.
func (c *packedCodec) ID() uint64 { return packedCodecID }

// Encode implements wal.Codec. The log is one that sealLogs has sealed.
func (c *packedCodec) Encode(l *raft.Log, w io.Writer) error {
	buf, ok := w.(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	buf.Grow(packedHeadLen + len(l.Data) + len(l.Extensions) + 32)
	b, err := c.append(buf.AvailableBuffer(), l)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func (c *packedCodec) append(b []byte, l *raft.Log) ([]byte, error) {
	start := len(b)
	b = append(b, packedMark, packedPlain)
	b = binary.AppendUvarint(b, l.Term)
	n := len(l.Extensions) - sealLen
	if n < 0 || l.Extensions[n] != sealTag {
		return nil, fmt.Errorf("%w: entry %d has no checksum", errPacked, l.Index)
	}
	b = append(b, l.Extensions[n+1:]...)
	if l.Type == raft.LogCommand && n == 0 {
		if packed, ok := c.appendEntry(b, start+1, l.Data); ok {
			return packed, nil
		}
	}
	at, err := l.AppendedAt.UTC().MarshalBinary()
	if err != nil {
		return nil, err
	}
	b = append(append(b, byte(l.Type)), at...)
	b = append(binary.AppendUvarint(b, uint64(n)), l.Extensions[:n]...)
	return append(binary.AppendUvarint(b, uint64(len(l.Data))), l.Data...), nil
}

// appendEntry adds an envelope, if it is one; the kind is at b[kind].
func (c *packedCodec) appendEntry(b []byte, kind int, data []byte) (packed []byte, ok bool) {
	e, err := decodeEntry(data)
	millis := uint64(e.timeMillis - packedEpoch)
	if err != nil || len(e.commands) == 0 || e.timeMillis < packedEpoch || millis>>packedTimeBits != 0 {
		return nil, false
	}
	high := byte(millis>>(8*packedTimeLow)) << packedKindBits
	b = binary.AppendUvarint(b, uint64(e.flags))
	for i := range packedTimeLow {
		b = append(b, byte(millis>>(8*i)))
	}
	if len(e.commands) == 1 {
		b = c.pack(b, e.commands[0])
		b[kind] = high | packedOne
		return b, true
	}
	b[kind] = high | packedMany
	b = binary.AppendUvarint(b, uint64(len(e.commands)))
	var scratch []byte
	for _, command := range e.commands {
		scratch = c.pack(scratch[:0], command)
		b = append(binary.AppendUvarint(b, uint64(len(scratch))), scratch...)
	}
	return b, true
}

// Decode implements wal.Codec. l.Index is what was asked for. b is not kept.
func (c *packedCodec) Decode(b []byte, l *raft.Log) error {
	if len(b) > 0 && b[0] != packedMark {
		return c.own.Decode(b, l)
	}
	if len(b) < 2 {
		return fmt.Errorf("%w: it has %d bytes", errPacked, len(b))
	}
	f := fields{b: b[2:]}
	l.Term = f.uvarint()
	l.Extensions = append([]byte{sealTag}, f.take(sealLen-1)...)
	var err error
	switch kind := b[1] & (1<<packedKindBits - 1); kind {
	case packedOne, packedMany:
		err = c.decodeEntry(&f, b[1], l)
	case packedPlain:
		err = decodePlain(&f, l)
	default:
		err = fmt.Errorf("%w: it is of kind %d", errPacked, kind)
	}
	if err == nil && f.short {
		err = fmt.Errorf("%w: it is cut short", errPacked)
	}
	return err
}

func (c *packedCodec) decodeEntry(f *fields, kind byte, l *raft.Log) error {
	flags := f.uvarint()
	var low [8]byte
	copy(low[:], f.take(packedTimeLow))
	millis := packedEpoch + int64(uint64(kind>>packedKindBits)<<(8*packedTimeLow)|binary.LittleEndian.Uint64(low[:]))
	count, one := uint64(1), kind&packedMany == 0
	if !one {
		count = f.uvarint()
	}
	if f.short || !one && count > uint64(len(f.b)) || flags>>32 != 0 {
		return fmt.Errorf("%w: %d commands in %d bytes", errPacked, count, len(f.b))
	}
	data := make([]byte, 0, entryHeaderLen+len(f.b)+int(min(count, 1024))*64)
	data = appendEntryHeader(data, millis, uint32(flags), int(count))
	for range count {
		packed := f.b
		if !one {
			packed = f.take(f.uvarint())
		}
		at := len(data)
		var err error
		if data, err = c.unpack(append(data, 0, 0, 0, 0), packed); err != nil {
			return fmt.Errorf("%w: %w", errPacked, err)
		}
		binary.LittleEndian.PutUint32(data[at:], uint32(len(data)-at-commandLenLen))
	}
	l.Type, l.Data, l.AppendedAt = raft.LogCommand, data, time.UnixMilli(millis)
	return nil
}

func decodePlain(f *fields, l *raft.Log) error {
	kind, at := f.take(1), f.take(plainTimeLen)
	extensions := f.take(f.uvarint())
	data := f.take(f.uvarint())
	if f.short || len(f.b) > 0 {
		return fmt.Errorf("%w: its lengths do not fit it", errPacked)
	}
	l.Type = raft.LogType(kind[0])
	l.Extensions = append(bytes.Clone(extensions), l.Extensions...)
	l.Data = bytes.Clone(data)
	return l.AppendedAt.UnmarshalBinary(at)
}

// plainTimeLen is what time.Time.MarshalBinary writes for a time in UTC.
const plainTimeLen = 15

// fields reads from b; short says that it had too little.
type fields struct {
	b     []byte
	short bool
}

func (f *fields) take(n uint64) []byte {
	if f.short || n > uint64(len(f.b)) {
		f.short = true
		return nil
	}
	part := f.b[:n:n]
	f.b = f.b[n:]
	return part
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	f.short = f.short || n <= 0
	f.take(uint64(max(n, 0)))
	return v
}

// withCodec returns the list with another codec number.
func withCodec(id uint64, segments ...types.SegmentInfo) []types.SegmentInfo {
	segments = slices.Clone(segments)
	for i := range segments {
		segments[i].Codec = id
	}
	return segments
}

// onDisk is the segment as its file has it.
func onDisk(info types.SegmentInfo) types.SegmentInfo {
	return withCodec(wal.CodecBinaryV1, info)[0]
}

// GetLog implements raft.LogStore: packedCodec is told the index.
func (w *walLog) GetLog(index uint64, l *raft.Log) error {
	*l = raft.Log{Index: index}
	return w.WAL.GetLog(index, l)
}
