package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// boltLog is the log in a bbolt file.
type boltLog struct {
	*raftboltdb.BoltStore
}

func (boltLog) confirm() error { return nil }

// openBoltLog opens dir/log.db. The free list is kept in memory only: written
// with every commit it costs milliseconds once a large truncation has filled
// it (measured), at the price of a scan when the file is opened.
func openBoltLog(dir string, create bool) (engine, error) {
	path := filepath.Join(dir, "log.db")
	options := &bbolt.Options{
		Timeout:        time.Second,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	}
	store, err := openBoltFile(dir, path, create, options)
	if err != nil {
		return nil, err
	}
	return boltLog{store}, nil
}

// openBoltFile opens a bbolt file after looking at what bbolt would trust. A
// missing file is created only if create is set.
func openBoltFile(dir, path string, create bool, options *bbolt.Options) (store *raftboltdb.BoltStore, err error) {
	fresh := !exists(path)
	switch {
	case fresh && !create:
		return nil, fmt.Errorf("%w: %s is missing", ErrLess, path)
	case fresh:
		if err := makeDir(dir); err != nil {
			return nil, err
		}
	default:
		if err := checkBoltFile(path); err != nil {
			return nil, err
		}
	}
	// bbolt panics on pages that make no sense.
	defer func() {
		if r := recover(); r != nil {
			store, err = nil, fmt.Errorf("%w: %s: %v", ErrCorrupt, path, r)
		}
	}()
	store, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: options, MsgpackUseNewTimeFormat: true})
	if err != nil {
		if errors.Is(err, bbolt.ErrTimeout) {
			return nil, fmt.Errorf("%w: %s", ErrLocked, path)
		}
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if fresh {
		if err := syncDir(dir); err != nil {
			_ = store.Close()
			return nil, err
		}
	}
	return store, nil
}

// The parts of bbolt's two meta pages that checkBoltFile reads; each page
// begins with a header of 16 bytes.
const (
	boltMagic       = 0xED0CDAED
	boltVersion     = 2
	boltHeaderLen   = 16
	boltMetaLen     = 64
	boltChecksumLen = 56
)

// checkBoltFile refuses a file that is shorter than its newest valid meta page
// says. bbolt maps the file and would die of a bus error when it reads there.
func checkBoltFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var newest, need uint64
	found := false
	for _, offset := range []int64{0, int64(os.Getpagesize())} {
		var b [boltMetaLen]byte
		if _, err := f.ReadAt(b[:], offset+boltHeaderLen); err != nil {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:boltChecksumLen])
		order := binary.NativeEndian
		if order.Uint32(b[0:]) != boltMagic || order.Uint32(b[4:]) != boltVersion ||
			order.Uint64(b[boltChecksumLen:]) != sum.Sum64() {
			continue
		}
		pageSize, pages, transaction := order.Uint32(b[8:]), order.Uint64(b[40:]), order.Uint64(b[48:])
		if !found || transaction > newest {
			found, newest, need = true, transaction, pages*uint64(pageSize)
		}
	}
	if !found {
		return fmt.Errorf("%w: %s has no valid meta page", ErrCorrupt, path)
	}
	if uint64(info.Size()) < need {
		return fmt.Errorf("%w: %s has %d bytes, its meta page says %d", ErrCorrupt, path, info.Size(), need)
	}
	return nil
}
