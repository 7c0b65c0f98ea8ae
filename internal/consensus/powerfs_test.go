package consensus

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

// errPowerCut is what every call gets once the power is gone.
var errPowerCut = errors.New("the power is gone")

const sectorLen = 512

// powerFS is a file layer in memory that loses power: at a chosen call, every
// write since the last sync of its file is applied in part, sector by sector,
// and a file whose directory entry was never synced may be gone.
type powerFS struct {
	mu     sync.Mutex
	files  map[string]*powerFile // guarded by mu; by path
	calls  int                   // guarded by mu
	cutAt  int                   // guarded by mu; the call that finds no power, 0 for never
	off    bool                  // guarded by mu
	random *rand.Rand            // guarded by mu
}

func newPowerFS(random *rand.Rand) *powerFS {
	return &powerFS{files: map[string]*powerFile{}, random: random}
}

// powerFile is one file: what is on the disk, and what only memory holds.
type powerFile struct {
	durable []byte
	now     []byte
	writes  []powerWrite // since the last sync
	entry   bool         // the directory entry is durable
}

type powerWrite struct {
	offset int
	data   []byte
}

// call counts a call and tells whether there is power; locks fs.mu.
func (p *powerFS) call() error {
	p.mu.Lock()
	p.calls++
	if p.cutAt > 0 && p.calls >= p.cutAt {
		p.off = true
	}
	if p.off {
		return errPowerCut
	}
	return nil
}

// restore is the machine coming back: unsynced writes are applied in part.
func (p *powerFS) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off, p.cutAt, p.calls = false, 0, 0
	paths := make([]string, 0, len(p.files))
	for path := range p.files {
		paths = append(paths, path)
	}
	slices.Sort(paths) // one seed, one run
	for _, path := range paths {
		f := p.files[path]
		if !f.entry && p.random.IntN(2) == 0 {
			delete(p.files, path)
			continue
		}
		for _, w := range f.writes {
			if p.random.IntN(3) == 0 {
				continue // nothing of it reached the disk
			}
			for at := 0; at < len(w.data); {
				end := min(len(w.data), at+sectorLen-(w.offset+at)%sectorLen)
				if p.random.IntN(4) != 0 {
					f.durable = writeInto(f.durable, w.offset+at, w.data[at:end])
				}
				at = end
			}
		}
		f.writes, f.entry = nil, true
		f.now = slices.Clone(f.durable)
	}
}

func writeInto(b []byte, offset int, data []byte) []byte {
	if need := offset + len(data); need > len(b) {
		b = append(b, make([]byte, need-len(b))...)
	}
	copy(b[offset:], data)
	return b
}

func (p *powerFS) ListDir(dir string) ([]string, error) {
	defer p.mu.Unlock()
	if err := p.call(); err != nil {
		return nil, err
	}
	var names []string
	for path := range p.files {
		if filepath.Dir(path) == dir {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	return names, nil
}

func (p *powerFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	defer p.mu.Unlock()
	if err := p.call(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if p.files[path] != nil {
		return nil, os.ErrExist
	}
	p.files[path] = &powerFile{now: make([]byte, size), durable: make([]byte, size)}
	return &powerHandle{fs: p, path: path}, nil
}

func (p *powerFS) Delete(dir, name string) error {
	defer p.mu.Unlock()
	if err := p.call(); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if p.files[path] == nil {
		return os.ErrNotExist
	}
	delete(p.files, path)
	return nil
}

func (p *powerFS) open(dir, name string) (*powerHandle, error) {
	defer p.mu.Unlock()
	if err := p.call(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if p.files[path] == nil {
		return nil, os.ErrNotExist
	}
	return &powerHandle{fs: p, path: path}, nil
}

func (p *powerFS) OpenReader(dir, name string) (types.ReadableFile, error) { return p.open(dir, name) }
func (p *powerFS) OpenWriter(dir, name string) (types.WritableFile, error) { return p.open(dir, name) }

func (p *powerFS) ReadFile(dir, name string) ([]byte, error) {
	defer p.mu.Unlock()
	if err := p.call(); err != nil {
		return nil, err
	}
	f := p.files[filepath.Join(dir, name)]
	if f == nil {
		return nil, os.ErrNotExist
	}
	return slices.Clone(f.now), nil
}

// WriteFile is atomic: a power cut at its call leaves the old or the new file.
func (p *powerFS) WriteFile(dir, name string, data []byte) error {
	defer p.mu.Unlock()
	err := p.call()
	if err != nil && (p.calls != p.cutAt || p.random.IntN(2) == 0) {
		return err
	}
	p.files[filepath.Join(dir, name)] = &powerFile{now: slices.Clone(data), durable: slices.Clone(data), entry: true}
	return err
}

// powerHandle is an open file.
type powerHandle struct {
	fs   *powerFS
	path string
}

func (h *powerHandle) ReadAt(b []byte, offset int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	f := h.fs.files[h.path]
	if f == nil {
		return 0, os.ErrClosed
	}
	if offset >= int64(len(f.now)) {
		return 0, io.EOF
	}
	n := copy(b, f.now[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt at the call that loses the power leaves a write that may be torn.
func (h *powerHandle) WriteAt(b []byte, offset int64) (int, error) {
	defer h.fs.mu.Unlock()
	err := h.fs.call()
	f := h.fs.files[h.path]
	if f == nil {
		return 0, os.ErrClosed
	}
	if err != nil && h.fs.calls != h.fs.cutAt {
		return 0, err
	}
	f.now = writeInto(f.now, int(offset), b)
	f.writes = append(f.writes, powerWrite{offset: int(offset), data: slices.Clone(b)})
	return len(b), err
}

// Sync at the call that loses the power has not happened.
func (h *powerHandle) Sync() error {
	defer h.fs.mu.Unlock()
	if err := h.fs.call(); err != nil {
		return err
	}
	f := h.fs.files[h.path]
	if f == nil {
		return os.ErrClosed
	}
	f.durable, f.writes, f.entry = slices.Clone(f.now), nil, true
	return nil
}

func (h *powerHandle) Close() error { return nil }

// describe lists the files, for a failing seed.
func (p *powerFS) describe() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for path, f := range p.files {
		fmt.Fprintf(&b, "%s: %d bytes, %d unsynced writes\n", path, len(f.now), len(f.writes))
	}
	return b.String()
}
