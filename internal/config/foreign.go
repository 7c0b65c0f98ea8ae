package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// apacheDir is the directory below dataDir and dataLogDir where Apache
// ZooKeeper keeps its files. We only ever read its names.
const apacheDir = "version-2"

// tempSuffix ends the names of our files and folders that are being written.
const tempSuffix = ".tmp"

// DetectForeign refuses a pair of directories that hold the data of an Apache
// ZooKeeper and none of ours: starting there would look like a server that lost
// everything. The error is an *Error of kind ErrForeignData that names the
// newest snapshot. Missing directories are fine.
func DetectForeign(dataDir, dataLogDir string) error {
	ours, err := holdsData(filepath.Join(dataDir, ownDir))
	if err != nil {
		return err
	}
	if ours {
		return nil
	}
	var snapshot, log foreignFile
	for _, dir := range []string{dataDir, dataLogDir} {
		if err := collectForeign(filepath.Join(dir, apacheDir), &snapshot, &log); err != nil {
			return err
		}
	}
	var found string
	switch {
	case snapshot.path != "":
		found = fmt.Sprintf("its newest snapshot is %s, of zxid 0x%x", snapshot.path, snapshot.zxid)
	case log.path != "":
		found = fmt.Sprintf("it has no snapshot; its newest log is %s, from zxid 0x%x", log.path, log.zxid)
	default:
		return nil
	}
	return &Error{Kind: ErrForeignData, File: absolute(dataDir), Reason: "holds the data of an Apache ZooKeeper and none of this server's; " +
		found + ". Nothing was touched. Importing it is a separate command, which this version does not have; to start empty, choose another dataDir"}
}

// foreignFile is the newest file of its kind.
type foreignFile struct {
	path string
	zxid uint64
}

func (f *foreignFile) offer(path string, zxid uint64) {
	if f.path == "" || zxid > f.zxid {
		f.path, f.zxid = path, zxid
	}
}

func collectForeign(dir string, snapshot, log *foreignFile) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &Error{Kind: ErrDataDir, File: dir, Reason: reason(err)}
	}
	for _, entry := range entries {
		kind, rest, _ := strings.Cut(entry.Name(), ".")
		number, _, _ := strings.Cut(rest, ".")
		zxid, err := strconv.ParseUint(number, 16, 64)
		if err != nil || entry.IsDir() {
			continue
		}
		switch kind {
		case "snapshot":
			snapshot.offer(filepath.Join(absolute(dir), entry.Name()), zxid)
		case "log":
			log.offer(filepath.Join(absolute(dir), entry.Name()), zxid)
		}
	}
	return nil
}

// holdsData reports whether a directory of ours holds data: a file that is not
// empty. The lock, a socket and the empty folders of a start that failed are
// none, nor is what was not yet renamed into place.
func holdsData(dir string) (bool, error) {
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasSuffix(path, tempSuffix):
			return fs.SkipDir
		case !entry.Type().IsRegular() || strings.HasSuffix(path, tempSuffix):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if found = info.Size() > 0; found {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, &Error{Kind: ErrDataDir, File: dir, Reason: reason(err)}
	}
	return found, nil
}

// CheckDirs refuses directories that this server must not or cannot use,
// without making or changing any: foreign data, and missing directories while
// datadir.autocreate is false.
func (s Storage) CheckDirs() error {
	for _, dir := range []string{s.DataDir, s.LogDir} {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !s.AutoCreate:
			return &Error{Kind: ErrDataDir, File: absolute(dir), Reason: "is missing, and datadir.autocreate is false"}
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return &Error{Kind: ErrDataDir, File: absolute(dir), Reason: reason(err)}
		case !info.IsDir():
			return &Error{Kind: ErrDataDir, File: absolute(dir), Reason: "is not a directory"}
		}
	}
	return DetectForeign(s.DataDir, s.LogDir)
}
