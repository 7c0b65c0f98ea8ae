package consensus

import (
	"errors"
	"os"
	"time"

	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Gaps in raft-wal v0.4.0, found by the power cut test of this room, are closed
// here and in walrotation.go. Each makes a log unusable from which nothing was lost.

// walFiler is raft-wal's segment layer, except that it can read a segment that
// was cut before it was full. raft-wal then marks the segment as sealed though
// it has no index block, and after a restart cannot find any entry in it.
//
// It also watches rotations.
type walFiler struct {
	*segment.Filer
	rotation *rotation
}

// Create implements types.SegmentFiler.
func (f *walFiler) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	w, err := f.Filer.Create(onDisk(info))
	f.rotation.end(err)
	if err != nil {
		return nil, err
	}
	return &watchedWriter{SegmentWriter: w, rotation: f.rotation}, nil
}

// RecoverTail implements types.SegmentFiler.
func (f *walFiler) RecoverTail(info types.SegmentInfo) (types.SegmentWriter, error) {
	w, err := f.Filer.RecoverTail(onDisk(info))
	if err != nil {
		return nil, err
	}
	return &watchedWriter{SegmentWriter: w, rotation: f.rotation}, nil
}

// Open implements types.SegmentFiler.
func (f *walFiler) Open(info types.SegmentInfo) (types.SegmentReader, error) {
	if info.IndexStart != 0 {
		return f.Filer.Open(onDisk(info))
	}
	return f.Filer.RecoverTail(onDisk(info))
}

// repairTail prepares the open segment, if there is one, for raft-wal.
func repairTail(meta *walMeta, filer *walFiler, segmentSize int, acknowledged uint64) error {
	state, err := meta.Load("")
	if err != nil || len(state.Segments) == 0 {
		return err
	}
	tail := state.Segments[len(state.Segments)-1]
	if !tail.SealTime.IsZero() {
		return nil
	}
	sealed, err := clearTornTail(meta.fs, meta.dir, tail, acknowledged)
	if errors.Is(err, os.ErrNotExist) && tail.BaseIndex > acknowledged {
		return nil // listed, but the crash came before the file
	}
	if err != nil || !sealed {
		return err
	}
	return finishSeal(meta, filer, state, segmentSize)
}

// finishSeal completes a rotation that a crash interrupted. The append that
// fills a segment seals it in the same write; the list of segments follows on
// another goroutine. After a crash between the two, raft-wal finds a tail that
// the list calls open and that refuses every append.
func finishSeal(meta *walMeta, filer *walFiler, state types.PersistentState, segmentSize int) error {
	tail := &state.Segments[len(state.Segments)-1]
	w, err := filer.Filer.RecoverTail(onDisk(*tail))
	if err != nil {
		return err
	}
	sealed, indexStart, err := w.Sealed()
	last := w.LastIndex()
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil || !sealed || last == 0 {
		return err
	}
	tail.SealTime = time.Now()
	tail.MaxIndex = last
	tail.IndexStart = indexStart
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID:         state.NextSegmentID,
		BaseIndex:  last + 1,
		MinIndex:   last + 1,
		SizeLimit:  uint32(segmentSize),
		Codec:      wal.CodecBinaryV1,
		CreateTime: time.Now(),
	})
	state.NextSegmentID++
	return meta.CommitState(state)
}
