package consensus

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Create implements raft.SnapshotStore.
func (s *snapshotStore) Create(_ raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	s.mu.Lock()
	serial := 0
	for _, m := range s.good {
		if m.Index == index && m.Term == term {
			serial++
		}
	}
	for exists(filepath.Join(s.dir, snapshotName(index, term, serial))) {
		serial++
	}
	s.mu.Unlock()
	name := snapshotName(index, term, serial)
	path := filepath.Join(s.dir, name)
	if err := os.RemoveAll(path + tempSuffix); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path+tempSuffix, 0o750); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(path+tempSuffix, snapshotStateName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		_ = os.RemoveAll(path + tempSuffix)
		return nil, err
	}
	return &snapshotSink{
		store: s,
		path:  path,
		file:  f,
		chunk: make([]byte, 0, snapshotChunk),
		began: s.observe.clock(),
		meta: snapshotMeta{
			Index:              index,
			Term:               term,
			Configuration:      raft.EncodeConfiguration(configuration),
			ConfigurationIndex: configurationIndex,
			ChunkBytes:         snapshotChunk,
			TakenMillis:        s.now().UnixMilli(),
			name:               name,
		},
	}, nil
}

// snapshotSink is one snapshot being written, by one goroutine.
type snapshotSink struct {
	store    *snapshotStore
	path     string // without tempSuffix
	file     *os.File
	chunk    []byte // what is not written yet, less than a chunk
	unsynced int
	meta     snapshotMeta
	began    time.Time
	done     bool
}

// ID implements raft.SnapshotSink.
func (s *snapshotSink) ID() string { return s.meta.name }

// Write implements raft.SnapshotSink.
func (s *snapshotSink) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		n := min(len(b), snapshotChunk-len(s.chunk))
		s.chunk = append(s.chunk, b[:n]...)
		b = b[n:]
		if len(s.chunk) == snapshotChunk {
			if err := s.flush(); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

func (s *snapshotSink) flush() error {
	if len(s.chunk) == 0 {
		return nil
	}
	select {
	case <-s.store.stop:
		return ErrStopped
	default:
	}
	if _, err := s.file.Write(s.chunk); err != nil {
		return err
	}
	s.meta.ChunkSums = append(s.meta.ChunkSums, crc32.Checksum(s.chunk, castagnoli))
	s.meta.Size += int64(len(s.chunk))
	s.unsynced += len(s.chunk)
	s.chunk = s.chunk[:0]
	if s.unsynced < s.store.syncBytes {
		return nil
	}
	// Small syncs on the way: one at the end would hold up the log's syncs.
	s.unsynced = 0
	return syncData(s.file)
}

// Close implements raft.SnapshotSink: the snapshot becomes current, older ones
// beyond the retained number go. An error means that there is no new snapshot.
func (s *snapshotSink) Close() error {
	if s.done {
		return nil
	}
	if err := s.finish(); err != nil {
		return errors.Join(err, s.Cancel())
	}
	s.done = true
	st := s.store
	meta := s.meta // on its own, for it outlives the sink's buffer
	st.mu.Lock()
	st.good = slices.Insert(st.good, 0, &meta)
	slices.SortFunc(st.good, func(a, b *snapshotMeta) int { return strings.Compare(b.name, a.name) })
	st.mu.Unlock()
	st.saved(s.meta.Index, s.meta.Term)
	st.observe.snapshotTaken(s.began)
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.reapLocked(); err != nil {
		st.logger.Warn("an old snapshot could not be removed", "error", err)
	}
	return nil
}

func (s *snapshotSink) finish() error {
	err := s.flush()
	if err == nil {
		err = s.file.Sync()
	}
	if closeErr := s.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	data, err := sealRecord("snapshot", &s.meta)
	if err != nil {
		return err
	}
	if err := (OSFS{}).WriteFile(s.path+tempSuffix, snapshotMetaName, data); err != nil {
		return err
	}
	if err := os.Rename(s.path+tempSuffix, s.path); err != nil {
		return err
	}
	return syncDir(s.store.dir)
}

// Cancel implements raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	if s.done {
		return nil
	}
	s.done = true
	_ = s.file.Close() // closed already after a failed finish
	return os.RemoveAll(s.path + tempSuffix)
}

// snapshotReader yields the state chunk by chunk, each checked before use.
type snapshotReader struct {
	meta  *snapshotMeta
	file  *os.File
	next  int    // the chunk to read next
	ready []byte // checked and not yet yielded
	buf   []byte
}

// Read implements io.Reader.
func (r *snapshotReader) Read(b []byte) (int, error) {
	if len(r.ready) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

func (r *snapshotReader) fill() error {
	if r.next == len(r.meta.ChunkSums) {
		return io.EOF
	}
	size := min(int64(r.meta.ChunkBytes), r.meta.Size-int64(r.next)*int64(r.meta.ChunkBytes))
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	if _, err := io.ReadFull(r.file, r.buf); err != nil {
		return fmt.Errorf("%w: snapshot %s, chunk %d: %w", ErrCorrupt, r.meta.name, r.next, err)
	}
	if crc32.Checksum(r.buf, castagnoli) != r.meta.ChunkSums[r.next] {
		return fmt.Errorf("%w: snapshot %s, chunk %d does not have its checksum", ErrCorrupt, r.meta.name, r.next)
	}
	r.next++
	r.ready = r.buf
	return nil
}

// Close implements io.Closer.
func (r *snapshotReader) Close() error { return r.file.Close() }
