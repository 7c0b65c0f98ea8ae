package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

/*
What raft-wal does with the open segment at a start, and why it is looked at
first. A segment is a header of 32 bytes and then frames, each 8 bytes of header,
a payload, and zeros up to a multiple of 8:

	| 1 entry  0 0 0 | length | payload …      an entry
	| 2 index  0 0 0 | length | offsets …      the index block of a full segment
	| 3 commit 0 0 0 | crc    |                ends one append; the checksum covers
	                                           everything since the previous commit

At most one append is ever unsynced, so after a crash at most the last one may
be torn. raft-wal checks the checksum of the last commit frame only, and takes
the first thing that is no frame for the end. So a flipped bit in the header of
any frame silently cuts off all acknowledged entries behind it, and what a torn
append left behind stays in the file, to be taken for frames after the next crash.

scanTail checks every commit, and tells three endings apart:

	nothing but zeros behind the last good commit      a clean end
	something, but no complete append in it            a torn append: cleared,
	                                                   if the mark allows it
	a complete append behind a bad one                 corruption: refused
*/
const (
	walHeaderLen   = 32
	walFrameLen    = 8
	walFrameEntry  = 1
	walFrameIndex  = 2
	walFrameCommit = 3
	// walResyncDepth bounds how many earlier places that look like a commit
	// are tried as the beginning of a complete append.
	walResyncDepth = 8
)

// tailScan is what the open segment holds.
type tailScan struct {
	last     uint64 // the last entry under a good commit; base-1 if there is none
	goodEnd  int64  // where the last good commit ends, 0 if there is none
	dirtyEnd int64  // behind the last byte that is not zero; ≤ goodEnd if clean
	sealed   bool   // there is an index block under a good commit
	later    int64  // where a complete append begins behind a bad one, 0 if there is none
}

// scanTail reads a segment from its beginning.
func scanTail(f types.ReadableFile, base uint64) (tailScan, error) {
	w := &walWindow{file: f}
	scan := tailScan{last: base - 1}
	entries, index := uint64(0), false
	for pos := int64(walHeaderLen); ; {
		frame, ok, err := w.frame(pos)
		if err != nil {
			return scan, err
		}
		kind, value := frame[0], binary.LittleEndian.Uint32(frame[4:])
		if !ok || kind < walFrameEntry || kind > walFrameCommit {
			break
		}
		if kind == walFrameCommit {
			sum, err := w.sum(scan.goodEnd, pos)
			if err != nil {
				return scan, err
			}
			if sum != value {
				break
			}
			pos += walFrameLen
			scan.goodEnd, scan.last, scan.sealed = pos, base+entries-1, index
			continue
		}
		if kind == walFrameEntry {
			entries++
		}
		index = index || kind == walFrameIndex
		pos += walFrameLen + (int64(value)+walFrameLen-1)/walFrameLen*walFrameLen
	}
	return scan, w.scanRest(&scan)
}

// scanRest looks at what lies behind the last good commit.
func (w *walWindow) scanRest(scan *tailScan) error {
	var commits []int64 // places that look like a commit frame
	for pos := scan.goodEnd; ; pos += walFrameLen {
		frame, ok, err := w.frame(pos)
		if err != nil {
			return err
		}
		if pos == w.start && bytes.Equal(w.buf[:w.have], zeroWindow[:w.have]) {
			pos += max(0, int64(w.have)/walFrameLen*walFrameLen-walFrameLen)
		} else if frame != [walFrameLen]byte{} {
			scan.dirtyEnd = pos + walFrameLen
		}
		if !ok {
			return nil
		}
		if frame[0] != walFrameCommit || frame[1]|frame[2]|frame[3] != 0 {
			continue
		}
		for i := len(commits) - 1; i >= max(0, len(commits)-walResyncDepth); i-- {
			begin := commits[i] + walFrameLen
			sum, err := w.sum(begin, pos)
			if err != nil {
				return err
			}
			if begin < pos && sum == binary.LittleEndian.Uint32(frame[4:]) && scan.later == 0 {
				scan.later = begin
			}
		}
		commits = append(commits, pos)
	}
}

const walWindowLen = 256 * kib

// zeroWindow is compared with what is read: most of a young segment is zeros,
// and a start should take milliseconds.
var zeroWindow [walWindowLen]byte

// walWindow reads a file through one buffer.
type walWindow struct {
	file  types.ReadableFile
	buf   [walWindowLen]byte
	start int64
	have  int
}

// frame returns the 8 bytes at pos; not ok means that the file ends before.
func (w *walWindow) frame(pos int64) (frame [walFrameLen]byte, ok bool, err error) {
	if pos < w.start || pos+walFrameLen > w.start+int64(w.have) {
		if err := w.load(pos); err != nil {
			return frame, false, err
		}
	}
	n := 0
	if from := pos - w.start; from < int64(w.have) {
		n = copy(frame[:], w.buf[from:w.have])
	}
	return frame, n == walFrameLen, nil
}

func (w *walWindow) load(pos int64) error {
	n, err := w.file.ReadAt(w.buf[:], pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	w.start, w.have = pos, n
	return nil
}

// sum is the checksum of the bytes from begin to end.
func (w *walWindow) sum(begin, end int64) (uint32, error) {
	sum := uint32(0)
	for begin < end {
		if begin < w.start || begin >= w.start+int64(w.have) {
			if err := w.load(begin); err != nil {
				return 0, err
			}
			if w.have == 0 {
				return 0, io.ErrUnexpectedEOF
			}
		}
		part := w.buf[begin-w.start : w.have]
		part = part[:min(int64(len(part)), end-begin)]
		sum = crc32.Update(sum, castagnoli, part)
		begin += int64(len(part))
	}
	return sum, nil
}

// clearTornTail judges the end of the open segment and clears what a torn
// append left there. acknowledged is the last entry known to be synced. It
// tells whether the segment is full.
func clearTornTail(fs FS, dir string, info types.SegmentInfo, acknowledged uint64) (sealed bool, err error) {
	name := segment.FileName(info)
	f, err := fs.OpenWriter(dir, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	scan, err := scanTail(f, info.BaseIndex)
	if err != nil {
		return false, fmt.Errorf("read %s/%s: %w", dir, name, err)
	}
	switch {
	case scan.later != 0:
		return false, fmt.Errorf("%w: %s/%s is damaged between bytes %d and %d, behind entry %d, and goes on after that; restore the file from this server's disk or a backup",
			ErrCorrupt, dir, name, scan.goodEnd, scan.later, scan.last)
	case scan.last < acknowledged:
		return false, fmt.Errorf("%w: %s/%s can be read up to entry %d, but entry %d was acknowledged; restore the file from this server's disk or a backup",
			ErrLess, dir, name, scan.last, acknowledged)
	case scan.dirtyEnd <= scan.goodEnd:
		return scan.sealed, nil
	}
	if _, err := f.WriteAt(make([]byte, scan.dirtyEnd-scan.goodEnd), scan.goodEnd); err != nil {
		return false, fmt.Errorf("clear the torn end of %s/%s: %w", dir, name, err)
	}
	return scan.sealed, f.Sync()
}
