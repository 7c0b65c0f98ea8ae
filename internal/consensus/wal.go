package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// walLog is the log in raft-wal.
type walLog struct {
	*wal.WAL
	files    *heldFiles
	rotation *rotation
	segment  int // size of a segment, in bytes
}

// walAppendBytes bounds one append to raft-wal: 4 MiB, or one longer entry. A
// follower that catches up gets 64 entries in one message. raft-wal counts in 32
// bits where a segment ends, and keeps, for as long as it holds the segment, a buffer
// twice as long as the longest append to it.
const walAppendBytes = 4*mib - 64*kib

// StoreLogs implements raft.LogStore, by one append or several, each synced before
// the next one. Of those that were done when one fails, nothing has to be undone: the
// caller knows of none of them, as of an append that reached the disk without an answer.
func (w *walLog) StoreLogs(logs []*raft.Log) error {
	for len(logs) > 0 {
		n, bytes := 0, 0
		for n < len(logs) && (n == 0 || bytes+len(logs[n].Data) <= walAppendBytes) {
			bytes += len(logs[n].Data)
			n++
		}
		if err := w.WAL.StoreLogs(logs[:n]); err != nil {
			if errors.Is(err, wal.ErrSealed) { // say why there is no next segment
				err = errors.Join(err, w.rotation.why())
			}
			return err
		}
		logs = logs[n:]
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (w *walLog) DeleteRange(low, high uint64) error {
	if err := w.rotation.wait(); err != nil {
		return err
	}
	return w.WAL.DeleteRange(low, high)
}

// Close implements io.Closer.
func (w *walLog) Close() error {
	w.rotation.end(types.ErrClosed)
	return w.WAL.Close()
}

// confirm lets removals happen from now on, and does those that were held.
func (w *walLog) confirm() error { return w.files.release() }

func (w *walLog) room() int { return w.segment }

// openWALLog opens the segments in dir.
func openWALLog(fs FS, dir string, segmentSize int, create bool, acknowledged uint64, codec wal.Codec, logger hclog.Logger) (engine, error) {
	if create {
		if err := makeDir(dir); err != nil {
			return nil, err
		}
	} else if !exists(dir) {
		return nil, fmt.Errorf("%w: %s is missing", ErrLess, dir)
	}
	files := &heldFiles{FS: fs, holding: true}
	turn := newRotation()
	meta := &walMeta{fs: fs, dir: dir, create: create, rotation: turn}
	filer := &walFiler{Filer: segment.NewFiler(dir, files), rotation: turn}
	w, err := openRepaired(dir, meta, filer, segmentSize, acknowledged, codec, logger)
	if err != nil {
		if errors.Is(err, types.ErrCorrupt) || errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %s: %w", ErrCorrupt, dir, err)
		}
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return &walLog{WAL: w, files: files, rotation: turn, segment: segmentSize}, nil
}

func openRepaired(dir string, meta *walMeta, filer *walFiler, segmentSize int, acknowledged uint64, codec wal.Codec, logger hclog.Logger) (*wal.WAL, error) {
	if err := repairTail(meta, filer, segmentSize, acknowledged); err != nil {
		return nil, err
	}
	return wal.Open(dir, wal.WithMetaStore(meta), wal.WithSegmentFiler(filer),
		wal.WithSegmentSize(segmentSize), wal.WithCodec(codec), wal.WithLogger(logger))
}

// segmentBytes fits the segment size to the disk: raft-wal allocates a segment
// at once, and on a disk of 64 MiB the default would fill it with one.
func segmentBytes(dir string, want int) int {
	var stat syscall.Statfs_t
	for {
		if err := syscall.Statfs(dir, &stat); err == nil {
			break
		} else if !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return want
		}
		dir = filepath.Dir(dir)
	}
	share := int64(stat.Blocks) * int64(stat.Bsize) / 16
	return int(max(min(int64(want), share), minSegmentBytes))
}

// heldFiles keeps raft-wal from removing files before the log has been
// compared with the other evidence: with a list of segments that is too old it
// would take acknowledged entries for left-overs.
type heldFiles struct {
	FS

	mu      sync.Mutex
	holding bool        // guarded by mu
	held    [][2]string // guarded by mu; dir and name
}

// Delete implements types.VFS.
func (h *heldFiles) Delete(dir, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holding {
		h.held = append(h.held, [2]string{dir, name})
		return nil
	}
	return h.FS.Delete(dir, name)
}

func (h *heldFiles) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding = false
	for _, f := range h.held {
		if err := h.FS.Delete(f[0], f[1]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	h.held = nil
	return nil
}
