package consensus

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// boltLog is the log in a bbolt file.
type boltLog struct {
	*raftboltdb.BoltStore
	synced func() error // Config.BoltSynced, may be nil
}

func (boltLog) confirm() error { return nil }

func (boltLog) room() int { return 0 }

// StoreLog implements raft.LogStore.
func (b boltLog) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (b boltLog) StoreLogs(logs []*raft.Log) error { return b.after(b.BoltStore.StoreLogs(logs)) }

// DeleteRange implements raft.LogStore.
func (b boltLog) DeleteRange(first, last uint64) error {
	return b.after(b.BoltStore.DeleteRange(first, last))
}

// after is a change's error, or what synced makes of it.
func (b boltLog) after(err error) error {
	if err != nil || b.synced == nil {
		return err
	}
	return b.synced()
}

// openBoltLog opens dir/log.db. The free list is kept in memory only: written
// with every commit it costs milliseconds once a large truncation has filled
// it (measured), at the price of a scan when the file is opened.
func openBoltLog(dir string, create bool, synced func() error) (engine, error) {
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
	return boltLog{store, synced}, nil
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
		if errors.Is(err, bbolterrors.ErrTimeout) {
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
