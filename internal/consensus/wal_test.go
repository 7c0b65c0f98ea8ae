package consensus

import (
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func testLog(index uint64, size int) *raft.Log {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(index) + byte(i)
	}
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: data}
}

func openTestWAL(t *testing.T, fs FS, dir string, create bool) engine {
	t.Helper()
	e, err := openWALLog(fs, dir, minSegmentBytes, create, 0, testCodec, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.confirm(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func appendTestLogs(t *testing.T, e engine, from, to uint64, size int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := e.StoreLogs(sealLogs([]*raft.Log{testLog(i, size)})); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
}

func requireTestLogs(t *testing.T, e engine, from, to uint64) {
	t.Helper()
	last, err := e.LastIndex()
	if err != nil || last != to {
		t.Fatalf("last index is %d (%v), want %d", last, err, to)
	}
	for i := from; i <= to; i++ {
		var l raft.Log
		if err := readEntry(e, i, &l); err != nil { // with its index and checksum
			t.Fatalf("read %d: %v", i, err)
		}
	}
}

func TestWALReadsASegmentThatWasCutBeforeItWasFull(t *testing.T) {
	dir := t.TempDir() + "/log-wal"
	e := openTestWAL(t, OSFS{}, dir, true)
	appendTestLogs(t, e, 1, 10, 1000)
	if err := e.DeleteRange(6, 10); err != nil {
		t.Fatal(err)
	}
	appendTestLogs(t, e, 6, 8, 1000)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openTestWAL(t, OSFS{}, dir, false)
	requireTestLogs(t, e, 1, 8)
	appendTestLogs(t, e, 9, 12, 1000)
}

// failingMetaFS refuses to replace the list of segments once armed: what a
// crash right before that write leaves behind.
type failingMetaFS struct {
	OSFS
	armed *bool
}

func (f failingMetaFS) WriteFile(dir, name string, data []byte) error {
	if *f.armed {
		return errors.New("killed before the write")
	}
	return f.OSFS.WriteFile(dir, name, data)
}

func TestWALGoesOnAfterACrashBetweenSealAndRotation(t *testing.T) {
	dir := t.TempDir() + "/log-wal"
	armed := false
	e := openTestWAL(t, failingMetaFS{armed: &armed}, dir, true)
	armed = true
	var last uint64
	for i := uint64(1); i <= 1000; i++ {
		if err := e.StoreLogs(sealLogs([]*raft.Log{testLog(i, 1000)})); err != nil {
			break
		}
		last = i
	}
	if last == 0 || last == 1000 {
		t.Fatalf("the first segment was not filled: %d entries", last)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openTestWAL(t, OSFS{}, dir, false)
	requireTestLogs(t, e, 1, last)
	appendTestLogs(t, e, last+1, last+1000, 1000)
	requireTestLogs(t, e, 1, last+1000)
}

func TestAnOlderListOfSegmentsIsRefusedAndRemovesNothing(t *testing.T) {
	dir := t.TempDir() + "/log-wal"
	e := openTestWAL(t, OSFS{}, dir, true)
	appendTestLogs(t, e, 1, 10, 1000)
	old, err := OSFS{}.ReadFile(dir, walMetaName)
	if err != nil {
		t.Fatal(err)
	}
	appendTestLogs(t, e, 11, 600, 1000) // several segments
	if err := e.(*walLog).rotation.wait(); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	current, err := OSFS{}.ReadFile(dir, walMetaName)
	if err != nil {
		t.Fatal(err)
	}
	if err := (OSFS{}).WriteFile(dir, walMetaName, old); err != nil {
		t.Fatal(err)
	}
	// Opened without a mark, as if that were lost too: nothing may be removed
	// before the caller has compared what it got.
	unconfirmed, err := openWALLog(OSFS{}, dir, minSegmentBytes, false, 0, testCodec, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if last, _ := unconfirmed.LastIndex(); last >= 600 {
		t.Fatalf("the older list reaches entry %d", last)
	}
	_ = unconfirmed.Close()
	if _, err := openWALLog(OSFS{}, dir, minSegmentBytes, false, 600, testCodec, hclog.NewNullLogger()); !errors.Is(err, ErrLess) {
		t.Fatalf("opened with a mark of 600: %v", err)
	}
	if err := (OSFS{}).WriteFile(dir, walMetaName, current); err != nil {
		t.Fatal(err)
	}
	requireTestLogs(t, openTestWAL(t, OSFS{}, dir, false), 1, 600)
}

// raft-wal reads an entry of unknown length with a read of 64 KiB, and so are
// the payload and the append of exactly that length.
func TestEntriesAroundTheLengthOfAProbeAreRead(t *testing.T) {
	const around = 80
	var l raft.Log
	appendOne := func(t *testing.T, e engine, index uint64, size int) {
		t.Helper()
		if err := e.StoreLogs(sealLogs([]*raft.Log{testLog(index, size)})); err != nil {
			t.Fatal(err)
		}
		if err := readEntry(e, index, &l); err != nil || len(l.Data) != size {
			t.Fatalf("an entry with %d bytes of data: %d bytes, %v", size, len(l.Data), err)
		}
	}
	t.Run("as it runs and after a start", func(t *testing.T) {
		dir := t.TempDir() + "/log-wal"
		e := openTestWAL(t, OSFS{}, dir, true)
		index := uint64(0)
		for _, length := range []int{walReadLen, walProbeLen} {
			for size := length - around; size <= length+around; size++ {
				index++
				appendOne(t, e, index, size)
			}
		}
		_ = e.Close()
		requireTestLogs(t, openTestWAL(t, OSFS{}, dir, false), 1, index)
	})
	t.Run("as the last append before a start", func(t *testing.T) {
		for size := walProbeLen - around; size <= walProbeLen; size += 4 {
			dir := t.TempDir() + "/log-wal"
			e := openTestWAL(t, OSFS{}, dir, true)
			appendOne(t, e, 1, 100)
			appendOne(t, e, 2, size)
			_ = e.Close()
			requireTestLogs(t, openTestWAL(t, OSFS{}, dir, false), 1, 2)
		}
	})
}
