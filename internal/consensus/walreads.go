package consensus

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

const (
	// walProbeLen is how much raft-wal asks for to read one entry, whatever its
	// length; for a frame longer than that it asks again, for its payload alone.
	walProbeLen = 64 * kib
	// walReadLen is what it gets at first: most entries are shorter.
	walReadLen = 4 * kib
)

/*
readsLess makes a replay cheaper: copying 64 KiB for each entry is half of its
cost (measured), and a call for each frame header a tenth.

Of a read of walProbeLen only the beginning is done when it holds the whole of a
frame. It then ends in io.EOF, which is what raft-wal meets near the end of any
segment. Two reads can be of the same length and are no probes, and io.EOF is the
loss of the log to them, so they are done to their end:

	a payload of exactly that length    begins with no header of an entry's frame:
	                                    packedMark, or raft-wal's varint of an
	                                    index, where only entry 1 has the byte of
	                                    a frame header; it is a configuration
	an append of exactly that length,   follows a read of a frame header; a
	whose checksum a recovery proves    recovery makes no probes
*/
type readsLess struct {
	types.ReadableFile

	mu       sync.Mutex
	window   []byte // guarded by mu; bytes of the file from start on
	start    int64  // guarded by mu
	scanning bool   // guarded by mu; the last read was of a frame header
}

// ReadAt implements io.ReaderAt.
func (r *readsLess) ReadAt(b []byte, offset int64) (int, error) {
	if len(b) == walFrameLen {
		return r.readHeader(b, offset)
	}
	r.mu.Lock()
	scanning := r.scanning
	r.scanning = false
	r.mu.Unlock()
	if len(b) != walProbeLen || scanning {
		return r.ReadableFile.ReadAt(b, offset)
	}
	n, err := r.ReadableFile.ReadAt(b[:walReadLen], offset)
	switch {
	case err != nil:
		return n, err
	case holdsEntry(b[:walReadLen]):
		return n, io.EOF
	}
	rest, err := r.ReadableFile.ReadAt(b[walReadLen:], offset+walReadLen)
	return n + rest, err
}

// holdsEntry reports whether b begins with the whole frame of an entry.
func holdsEntry(b []byte) bool {
	return b[0] == walFrameEntry && b[1]|b[2]|b[3] == 0 &&
		uint64(binary.LittleEndian.Uint32(b[4:]))+walFrameLen <= uint64(len(b))
}

// readHeader reads a frame header through the window. raft-wal reads headers
// one by one only while it recovers a segment, before it writes to it.
func (r *readsLess) readHeader(b []byte, offset int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scanning = true
	if offset < r.start || offset+walFrameLen > r.start+int64(len(r.window)) {
		window := make([]byte, walProbeLen)
		n, err := r.ReadableFile.ReadAt(window, offset)
		if err != nil && err != io.EOF {
			return 0, err
		}
		r.window, r.start = window[:n], offset
	}
	n := copy(b, r.window[offset-r.start:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// forget drops the window, because the file changes.
func (r *readsLess) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window = nil
}

// writableReadsLess is readsLess for the open segment.
type writableReadsLess struct {
	readsLess
	types.WritableFile
}

func newWritableReadsLess(f types.WritableFile) *writableReadsLess {
	return &writableReadsLess{readsLess: readsLess{ReadableFile: f}, WritableFile: f}
}

// ReadAt implements io.ReaderAt.
func (w *writableReadsLess) ReadAt(b []byte, offset int64) (int, error) {
	return w.readsLess.ReadAt(b, offset)
}

// WriteAt implements io.WriterAt.
func (w *writableReadsLess) WriteAt(b []byte, offset int64) (int, error) {
	w.forget()
	return w.WritableFile.WriteAt(b, offset)
}

// Close implements io.Closer.
func (w *writableReadsLess) Close() error { return w.WritableFile.Close() }

// OpenReader implements types.VFS.
func (h *heldFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	f, err := h.FS.OpenReader(dir, name)
	if err != nil {
		return nil, err
	}
	return &readsLess{ReadableFile: f}, nil
}

// OpenWriter implements types.VFS.
func (h *heldFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := h.FS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return newWritableReadsLess(f), nil
}

// Create implements types.VFS.
func (h *heldFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := h.FS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return newWritableReadsLess(f), nil
}
