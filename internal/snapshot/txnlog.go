package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"hash/adler32"
	"io"

	"github.com/zooraft/zooraft/internal/proto"
)

// A transaction log is
//
//	int magic "ZKLG" | int version 2 | long database id 0
//	{ long Adler-32 of the bytes | int length | bytes | byte 'B' }...
//	zeros: space taken in advance, in steps of 64 MiB
//
// where the bytes are a header, a body by type, and, with digests on, int
// digest version and long digest of the tree behind the transaction.

const (
	magicLog    int32 = 0x5a4b4c47 // "ZKLG"
	logDatabase int64 = 0
	logHeadLen        = 16
	recordEnd         = 'B'
	// recordHeadLen is the checksum and the length before a record, in bytes.
	recordHeadLen = 12
)

// LogHeader starts every transaction.
type LogHeader struct {
	Session    proto.SessionID // the client's; owner of an ephemeral that it creates
	Cxid       int32
	Zxid       proto.Zxid
	TimeMillis int64 // Unix ms; becomes ctime and mtime
	Type       proto.OpCode
}

// LogRecord is one transaction: a result, not a request.
type LogRecord struct {
	LogHeader
	Body LogBody

	// Digest is the tree's digest behind this transaction, if HasDigest.
	Digest        uint64
	DigestVersion int32
	HasDigest     bool
}

// LogReader reads one transaction log.
type LogReader struct {
	r     *bufio.Reader
	off   int64 // of the next record
	ended error
}

// NewLogReader reads the file's header. An empty input gives ErrTruncated: a
// server may die between creating a log and writing its header.
func NewLogReader(r io.Reader) (*LogReader, error) {
	l := &LogReader{r: bufio.NewReaderSize(r, bufferSize)}
	head := make([]byte, logHeadLen)
	n, err := io.ReadFull(l.r, head)
	d := proto.NewDecoder(head)
	if n >= 4 && d.Int() != magicLog {
		return nil, fmt.Errorf("%w: it begins with %x", ErrNotLog, head[:4])
	}
	if err != nil {
		return nil, l.readError("the header", err)
	}
	if version := d.Int(); version != formatVersion {
		return nil, fmt.Errorf("%w: log format version %d", ErrCorrupt, version)
	}
	l.off = logHeadLen
	return l, nil
}

// Offset returns where the next record begins, in bytes: the length of the part
// that has been read and verified.
func (l *LogReader) Offset() int64 { return l.off }

// Next returns the next transaction, or io.EOF at the end: where the input ends
// between two records or only zeros follow. ErrTruncated tells of a partial
// record at the end, which a server that died leaves behind and which was never
// acknowledged; ErrCorrupt of damage. Every error is final.
func (l *LogReader) Next() (LogRecord, error) {
	if l.ended != nil {
		return LogRecord{}, l.ended
	}
	rec, err := l.next()
	l.ended = err
	return rec, err
}

func (l *LogReader) next() (LogRecord, error) {
	head := make([]byte, recordHeadLen)
	if n, err := io.ReadFull(l.r, head); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return LogRecord{}, io.EOF
		}
		return LogRecord{}, l.readError("a record's head", err)
	}
	d := proto.NewDecoder(head)
	sum, length := d.Long(), d.Int()
	if allZero(head) {
		return LogRecord{}, l.padding()
	}
	if length <= 0 {
		return LogRecord{}, l.corrupt(fmt.Sprintf("length %d", length))
	}
	src := source{r: l.r, adler: adler32.New()}
	body := src.appendBytes("a record", nil, length)
	if src.err != nil {
		if errors.Is(src.err, ErrTruncated) {
			return LogRecord{}, l.readError("a record", io.ErrUnexpectedEOF)
		}
		return LogRecord{}, src.err
	}
	end, err := l.r.ReadByte()
	if err != nil {
		return LogRecord{}, l.readError("a record's end", err)
	}
	if end == 0 && errors.Is(l.padding(), io.EOF) {
		// The space was taken in advance and the record never filled it.
		return LogRecord{}, l.readError("a record", io.ErrUnexpectedEOF)
	}
	if got := int64(src.adler.Sum32()); got != sum || end != recordEnd {
		return LogRecord{}, l.corrupt(fmt.Sprintf("checksum %x, computed %x, end mark %q", uint64(sum), uint64(got), end))
	}
	rec, err := decodeRecord(body)
	if err != nil {
		return LogRecord{}, l.corrupt(err.Error())
	}
	l.off += recordHeadLen + int64(length) + 1
	return rec, nil
}

// padding reads on to the input's end. Anything but zeros means that a record
// was blanked and that more follow, which must not pass for the end.
func (l *LogReader) padding() error {
	for {
		b, err := l.r.Peek(bufferSize)
		if !allZero(b) {
			return l.corrupt("more records follow a blank one")
		}
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return l.readError("the padding", err)
		}
		if _, err := l.r.Discard(len(b)); err != nil {
			return l.readError("the padding", err)
		}
	}
}

func (l *LogReader) readError(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: in %s at byte %d", ErrTruncated, what, l.off)
	}
	return fmt.Errorf("snapshot: reading %s of a log: %w", what, err)
}

func (l *LogReader) corrupt(why string) error {
	return fmt.Errorf("%w: the record at byte %d: %s", ErrCorrupt, l.off, why)
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// LogWriter writes one transaction log. It neither pads nor syncs: it is for
// exports and tests, not for a server's write path.
type LogWriter struct {
	w   io.Writer
	buf []byte
}

// NewLogWriter writes the file's header.
func NewLogWriter(w io.Writer) (*LogWriter, error) {
	b := proto.AppendInt(proto.AppendInt(nil, magicLog), formatVersion)
	_, err := w.Write(proto.AppendLong(b, logDatabase))
	return &LogWriter{w: w}, err
}

// Append writes one record with one call of the underlying writer.
func (l *LogWriter) Append(rec LogRecord) error {
	body, err := appendRecord(nil, rec)
	if err != nil {
		return err
	}
	b := proto.AppendLong(l.buf[:0], int64(adler32.Checksum(body)))
	l.buf = append(proto.AppendBuffer(b, body), recordEnd)
	_, err = l.w.Write(l.buf)
	return err
}
