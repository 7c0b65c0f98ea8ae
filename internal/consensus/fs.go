package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/raft-wal/types"
)

// FS is the file layer under the wal log store. It is handed in so that tests
// can lose everything since the last sync, fill the disk, or fail a sync.
//
// Beyond raft-wal's own needs it replaces small files whole, because the list
// of segments is kept in one.
type FS interface {
	types.VFS
	// ReadFile returns a small file, or an error wrapping os.ErrNotExist.
	ReadFile(dir, name string) ([]byte, error)
	// WriteFile replaces a small file: after a crash at any moment the file is
	// wholly old or wholly new, and once WriteFile has returned it is new.
	WriteFile(dir, name string, data []byte) error
}

// OSFS is the operating system's file layer.
type OSFS struct{}

// ListDir implements types.VFS.
func (OSFS) ListDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Create implements types.VFS. The space is allocated at once, so that a full
// disk shows here and an append needs no metadata beyond its own extent.
func (OSFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		if err := allocate(f, int64(size)); err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			return nil, fmt.Errorf("allocate %d bytes: %w", size, err)
		}
	}
	return &osFile{File: f, dir: dir}, nil
}

// Delete implements types.VFS.
func (OSFS) Delete(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// OpenReader implements types.VFS.
func (OSFS) OpenReader(dir, name string) (types.ReadableFile, error) {
	return os.Open(filepath.Join(dir, name))
}

// OpenWriter implements types.VFS.
func (OSFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, dir: dir}, nil
}

// ReadFile implements FS.
func (OSFS) ReadFile(dir, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(dir, name))
}

// WriteFile implements FS.
func (OSFS) WriteFile(dir, name string, data []byte) error {
	path := filepath.Join(dir, name)
	tmp := path + tempSuffix
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncDir(dir)
}

// tempSuffix marks files and directories that were never finished.
const tempSuffix = ".tmp"

// osFile syncs data only; the first sync also makes the directory entry
// durable, because the file may just have been created.
type osFile struct {
	*os.File
	dir    string
	synced atomic.Bool
}

// Sync implements types.WritableFile.
func (f *osFile) Sync() error {
	if err := syncData(f.File); err != nil {
		return err
	}
	if f.synced.Load() {
		return nil
	}
	if err := syncDir(f.dir); err != nil {
		return err
	}
	f.synced.Store(true)
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

// makeDir creates a directory with its parents, durably.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// isNoSpace tells a full disk, which can heal, from a broken one, which cannot.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
