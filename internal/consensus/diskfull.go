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
	if isNoSpace(cause) {
		s.disk.setFull(true)
	}
	size := 64 * kib
	for _, l := range sealed {
		size += 2 * len(l.Data)
	}
	for attempt := 0; ; attempt++ {
		if attempt > 0 || isNoSpace(cause) {
			if !s.disk.wait(s.interval) {
				return ErrStopped
			}
		}
		if err := s.probe(size); err != nil {
			if isNoSpace(err) {
				s.disk.setFull(true)
				continue
			}
			return s.disk.fail(fmt.Errorf("%w: %w", ErrDiskFailed, err))
		}
		err := s.reopenAndAppend(sealed)
		if err == nil {
			s.disk.setFull(false)
			return nil
		}
		if !s.canHeal(err) || attempt > 0 && errors.Is(err, wal.ErrSealed) {
			return s.disk.fail(fmt.Errorf("%w: %w", ErrDiskFailed, err))
		}
		if isNoSpace(err) {
			s.disk.setFull(true)
		}
	}
}

// probeName is the file by which space is looked for.
const probeName = "probe" + tempSuffix

// probe writes, syncs and removes a file of the given size.
func (s *logStore) probe(size int) error {
	err := s.fs.Delete(s.probeDir, probeName)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("probe for space: %w", err)
	}
	f, err := s.fs.Create(s.probeDir, probeName, 0)
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

func (s *logStore) reopenAndAppend(sealed []*raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.eng.Close() // it has failed; its files are judged below
	s.eng = closedEngine{}
	acknowledgedMark, _ := s.mark.get()
	eng, err := s.open(false, acknowledgedMark)
	if err != nil {
		return err
	}
	s.eng = eng
	last, err := eng.LastIndex()
	if err != nil {
		return err
	}
	// Raft appends in order, so all before this append were acknowledged.
	acknowledged := sealed[0].Index - 1
	if err := s.compareReopened(eng, acknowledged, last); err != nil {
		return err
	}
	if err := eng.confirm(); err != nil {
		return err
	}
	// The failed append may have reached the file after all, without a sync.
	if last > acknowledged {
		if err := eng.DeleteRange(acknowledged+1, last); err != nil {
			return err
		}
	}
	s.suspect.Store(false)
	return eng.StoreLogs(sealed)
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

// closedEngine stands where no log is open.
type closedEngine struct{}

func (closedEngine) FirstIndex() (uint64, error)      { return 0, ErrStopped }
func (closedEngine) LastIndex() (uint64, error)       { return 0, ErrStopped }
func (closedEngine) GetLog(uint64, *raft.Log) error   { return ErrStopped }
func (closedEngine) StoreLog(*raft.Log) error         { return errSuspect }
func (closedEngine) StoreLogs([]*raft.Log) error      { return errSuspect }
func (closedEngine) DeleteRange(uint64, uint64) error { return errSuspect }
func (closedEngine) Close() error                     { return nil }
func (closedEngine) confirm() error                   { return nil }
