package consensus

import (
	"io"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

const (
	// walProbeLen is how much raft-wal asks for to read one entry, whatever its
	// length; for a frame longer than what it gets it asks again.
	walProbeLen = 64 * kib
	// walReadLen is what it gets: most entries are shorter.
	walReadLen = 4 * kib
)

// readsLess makes a replay cheaper: copying 64 KiB for each entry is half of
// its cost (measured), and a call for each frame header a tenth. A short read
// that ends in io.EOF is what raft-wal meets near the end of any segment.
type readsLess struct {
	types.ReadableFile

	mu     sync.Mutex
	window []byte // guarded by mu; bytes of the file from start on
	start  int64  // guarded by mu
}

// ReadAt implements io.ReaderAt.
func (r *readsLess) ReadAt(b []byte, offset int64) (int, error) {
	switch len(b) {
	case walProbeLen:
		n, err := r.ReadableFile.ReadAt(b[:walReadLen], offset)
		if err == nil {
			err = io.EOF
		}
		return n, err
	case walFrameLen:
		return r.readHeader(b, offset)
	}
	return r.ReadableFile.ReadAt(b, offset)
}

// readHeader reads a frame header through the window. raft-wal reads headers
// one by one only while it recovers a segment, before it writes to it.
func (r *readsLess) readHeader(b []byte, offset int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
