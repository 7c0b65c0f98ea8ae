package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

/*
The mark is the witness of how far the log was synced, kept apart from the log:

	slot 0 at offset 0, slot 1 at offset 4096, each
	0               8               16              24              32     36
	+---------------+---------------+---------------+---------------+------+
	| magic         | sequence      | index         | term          | crc  |
	+---------------+---------------+---------------+---------------+------+
	36              44              52     56
	+---------------+---------------+------+
	| sequence      | settled       | crc  |
	+---------------+---------------+------+

A log file cannot tell a torn, never acknowledged last write from an
acknowledged one whose bits have rotted: both are a bad last record. The mark
can. Invariant, at any moment and after any crash:

	mark.index ≤ last index that was synced     (or removed on purpose)

It is written after each sync of the log without a sync of its own: a killed
process loses nothing of it, a power cut only makes it older, and an older mark
is still true. Before entries at the end of the log are removed, it is lowered
and synced first. The two slots are written in turn, so one torn write leaves
the other.

Settled is an entry that this server has applied, so that a majority has stored it.
It never goes down: a leader that wants it removed does not know what the ensemble
has acknowledged. A slot without it, or with another sequence's, is of an older
version of the program.
*/
const (
	markMagic   = uint64(0x314b52414d52545a) // "ZTRMARK1"
	markSlotLen = 36
	markNoteLen = 20
	markSlotGap = 4096
	markFileLen = 2 * markSlotGap
)

// mark is the open witness file.
type mark struct {
	mu       sync.Mutex
	file     types.WritableFile // guarded by mu
	sequence uint64             // guarded by mu; the next write goes to slot sequence%2
	index    uint64             // guarded by mu
	term     uint64             // guarded by mu
	settled  uint64             // guarded by mu
}

// createMark writes a new witness file of an empty log.
func createMark(fs FS, dir, name string) (*mark, error) {
	if err := fs.Delete(dir, name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := fs.Create(dir, name, 0)
	if err != nil {
		return nil, err
	}
	m, err := newMark(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("create %s/%s: %w", dir, name, err)
	}
	return m, nil
}

// newMark makes an empty file the witness of an empty log.
func newMark(f types.WritableFile) (*mark, error) {
	m := &mark{file: f}
	if _, err := f.WriteAt(make([]byte, markFileLen), 0); err != nil {
		return nil, err
	}
	return m, m.lower(0, 0)
}

// openMark reads the witness; a file whose slots are both bad is ErrCorrupt.
func openMark(fs FS, dir, name string) (*mark, error) {
	f, err := fs.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	m, err := readMark(f, filepath.Join(dir, name))
	if err != nil {
		_ = f.Close()
	}
	return m, err
}

// readMark reads the two slots; name is for messages.
func readMark(f types.WritableFile, name string) (*mark, error) {
	m := &mark{file: f}
	valid := 0
	for slot := range int64(2) {
		var b [markSlotLen + markNoteLen]byte
		if _, err := f.ReadAt(b[:], slot*markSlotGap); err != nil {
			continue
		}
		sequence, index, term, err := decodeMark([markSlotLen]byte(b[:]))
		if err != nil {
			continue
		}
		valid++
		m.settled = max(m.settled, decodeSettled(b[markSlotLen:], sequence))
		if sequence >= m.sequence {
			m.sequence, m.index, m.term = sequence+1, index, term
		}
	}
	if valid == 0 {
		return nil, fmt.Errorf("%w: %s has no valid slot", ErrCorrupt, name)
	}
	return m, nil
}

func decodeMark(b [markSlotLen]byte) (sequence, index, term uint64, err error) {
	body := b[:markSlotLen-4]
	if binary.LittleEndian.Uint64(body) != markMagic ||
		binary.LittleEndian.Uint32(b[markSlotLen-4:]) != crc32.Checksum(body, castagnoli) {
		return 0, 0, 0, ErrCorrupt
	}
	return binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:]), nil
}

// decodeSettled reads what follows a slot; 0 when it says nothing.
func decodeSettled(b []byte, sequence uint64) uint64 {
	if binary.LittleEndian.Uint64(b) != sequence || binary.LittleEndian.Uint32(b[16:]) != crc32.Checksum(b[:16], castagnoli) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[8:])
}

// settles returns the last entry known to have been applied here at any time.
func (m *mark) settles() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settled
}

// get returns the last entry known to be synced.
func (m *mark) get() (index, term uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index, m.term
}

// raise notes that the log is synced through an entry, and what has been applied.
// A full disk is ignored: the older mark stays true.
func (m *mark) raise(index, term, settled uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled = max(m.settled, settled)
	if err := m.writeLocked(index, term); err != nil && !isNoSpace(err) {
		return err
	}
	return nil
}

// lower must be called before entries after index are removed from the log.
func (m *mark) lower(index, term uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Both slots, or a reader could meet the higher one after a torn write.
	for range 2 {
		if err := m.writeLocked(index, term); err != nil {
			return err
		}
		if err := m.file.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// sync makes the mark durable; called at snapshots and at close.
func (m *mark) sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file.Sync()
}

// close notes what has been applied and makes the mark durable.
func (m *mark) close(settled uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if settled > m.settled {
		m.settled = settled
		err = m.writeLocked(m.index, m.term)
	}
	return errors.Join(err, m.file.Sync(), m.file.Close())
}

func (m *mark) writeLocked(index, term uint64) error {
	var b [markSlotLen + markNoteLen]byte
	binary.LittleEndian.PutUint64(b[0:], markMagic)
	binary.LittleEndian.PutUint64(b[8:], m.sequence)
	binary.LittleEndian.PutUint64(b[16:], index)
	binary.LittleEndian.PutUint64(b[24:], term)
	binary.LittleEndian.PutUint32(b[markSlotLen-4:], crc32.Checksum(b[:markSlotLen-4], castagnoli))
	note := b[markSlotLen:]
	binary.LittleEndian.PutUint64(note, m.sequence)
	binary.LittleEndian.PutUint64(note[8:], m.settled)
	binary.LittleEndian.PutUint32(note[16:], crc32.Checksum(note[:16], castagnoli))
	if _, err := m.file.WriteAt(b[:], int64(m.sequence%2)*markSlotGap); err != nil {
		return err
	}
	m.sequence, m.index, m.term = m.sequence+1, index, term
	return nil
}
