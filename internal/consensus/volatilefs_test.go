package consensus

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/types"
)

// volatileFS is faultyFS that can lose power: restore takes back every write that
// no sync followed.
type volatileFS struct {
	faultyFS
	mu   sync.Mutex
	lost map[string][]powerWrite // guarded by mu; by path: what unsynced writes wrote over
}

// cut takes the power: what hangs and all that comes fails.
func (v *volatileFS) cut(hang chan struct{}) {
	v.set(errPowerCut, errPowerCut, nil)
	if hang != nil {
		close(hang)
	}
}

// restore is the machine coming back. The files must be closed.
func (v *volatileFS) restore(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for path, writes := range v.lost {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(writes) - 1; i >= 0; i-- {
			if _, err := f.WriteAt(writes[i].data, int64(writes[i].offset)); err != nil {
				t.Fatal(err)
			}
		}
		_ = f.Close()
	}
	v.lost = nil
	v.set(nil, nil, nil)
}

func (v *volatileFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.faultyFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return &volatileFile{WritableFile: f, fs: v, path: filepath.Join(dir, name)}, nil
}

func (v *volatileFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.faultyFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &volatileFile{WritableFile: f, fs: v, path: filepath.Join(dir, name)}, nil
}

type volatileFile struct {
	types.WritableFile
	fs   *volatileFS
	path string
}

func (f *volatileFile) WriteAt(b []byte, offset int64) (int, error) {
	before := make([]byte, len(b))
	_, _ = f.ReadAt(before, offset) // zeros behind the end
	f.fs.mu.Lock()
	if f.fs.lost == nil {
		f.fs.lost = map[string][]powerWrite{}
	}
	f.fs.lost[f.path] = append(f.fs.lost[f.path], powerWrite{offset: int(offset), data: before})
	f.fs.mu.Unlock()
	return f.WritableFile.WriteAt(b, offset)
}

func (f *volatileFile) Sync() error {
	f.fs.mu.Lock()
	written := len(f.fs.lost[f.path])
	f.fs.mu.Unlock()
	err := f.WritableFile.Sync()
	if err == nil {
		f.fs.mu.Lock()
		f.fs.lost[f.path] = f.fs.lost[f.path][written:]
		f.fs.mu.Unlock()
	}
	return err
}

// losing are three servers whose disks can hang, fail and lose power. A leader keeps
// its lease on a busy machine, and for a while if it is cut off.
func losing(t *testing.T) ([]*testServer, map[*testServer]*volatileFS) {
	t.Helper()
	var disks []*volatileFS
	servers := ensembleWith(t, 3, func(c *Config) {
		fs := &volatileFS{}
		disks = append(disks, fs)
		c.FS, c.LogStore, c.DiskStallLimit = fs, LogStoreWAL, time.Minute
		c.ElectionTimeout = 3 * time.Second
		c.StreamTimeout = 600 * time.Millisecond // followers ask often what is committed
	})
	of := map[*testServer]*volatileFS{}
	for i, s := range servers {
		of[s] = disks[i]
	}
	return servers, of
}

// unsyncedTail proposes a command at a leader whose syncs hang, and returns the
// index of its entry.
func (s *testServer) unsyncedTail(t *testing.T, token uint64, command string) uint64 {
	t.Helper()
	before := s.log.newest()
	eventuallyTrue(t, "a proposal is taken", func() bool { return s.Propose(token, []byte(command)) == nil })
	eventuallyTrue(t, "the leader's log has the entry, and its disk has not", func() bool { return s.log.newest() > before })
	return s.log.newest()
}

// stored waits until servers have an entry on their disks.
func stored(t *testing.T, servers []*testServer, index uint64) {
	t.Helper()
	for _, s := range servers {
		eventuallyTrue(t, "the others have stored it", func() bool {
			last, err := s.log.LastIndex()
			return err == nil && last >= index
		})
	}
}
