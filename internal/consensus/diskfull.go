package consensus

import (
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// errSuspect is returned by an engine that must be reopened first.
var errSuspect = errors.New("consensus: the log store must be reopened")

// canHeal tells the failures after which the log may be reopened: no space, a
// removal that failed for whatever reason, and a segment that is sealed because
// its successor could not be created. Everything else poisons.
func (s *logStore) canHeal(err error) bool {
	return isNoSpace(err) || errors.Is(err, errSuspect) || errors.Is(err, wal.ErrSealed)
}

// appendWhenSpace is the way through a full disk: wait until a probe of the
// append's size can be written and synced, reopen the log, compare it with what
// it must hold, and append what is not in it yet. The failed append is never
// retried on the same open file: what it left there is unknown.
func (s *logStore) appendWhenSpace(sealed []*raft.Log, cause error) error {
	size := 64 * kib
	for _, l := range sealed {
		size += 2 * len(l.Data)
	}
	// Raft appends in order, so all before this append were acknowledged.
	acknowledged := sealed[0].Index - 1
	return s.whenSpace(size, cause, func() error {
		last, err := s.reopen(acknowledged)
		if err != nil {
			return err
		}
		// The failed append may have reached the file after all, without a sync.
		if last > acknowledged {
			if err := s.shorten(acknowledged+1, last); err != nil {
				return err
			}
		}
		return s.eng.StoreLogs(sealed)
	})
}

// removeAtEnd removes entries up to the last one; the log must hold those up to kept.
// It goes an append's way through a full disk, because raft-wal makes a segment for
// it: the library only logs that a removal failed, and asks for the same one again
// before any append, so nothing else would open the log anew.
func (s *logStore) removeAtEnd(low, high, kept uint64) error {
	err := s.remove(low, high)
	if err == nil || !s.patient.Load() {
		return err
	}
	err = fmt.Errorf("%w: %w", errCut, err)
	if !s.canHeal(err) {
		return s.disk.fail(fmt.Errorf("%w: %w", ErrDiskFailed, err))
	}
	return s.whenSpace(64*kib, err, func() error {
		// The list of segments may have been replaced before the new segment failed;
		// then the entries are gone already.
		if _, err := s.reopen(kept); err != nil {
			return err
		}
		if err := s.shorten(low, high); err != nil {
			return err
		}
		s.noteFirst(s.eng)
		return nil
	})
}

// shorten removes entries from the end of a log that was reopened. It is called with
// the lock.
func (s *logStore) shorten(low, high uint64) error {
	if err := s.eng.DeleteRange(low, high); err != nil {
		s.suspect.Store(true)
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return nil
}

// whenSpace calls again, with the log store locked, until it is through, each time
// after a probe of a size has found room. A log that needs a new segment, or could
// not be opened, is left alone until there is room for a segment: until then it can
// be read, and an open that fails leaves descriptors of raft-wal behind.
func (s *logStore) whenSpace(size int, cause error, again func() error) error {
	room := 0
	for attempt := 0; ; attempt++ {
		if isNoSpace(cause) {
			s.disk.setFull(true)
		}
		if needsSegment(cause) {
			room = s.segmentRoom()
		}
		if attempt > 0 || isNoSpace(cause) {
			if !s.disk.wait(s.interval) {
				return ErrStopped
			}
		}
		if err := s.probe(size, room); err != nil {
			if isNoSpace(err) {
				s.disk.setFull(true)
				continue
			}
			return s.disk.fail(fmt.Errorf("%w: %w", ErrDiskFailed, err))
		}
		if cause = s.locked(again); cause == nil {
			s.disk.setFull(false)
			return nil
		}
		if !s.canHeal(cause) || attempt > 0 && errors.Is(cause, wal.ErrSealed) && !isNoSpace(cause) {
			return s.disk.fail(fmt.Errorf("%w: %w", ErrDiskFailed, cause))
		}
	}
}

func (s *logStore) locked(call func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return call()
}

// What may have wanted a new segment and found no room.
var (
	errReopen = errors.New("reopen the log")
	errCut    = errors.New("remove the end of the log")
)

// needsSegment tells failures of which a new segment may be the way out.
func needsSegment(err error) bool {
	return errors.Is(err, wal.ErrSealed) || errors.Is(err, errReopen) || errors.Is(err, errCut)
}

// segmentRoom is how much space a new file of the log takes at once, in bytes.
func (s *logStore) segmentRoom() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.eng.room()
}

// probeName is the file by which space is looked for.
const probeName = "probe" + tempSuffix

// probe allocates a file of room bytes as raft-wal does a segment, writes and syncs
// size bytes in it, and removes it.
func (s *logStore) probe(size, room int) error {
	err := s.fs.Delete(s.probeDir, probeName)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("probe for space: %w", err)
	}
	f, err := s.fs.Create(s.probeDir, probeName, uint64(room))
	if err != nil {
		return fmt.Errorf("probe for space: %w", err)
	}
	_, err = f.WriteAt(make([]byte, size), 0)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if deleted := s.fs.Delete(s.probeDir, probeName); err == nil {
		err = deleted
	}
	if err != nil {
		return fmt.Errorf("probe for space: %w", err)
	}
	return nil
}

// reopen closes the log, opens it, compares it with what it must hold, and returns
// its last entry. It is called with the lock.
func (s *logStore) reopen(acknowledged uint64) (last uint64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", errReopen, err)
		}
	}()
	_ = s.eng.Close() // it has failed; its files are judged here
	s.eng = closedEngine{segment: s.eng.room()}
	acknowledgedMark, _ := s.mark.get()
	eng, err := s.open(false, acknowledgedMark)
	if err != nil {
		return 0, err
	}
	s.eng = eng
	if last, err = eng.LastIndex(); err != nil {
		return 0, err
	}
	if err := s.compareReopened(eng, acknowledged, last); err != nil {
		return 0, err
	}
	if err := eng.confirm(); err != nil {
		return 0, err
	}
	s.suspect.Store(false)
	return last, nil
}

// compareReopened refuses a log that lost an acknowledged entry while closed.
func (s *logStore) compareReopened(eng engine, acknowledged, last uint64) error {
	markIndex, markTerm := s.mark.get()
	empty := last == 0 && markIndex == 0 // before the first append, or after a snapshot was installed
	if last < markIndex || last < acknowledged && !empty {
		return fmt.Errorf("%w: the reopened log ends at entry %d, entry %d was acknowledged", ErrLess, last, acknowledged)
	}
	first, err := eng.FirstIndex()
	if err != nil || markIndex == 0 || markIndex < first {
		return err
	}
	var l raft.Log
	if err := readEntry(eng, markIndex, &l); err != nil {
		return err
	}
	if l.Term != markTerm {
		return fmt.Errorf("%w: entry %d has term %d, acknowledged with term %d", ErrLess, markIndex, l.Term, markTerm)
	}
	return nil
}

// read reads an entry, once the log is open again if a full disk keeps it closed.
func (s *logStore) read(index uint64, out *raft.Log) error {
	for {
		s.mu.RLock()
		_, closed := s.eng.(closedEngine)
		var err error
		if !closed {
			err = readEntry(s.eng, index, out)
		}
		s.mu.RUnlock()
		if !closed {
			return err
		}
		if !s.disk.wait(s.interval) {
			return ErrStopped
		}
	}
}

// closedEngine stands where no log is open.
type closedEngine struct{ segment int }

func (closedEngine) FirstIndex() (uint64, error)      { return 0, ErrStopped }
func (closedEngine) LastIndex() (uint64, error)       { return 0, ErrStopped }
func (closedEngine) GetLog(uint64, *raft.Log) error   { return ErrStopped }
func (closedEngine) StoreLog(*raft.Log) error         { return errSuspect }
func (closedEngine) StoreLogs([]*raft.Log) error      { return errSuspect }
func (closedEngine) DeleteRange(uint64, uint64) error { return errSuspect }
func (closedEngine) Close() error                     { return nil }
func (closedEngine) confirm() error                   { return nil }
func (c closedEngine) room() int                      { return c.segment }
