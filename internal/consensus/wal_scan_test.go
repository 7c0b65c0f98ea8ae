package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// tailFile returns the path of the only segment in dir.
func tailFile(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(names) != 1 {
		t.Fatalf("segments %v, %v", names, err)
	}
	return names[0]
}

func TestTheTailScanTellsTornFromCorrupt(t *testing.T) {
	cases := []struct {
		name         string
		damage       func(b []byte, ends []int) // ends[i] is the end of append i+1
		acknowledged uint64
		want         error
		last         uint64
	}{
		{name: "a clean end is kept", damage: func([]byte, []int) {}, acknowledged: 5, last: 5},
		{name: "a torn last append that was not acknowledged is cleared",
			damage: func(b []byte, ends []int) { b[ends[3]+100] ^= 1 }, acknowledged: 4, last: 4},
		{name: "a damaged last append that was acknowledged is refused",
			damage: func(b []byte, ends []int) { b[ends[3]+100] ^= 1 }, acknowledged: 5, want: ErrLess},
		{name: "a lost frame header of the last append is a torn append",
			damage: func(b []byte, ends []int) { clear(b[ends[3] : ends[3]+8]) }, acknowledged: 4, last: 4},
		{name: "a damaged append in the middle is refused though the mark is old",
			damage: func(b []byte, ends []int) { b[ends[1]+100] ^= 1 }, acknowledged: 0, want: ErrCorrupt},
		{name: "a damaged frame header in the middle is refused though the mark is old",
			damage: func(b []byte, ends []int) { b[ends[1]] ^= 0x40 }, acknowledged: 0, want: ErrCorrupt},
		{name: "a damaged file header is refused though the mark is old",
			damage: func(b []byte, _ []int) { b[0] ^= 1 }, acknowledged: 0, want: ErrCorrupt},
		{name: "a segment of zeros is refused if it held acknowledged entries",
			damage: func(b []byte, _ []int) { clear(b) }, acknowledged: 1, want: ErrLess},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir() + "/log-wal"
			e := openTestWAL(t, OSFS{}, dir, true)
			var ends []int
			end := walHeaderLen
			for i := uint64(1); i <= 5; i++ {
				size := 1000
				appendTestLogs(t, e, i, i, size)
				b, err := os.ReadFile(tailFile(t, dir))
				if err != nil {
					t.Fatal(err)
				}
				for end < len(b) && (b[end] == walFrameEntry || b[end] == walFrameCommit) {
					if b[end] == walFrameEntry {
						end += walFrameLen + (int(b[end+4])|int(b[end+5])<<8+7)/8*8
					} else {
						end += walFrameLen
					}
				}
				ends = append(ends, end)
			}
			_ = e.Close()
			path := tailFile(t, dir)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c.damage(b, ends)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			e, err = openWALLog(OSFS{}, dir, minSegmentBytes, false, c.acknowledged, testCodec, hclog.NewNullLogger())
			if !errors.Is(err, c.want) {
				t.Fatalf("open: %v, want %v", err, c.want)
			}
			if err != nil {
				after, _ := os.ReadFile(path)
				if string(after) != string(b) {
					t.Fatal("a refused log was changed")
				}
				return
			}
			defer func() { _ = e.Close() }()
			if err := e.confirm(); err != nil {
				t.Fatal(err)
			}
			requireTestLogs(t, e, 1, c.last)
			appendTestLogs(t, e, c.last+1, 10, 500)
			requireTestLogs(t, e, 1, 10)
		})
	}
}

func TestWhatATornAppendLeftIsNotTakenForFramesLater(t *testing.T) {
	// A torn append of many frames, then a shorter one over its beginning, then
	// a crash: the rest of the torn one must be gone.
	dir := t.TempDir() + "/log-wal"
	e := openTestWAL(t, OSFS{}, dir, true)
	appendTestLogs(t, e, 1, 1, 64)
	var logs []*raft.Log
	for i := uint64(2); i <= 20; i++ {
		logs = append(logs, testLog(i, 64))
	}
	if err := e.StoreLogs(sealLogs(logs)); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	path := tailFile(t, dir)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(b)
	for b[end-1] == 0 {
		end--
	}
	clear(b[end-8 : end+8]) // the commit frame never reached the disk
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	e = openTestWAL(t, OSFS{}, dir, false)
	requireTestLogs(t, e, 1, 1)
	appendTestLogs(t, e, 2, 2, 64)
	_ = e.Close()
	b, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OSFS{}.OpenReader(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	scan, err := scanTail(f, 1)
	if err != nil || scan.last != 2 || scan.dirtyEnd > scan.goodEnd {
		t.Fatalf("scan %+v, %v", scan, err)
	}
	for _, left := range b[scan.goodEnd:] {
		if left != 0 {
			t.Fatal("bytes of the torn append are left")
		}
	}
}
