package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// logStore is Raft's log store: an engine, with a checksum on every entry, a
// cache in front, the mark beside it, the log kept back to the oldest snapshot,
// and an answer to a disk that fills or fails.
//
// The rejected way is to trust the engine. raft-wal checks only the last write
// it finds at start and never a record it reads; bbolt has no page checksums.
// So each stored entry carries a checksum of its own in Extensions, the field
// that Raft leaves to layers like this one, and GetLog takes it off again.
//
// StoreLogs and removals at the end are called by Raft's main goroutine only,
// removals at the front by its snapshot goroutine, reads by any. Appends run on the
// main goroutine too, or on one of their own while that waits or leads (beside.go):
// one at a time.
type logStore struct {
	logger   *slog.Logger
	open     engineOpener
	cache    *logCache
	mark     *mark
	keepFrom func() (index uint64, ok bool)    // the log is kept after index; not ok: whole
	cut      func(index, newest uint64) uint64 // lowers index to what others need; nil: they need nothing
	covered  func() uint64                     // entries up to it are in a snapshot
	applied  func() uint64                     // entries up to it have been applied
	broken   func(error)                       // stops the node; may not block
	grown    func(last uint64)                 // told after each append
	disk     *disk
	interval time.Duration // between probes of a full disk
	fs       FS            // where probes are written
	probeDir string        // in this directory

	observe *Observer // may be nil

	// beside says whether an append of commands is a leader's, which may be synced
	// beside their replication; nil means never. See beside.go.
	beside   func() bool
	unsynced *unsynced // nil if beside is

	// patient is set once Open is through: a full disk is waited for only then.
	patient atomic.Bool
	// suspect says that the engine failed beside an append, so that it must be
	// reopened before the next one.
	suspect atomic.Bool
	// first is the index of the oldest entry, for Status, which must not wait.
	first atomic.Uint64
	// since is when the oldest entry that says so was made, in Unix nanoseconds by
	// the clock of the leader that made it; 0 if there is none. A founder's first
	// entry does not say.
	since atomic.Int64

	mu  sync.RWMutex
	eng engine // guarded by mu, which is taken for writing only to replace it
}

// Extensions of a stored entry end in these bytes: a tag and a checksum.
const (
	sealTag = 0x5a
	sealLen = 1 + 4
)

// entrySum covers all that makes an entry what it is, its place included.
func entrySum(l *raft.Log, extensions []byte) uint32 {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	sum := crc32.Checksum(head[:], castagnoli)
	sum = crc32.Update(sum, castagnoli, l.Data)
	return crc32.Update(sum, castagnoli, extensions)
}

// sealLogs copies entries and adds their checksums; Raft's own stay untouched,
// because replication reads them at the same time.
func sealLogs(logs []*raft.Log) []*raft.Log {
	copies := make([]raft.Log, len(logs))
	sealed := make([]*raft.Log, len(logs))
	for i, l := range logs {
		copies[i] = *l
		ext := make([]byte, 0, len(l.Extensions)+sealLen)
		ext = append(ext, l.Extensions...)
		ext = append(ext, sealTag)
		copies[i].Extensions = binary.LittleEndian.AppendUint32(ext, entrySum(l, l.Extensions))
		sealed[i] = &copies[i]
	}
	return sealed
}

// unsealLog checks an entry that was read for index and takes its checksum off.
func unsealLog(index uint64, l *raft.Log) error {
	n := len(l.Extensions) - sealLen
	if n < 0 || l.Extensions[n] != sealTag {
		return fmt.Errorf("%w: log entry %d has no checksum", ErrCorrupt, index)
	}
	sum := binary.LittleEndian.Uint32(l.Extensions[n+1:])
	l.Extensions = l.Extensions[:n:n]
	if n == 0 {
		l.Extensions = nil
	}
	if l.Index != index || entrySum(l, l.Extensions) != sum {
		return fmt.Errorf("%w: log entry %d does not have its checksum", ErrCorrupt, index)
	}
	return nil
}

// IsMonotonic implements raft.MonotonicLogStore. Without it Raft would keep a
// gap in the log after installing a snapshot, which raft-wal cannot store.
func (s *logStore) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (s *logStore) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.eng.FirstIndex()
}

// LastIndex implements raft.LogStore.
func (s *logStore) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.unsynced != nil {
		if last := s.unsynced.last(); last != 0 {
			return last, nil
		}
	}
	return s.eng.LastIndex()
}

// durable is the part of the log up to index that is synced.
func (s *logStore) durable(index uint64) uint64 {
	if s.unsynced == nil {
		return index
	}
	return s.unsynced.durable(index)
}

// newest is the last entry that is not synced, or 0.
func (s *logStore) newest() uint64 {
	if s.unsynced == nil {
		return 0
	}
	return s.unsynced.last()
}

// awaitSync returns once the log is synced up to index, as far as it has entries,
// or why it never will be.
func (s *logStore) awaitSync(index uint64) error {
	if s.unsynced == nil {
		return nil
	}
	return s.unsynced.wait(index)
}

// GetLog implements raft.LogStore.
func (s *logStore) GetLog(index uint64, out *raft.Log) error {
	if s.unsynced != nil && s.unsynced.get(index, out) {
		return nil
	}
	if s.cache.get(index, out) {
		return nil
	}
	err := s.read(index, out)
	if errors.Is(err, ErrStopped) {
		return err
	}
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || !s.patient.Load() || index <= s.covered() {
		return err
	}
	// Raft would bring down the whole process. An entry that was whole at the
	// start no longer is: stop this node instead, and never answer.
	_ = s.disk.fail(err)
	select {}
}

// readEntry reads and checks one entry. bbolt may panic on a damaged page.
func readEntry(eng engine, index uint64, out *raft.Log) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: log entry %d: %v", ErrCorrupt, index, r)
		}
	}()
	*out = raft.Log{}
	if err := eng.GetLog(index, out); err != nil {
		if errors.Is(err, raft.ErrLogNotFound) {
			return raft.ErrLogNotFound // Raft compares it with ==
		}
		return fmt.Errorf("%w: log entry %d: %w", ErrCorrupt, index, err)
	}
	return unsealLog(index, out)
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. It returns once the entries are synced,
// or the disk has failed, or the node stops; a leader's commands it takes, and
// returns at once (beside.go). A full disk makes it wait: the library would step
// down and be elected again without end (raft#614).
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	if s.beside != nil && commandsOnly(logs) && s.beside() {
		return s.unsynced.add(logs)
	}
	if err := s.awaitSync(everything); err != nil {
		return err
	}
	if err := s.dropBehindSnapshot(logs[0].Index); err != nil {
		return err
	}
	return s.store(logs)
}

// dropBehindSnapshot empties a log that ends before a snapshot, when the first entry
// behind the snapshot comes. The library does so once it has loaded what the leader
// sent; it never did if this server was stopped while it loaded it, and goes on from
// the snapshot after a start. raft-wal would refuse the entry for ever, and in bbolt
// there would be a gap.
func (s *logStore) dropBehindSnapshot(next uint64) error {
	if known, _ := s.mark.get(); next <= known+1 {
		return nil // the usual case: it follows what was synced last
	}
	last, err := s.LastIndex()
	if err != nil || last == 0 || next <= last+1 || next-1 > s.covered() {
		return err
	}
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	s.logger.Info("the log ends before the snapshot that was loaded; it begins anew behind it", "last", last, "next", next)
	return s.DeleteRange(first, last)
}

// store appends entries and returns once they are synced.
func (s *logStore) store(logs []*raft.Log) error {
	s.disk.begin()
	defer s.disk.end()
	if err := s.disk.refusal(); err != nil {
		return err
	}
	sealed := sealLogs(logs)
	if err := s.append(sealed); err != nil {
		if !s.patient.Load() {
			return err
		}
		if !s.canHeal(err) {
			return s.disk.fail(fmt.Errorf("%w: append of entry %d: %w", ErrDiskFailed, logs[0].Index, err))
		}
		if err := s.appendWhenSpace(sealed, err); err != nil {
			return err
		}
	}
	s.first.CompareAndSwap(0, logs[0].Index)
	if s.since.Load() == 0 {
		s.since.Store(nanos(logs[0].AppendedAt))
	}
	s.cache.add(logs)
	last := logs[len(logs)-1]
	if err := s.mark.raise(last.Index, last.Term, s.applied()); err != nil {
		return s.disk.fail(fmt.Errorf("%w: the mark of entry %d: %w", ErrDiskFailed, last.Index, err))
	}
	if s.grown != nil {
		s.grown(last.Index)
	}
	return nil
}

func (s *logStore) append(sealed []*raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.suspect.Load() {
		return errSuspect
	}
	start := s.observe.clock()
	err := s.eng.StoreLogs(sealed)
	s.observe.appended(start)
	return err
}

// DeleteRange implements raft.LogStore. A range at the front is cut short so
// that the log reaches back to the oldest snapshot that is kept.
func (s *logStore) DeleteRange(low, high uint64) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	if high < last {
		keep, ok := s.keepFrom()
		if !ok {
			return nil
		}
		if s.cut != nil {
			keep = s.cut(keep, s.covered())
		}
		high = min(high, keep)
		if durable := s.durable(last); durable < last {
			high = min(high, durable-1) // or nothing would be left on the disk
		}
		if low > first || high < low {
			return nil
		}
		return s.remove(low, high)
	}
	// A removal at the end, or of everything once a snapshot was installed.
	if err := s.awaitSync(everything); err != nil {
		return err
	}
	if err := s.keepSettled(low, high, first); err != nil {
		s.broken(err)
		return err
	}
	// The mark goes down first, or a crash in between would look like a loss.
	s.cache.clear()
	var index, term uint64
	if low > first && first > 0 {
		var before raft.Log
		if err := s.GetLog(low-1, &before); err != nil {
			return err
		}
		index, term = before.Index, before.Term
	}
	if err := s.mark.lower(index, term); err != nil {
		return fmt.Errorf("lower the mark: %w", err)
	}
	return s.removeAtEnd(low, high, index)
}

// keepSettled refuses to remove from the end of the log what this server has
// applied. Raft never asks for that unless a server of the ensemble forgot what it
// had acknowledged, as one does whose data are an old copy; the library does not
// look, and goes on with a state machine that holds the removed entries.
func (s *logStore) keepSettled(low, high, first uint64) error {
	settled := max(s.applied(), s.mark.settles())
	from := low
	if low <= first { // everything, after a snapshot took its place
		from = max(low, s.covered()+1)
	}
	if from > settled {
		return nil
	}
	return fmt.Errorf("%w: it wants entries %d to %d removed here, of which those up to %d were acknowledged", ErrForgotten, low, high, settled)
}

func (s *logStore) remove(low, high uint64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.suspect.Load() {
		return errSuspect
	}
	if err := s.eng.DeleteRange(low, high); err != nil {
		s.suspect.Store(true)
		return err
	}
	s.noteFirst(s.eng)
	return nil
}

// noteFirst remembers where the log begins, and since when.
func (s *logStore) noteFirst(eng engine) {
	first, err := eng.FirstIndex()
	if err != nil {
		return
	}
	var l raft.Log
	if first == 0 || readEntry(eng, first, &l) != nil { // what cannot be read is the concern of others
		l = raft.Log{}
	}
	s.since.Store(nanos(l.AppendedAt))
	s.first.Store(first)
}

// close closes the engine and makes the mark durable.
func (s *logStore) close() error {
	if s.unsynced != nil {
		s.unsynced.idle()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.eng.Close()
	s.eng = closedEngine{}
	return errors.Join(err, s.mark.close(s.applied()))
}
