package snapshot

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// everyTxn has each type once, with and without a digest.
func everyTxn() []LogRecord {
	acl := digestACL("anna", 31)
	bodies := []struct {
		t    proto.OpCode
		body LogBody
	}{
		{proto.OpCreateSession, CreateSessionTxn{6000}},
		{proto.OpCreate, CreateTxn{Path: "/a", Data: nil, ACL: proto.OpenACL, ParentCVersion: 3}},
		{proto.OpCreate2, CreateTxn{Path: "/a/b", Data: []byte{}, ACL: acl, Ephemeral: true, ParentCVersion: 1}},
		{proto.OpCreate, CreateTxn{Path: "/old", Data: []byte("x"), ACL: []proto.ACL{}, ParentCVersion: -1, Legacy: true}},
		{proto.OpCreateContainer, CreateContainerTxn{"/c", []byte("c"), acl, 4}},
		{proto.OpCreateTTL, CreateTTLTxn{"/t", []byte("t"), acl, 5, 60000}},
		{proto.OpDelete, DeleteTxn{"/a/b"}},
		{proto.OpDeleteContainer, DeleteTxn{"/c"}},
		{proto.OpSetData, SetDataTxn{"/a", []byte("v"), 1}},
		{proto.OpReconfig, SetDataTxn{proto.PathConfig, []byte("server.1=…"), -1}},
		{proto.OpSetACL, SetACLTxn{"/a", nil, 2}},
		{proto.OpError, ErrorTxn{proto.ErrNoNode}},
		{proto.OpMulti, MultiTxn{[]MultiPart{
			{proto.OpCheck, CheckTxn{"/a", 1}}, {proto.OpCreate, CreateTxn{Path: "/m", ACL: proto.OpenACL, ParentCVersion: 6}},
			{proto.OpCreateTTL, CreateTTLTxn{"/m/t", nil, acl, 1, 5}}, {proto.OpError, ErrorTxn{proto.ErrRuntimeInconsistency}},
		}}},
		{proto.OpMulti, MultiTxn{[]MultiPart{}}},
		{proto.OpCloseSession, CloseSessionTxn{[]string{"/e1", "/e2"}}},
		{proto.OpCloseSession, CloseSessionTxn{[]string{}}},
		{proto.OpCloseSession, nil},
	}
	var recs []LogRecord
	for i, b := range bodies {
		h := LogHeader{Session: 0x100000000000001, Cxid: int32(i), Zxid: proto.MakeZxid(1, uint32(i+1)), TimeMillis: 1700000000000, Type: b.t}
		recs = append(recs, LogRecord{LogHeader: h, Body: b.body})
		if c, ok := b.body.(CreateTxn); !ok || !c.Legacy {
			recs = append(recs, LogRecord{LogHeader: h, Body: b.body, HasDigest: true, DigestVersion: 2, Digest: 1<<63 + uint64(i)})
		}
	}
	return recs
}

func writeLog(t testing.TB, recs []LogRecord) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewLogWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// readLog returns the records before the first error, that error (io.EOF at a
// proper end), and the offset behind the last good record.
func readLog(b []byte) ([]LogRecord, int64, error) {
	input.Reset(bytes.NewReader(b))
	r, err := NewLogReader(input)
	if err != nil {
		return nil, 0, err
	}
	var recs []LogRecord
	for {
		rec, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again != err {
				return recs, r.Offset(), errors.New("the second error differs from the first")
			}
			return recs, r.Offset(), err
		}
		recs = append(recs, rec)
	}
}

func TestEveryTransactionIsReadBack(t *testing.T) {
	want := everyTxn()
	b := writeLog(t, want)
	for name, in := range map[string][]byte{
		"ending at the last record": b, "with space taken in advance": append(bytes.Clone(b), make([]byte, 3*bufferSize+5)...),
	} {
		got, off, err := readLog(in)
		if err != io.EOF || off != int64(len(b)) {
			t.Errorf("%s: %v at %d of %d", name, err, off, len(b))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

func TestTheLogFormatHasNotChanged(t *testing.T) {
	got := writeLog(t, everyTxn())
	path := filepath.Join("testdata", "log.golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// A cut log yields the records that are whole, and then says that one is not.
func TestEveryTruncationOfALogKeepsTheWholeRecordsOnly(t *testing.T) {
	want := everyTxn()
	b := writeLog(t, want)
	ends := map[int]bool{logHeadLen: true}
	for n := range want {
		ends[len(writeLog(t, want[:n+1]))] = true
	}
	for n := range b {
		got, off, err := readLog(b[:n])
		switch {
		case ends[n] && err != io.EOF:
			t.Errorf("cut to %d bytes, between two records: %v", n, err)
		case !ends[n] && !errors.Is(err, ErrTruncated):
			t.Errorf("cut to %d bytes: error %v, want ErrTruncated", n, err)
		case len(got) > 0 && !reflect.DeepEqual(got, want[:len(got)]):
			t.Errorf("cut to %d bytes: other records", n)
		case off > int64(n):
			t.Errorf("cut to %d bytes: offset %d", n, off)
		}
	}
}

func TestARecordThatNeverFilledItsSpaceIsAPartialOne(t *testing.T) {
	recs := everyTxn()
	b := writeLog(t, recs[:2])
	whole := len(writeLog(t, recs[:1]))
	for n := whole + recordHeadLen; n < len(b); n++ {
		in := append(bytes.Clone(b[:n]), make([]byte, len(b)-n+1000)...)
		got, off, err := readLog(in)
		if !errors.Is(err, ErrTruncated) || len(got) != 1 || off != int64(whole) {
			t.Errorf("cut to %d and filled with zeros: %d records, offset %d, %v", n, len(got), off, err)
		}
	}
}

func TestEveryBitFlipOfALogIsAnError(t *testing.T) {
	want := everyTxn()
	b := append(writeLog(t, want), make([]byte, 40)...)
	for bit := range len(b) * 8 {
		if at := bit / 8; at >= 8 && at < logHeadLen {
			continue // The database id: no one reads it and nothing covers it.
		}
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		got, _, err := readLog(bad)
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrNotLog) {
			t.Errorf("bit %d of byte %d flipped: %v after %d records", bit%8, bit/8, err, len(got))
		}
		if !reflect.DeepEqual(got, want[:len(got):len(got)]) && len(got) > 0 {
			t.Errorf("bit %d of byte %d flipped: a wrong record", bit%8, bit/8)
		}
	}
}

// Apache takes a blank record for the end; when more follow it is a hole.
func TestABlankedRecordIsDamageWhenOthersFollow(t *testing.T) {
	recs := everyTxn()
	start, end := len(writeLog(t, recs[:1])), len(writeLog(t, recs[:2]))
	b := writeLog(t, recs[:4])
	clear(b[start:end])
	if got, _, err := readLog(b); !errors.Is(err, ErrCorrupt) || len(got) != 1 {
		t.Errorf("%d records, %v; want 1 and ErrCorrupt", len(got), err)
	}
}

func TestRecordsThatDoNotFitTheirTypeAreNotWritten(t *testing.T) {
	for name, rec := range map[string]LogRecord{
		"another body":        {LogHeader: LogHeader{Type: proto.OpDelete}, Body: CreateSessionTxn{}},
		"no body":             {LogHeader: LogHeader{Type: proto.OpDelete}},
		"a read":              {LogHeader: LogHeader{Type: proto.OpGetData}, Body: DeleteTxn{}},
		"a multi in a multi":  {LogHeader: LogHeader{Type: proto.OpMulti}, Body: MultiTxn{[]MultiPart{{proto.OpMulti, MultiTxn{}}}}},
		"a part without body": {LogHeader: LogHeader{Type: proto.OpMulti}, Body: MultiTxn{[]MultiPart{{proto.OpCloseSession, nil}}}},
	} {
		w, err := NewLogWriter(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(rec); !errors.Is(err, ErrBadContent) {
			t.Errorf("%s: error %v, want ErrBadContent", name, err)
		}
	}
}

func TestASnapshotIsNotALog(t *testing.T) {
	if _, err := NewLogReader(bytes.NewReader(mustWrite(t, smallContent()))); !errors.Is(err, ErrNotLog) {
		t.Error(err)
	}
	if _, err := NewLogReader(bytes.NewReader(nil)); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
}

func FuzzLog(f *testing.F) {
	b := writeLog(f, everyTxn())
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(append(bytes.Clone(b), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		recs, off, err := readLog(b)
		if err == nil || off > int64(len(b)) {
			t.Fatalf("error %v, offset %d of %d", err, off, len(b))
		}
		for _, rec := range recs {
			back, _, err := readLog(writeLog(t, []LogRecord{rec}))
			if err != io.EOF || len(back) != 1 {
				t.Fatalf("%+v: %v", rec, err)
			}
		}
	})
}

// FuzzLogRecord goes past the checksum, which the fuzzer cannot guess.
func FuzzLogRecord(f *testing.F) {
	for _, rec := range everyTxn() {
		b, err := appendRecord(nil, rec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := appendRecord(nil, rec)
		if err != nil {
			t.Fatalf("%+v: %v", rec, err)
		}
		if back, err := decodeRecord(again); err != nil || !reflect.DeepEqual(back, rec) {
			t.Fatalf("got %+v, %v; want %+v", back, err, rec)
		}
	})
}
