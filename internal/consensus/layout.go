package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// layout names every file of this room; DESIGN.md draws it. Nothing outside
// the two roots is ever opened.
type layout struct {
	root    string // <dataDir>/zooraft
	logRoot string // <dataLogDir>/zooraft, often the same
}

func (c Config) layout() layout {
	return layout{
		root:    filepath.Join(c.DataDir, "zooraft"),
		logRoot: filepath.Join(c.logDir(), "zooraft"),
	}
}

// markName is the file of the mark in layout.root.
const markName = "synced"

func (l layout) stable() string    { return filepath.Join(l.root, "stable.db") }
func (l layout) mark() string      { return filepath.Join(l.root, markName) }
func (l layout) snapshots() string { return filepath.Join(l.root, "snapshots") }

// log is the directory of a log store.
func (l layout) log(store string) string { return filepath.Join(l.logRoot, "log-"+store) }

// dirLocks are the locks on both roots, held until the process ends or close.
type dirLocks []*os.File

// lock takes both roots, creating them. The kernel drops the locks when the
// process dies, so a lock file left behind means nothing.
func (l layout) lock() (locks dirLocks, err error) {
	defer func() {
		if err != nil {
			locks.close()
			locks = nil
		}
	}()
	roots := []string{l.root}
	if l.logRoot != l.root {
		roots = append(roots, l.logRoot)
	}
	for _, root := range roots {
		if err := makeDir(root); err != nil {
			return locks, fmt.Errorf("create %s: %w", root, err)
		}
		path := filepath.Join(root, "lock")
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return locks, fmt.Errorf("open %s: %w", path, err)
		}
		locks = append(locks, f)
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				return locks, fmt.Errorf("%w: %s is locked; stop the other server or use another dataDir", ErrLocked, path)
			}
			return locks, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	return locks, nil
}

func (d dirLocks) close() {
	for _, f := range d {
		_ = f.Close()
	}
}

// exists tells whether a path is there; an unreadable one counts as there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// holdsFiles tells whether a directory is there and not empty.
func holdsFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	return err != nil || len(entries) > 0
}
