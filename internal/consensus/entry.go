package consensus

import (
	"encoding/binary"
	"fmt"
)

/*
One log entry (the Data of a Raft LogCommand), all numbers little-endian:

	0        1            5              13           17
	+--------+------------+--------------+------------+----------------------
	| format | flags u32  | time ms i64  | count u32  | count × (len u32, bytes)
	+--------+------------+--------------+------------+----------------------

The entry's checksum is not here but in the log store's record (logstore.go),
because Raft's own entries need one too.
*/
const (
	entryFormat    = 1
	entryHeaderLen = 1 + 4 + 8 + 4
	commandLenLen  = 4
)

// entry is one decoded log entry.
type entry struct {
	timeMillis int64
	flags      uint32
	commands   [][]byte // alias the decoded buffer
}

// encodeEntry packs commands into a new buffer.
func encodeEntry(timeMillis int64, flags uint32, commands [][]byte) []byte {
	size := entryHeaderLen
	for _, c := range commands {
		size += commandLenLen + len(c)
	}
	b := appendEntryHeader(make([]byte, 0, size), timeMillis, flags, len(commands))
	for _, c := range commands {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c)))
		b = append(b, c...)
	}
	return b
}

func appendEntryHeader(b []byte, timeMillis int64, flags uint32, count int) []byte {
	b = append(b, entryFormat)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(timeMillis))
	return binary.LittleEndian.AppendUint32(b, uint32(count))
}

// decodeEntry is the inverse of encodeEntry. It accepts exactly what
// encodeEntry can produce: bytes left over are an error, because they would
// mean that another version packed something this one would skip.
func decodeEntry(b []byte) (entry, error) {
	if len(b) < entryHeaderLen {
		return entry{}, fmt.Errorf("%w: %d bytes are too few", ErrEntryFormat, len(b))
	}
	if b[0] != entryFormat {
		return entry{}, fmt.Errorf("%w: format %d, this version knows %d; start a newer version", ErrEntryFormat, b[0], entryFormat)
	}
	e := entry{
		flags:      binary.LittleEndian.Uint32(b[1:]),
		timeMillis: int64(binary.LittleEndian.Uint64(b[5:])),
	}
	count := binary.LittleEndian.Uint32(b[13:])
	rest := b[entryHeaderLen:]
	if uint64(count)*commandLenLen > uint64(len(rest)) {
		return entry{}, fmt.Errorf("%w: %d commands in %d bytes", ErrEntryFormat, count, len(rest))
	}
	e.commands = make([][]byte, 0, count)
	for i := range count {
		if len(rest) < commandLenLen {
			return entry{}, fmt.Errorf("%w: command %d has no length", ErrEntryFormat, i)
		}
		n := binary.LittleEndian.Uint32(rest)
		rest = rest[commandLenLen:]
		if uint64(n) > uint64(len(rest)) {
			return entry{}, fmt.Errorf("%w: command %d of %d bytes in %d", ErrEntryFormat, i, n, len(rest))
		}
		e.commands = append(e.commands, rest[:n:n])
		rest = rest[n:]
	}
	if len(rest) != 0 {
		return entry{}, fmt.Errorf("%w: %d bytes left over", ErrEntryFormat, len(rest))
	}
	return e, nil
}
