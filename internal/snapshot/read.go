package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/zooraft/zooraft/internal/proto"
)

// Read reads a snapshot of ours or of Apache 3.4 to 3.9, plain, gzip or snappy
// (told by content, not by name), hands what it holds to the sink and verifies
// every seal and the end of the input. The sink must treat what it got as void
// when Read fails: damage may show only at the end.
//
// Errors wrap ErrNotSnapshot, ErrTruncated or ErrCorrupt, or are the sink's or
// the reader's own. Memory is bounded by a few nodes, whatever lengths a damaged
// file claims. The sink is called by the caller's goroutine, while another one
// decodes what comes next; that has ended when Read returns.
func Read(r io.Reader, sink Sink) (Trailer, error) {
	src, err := newSource(r)
	if err != nil {
		return Trailer{}, err
	}
	database, err := readHeader(src)
	if err != nil {
		return Trailer{}, err
	}
	ours := database == ourDatabase
	if err := readSessions(src, sink); err != nil {
		return Trailer{}, err
	}
	acls, err := readACLs(src)
	if err != nil {
		return Trailer{}, err
	}
	nodes, err := readNodes(src, sink, acls, ours)
	if err != nil {
		return Trailer{}, err
	}
	if err := src.checkSeal("the nodes"); err != nil {
		return Trailer{}, err
	}
	var t Trailer
	if err := readTails(src, &t); err != nil {
		return Trailer{}, err
	}
	if ours {
		if t.Extension, err = readExtension(src, nodes); err != nil {
			return Trailer{}, err
		}
	}
	return t, src.expectEnd()
}

func readHeader(src *source) (database int64, err error) {
	d := src.small("the header", 4)
	if magic := d.Int(); src.err == nil && magic != magicSnapshot {
		return 0, fmt.Errorf("%w: it begins with %#08x", ErrNotSnapshot, uint32(magic))
	}
	d = src.small("the header", 12)
	if version := d.Int(); src.err == nil && version != formatVersion {
		return 0, src.corrupt("the header", fmt.Sprintf("format version %d", version))
	}
	return d.Long(), src.err
}

func readSessions(src *source, sink Sink) error {
	n := src.count("the sessions")
	for range n {
		d := src.small("the sessions", 12)
		s := Session{ID: proto.SessionID(d.Long()), TimeoutMillis: d.Int()}
		if src.err != nil {
			return src.err
		}
		if err := sink.Session(s); err != nil {
			return err
		}
	}
	return src.err
}

func readACLs(src *source) (map[int64][]proto.ACL, error) {
	lists := map[int64][]proto.ACL{openACLKey: proto.OpenACL}
	n := src.count("the ACL lists")
	for range n {
		key := src.small("the ACL lists", 8).Long()
		entries := src.count("an ACL list")
		list := []proto.ACL{}
		for range entries {
			a := proto.ACL{Perms: src.small("an ACL list", 4).Int()}
			a.ID = proto.ID{Scheme: src.text("an ACL list"), ID: src.text("an ACL list")}
			if src.err != nil {
				return nil, src.err
			}
			list = append(list, a)
		}
		if src.err != nil {
			return nil, src.err
		}
		if _, twice := lists[key]; twice {
			return nil, src.corrupt("the ACL lists", fmt.Sprintf("key %d comes twice", key))
		}
		lists[key] = list
	}
	return lists, src.err
}

// readTails reads the parts that Apache added in 3.6 (digest) and 3.9 (zxid).
// Each can be switched off there, so either may stand alone.
func readTails(src *source, t *Trailer) error {
	if src.atEnd() {
		return src.err
	}
	if !src.sealedLongAhead() {
		if err := readDigest(src, t); err != nil {
			return err
		}
	}
	if src.atEnd() {
		return src.err
	}
	t.Zxid, t.HasZxid = proto.Zxid(src.small("the last zxid", 8).Long()), true
	return src.checkSeal("the last zxid")
}

func readDigest(src *source, t *Trailer) error {
	d := src.small("the digest", 12)
	zxid, version := proto.Zxid(d.Long()), d.Int()
	if version < digestVersion {
		// Before the digest became a number it was its hex text, and its
		// computation another one: nothing to compare with.
		src.text("the digest")
		return src.checkSeal("the digest")
	}
	digest := uint64(src.small("the digest", 8).Long())
	if err := src.checkSeal("the digest"); err != nil {
		return err
	}
	if version == digestVersion && zxid > 0 {
		t.Digest, t.DigestZxid, t.HasDigest = digest, zxid, true
		t.Zxid, t.HasZxid = zxid, true
	}
	return nil
}

func readExtension(src *source, nodes int64) ([]byte, error) {
	const what = "zooraft's own part"
	d := src.small(what, 20)
	magic, version, count := d.Long(), d.Int(), d.Long()
	if src.err == nil && (magic != extensionMagic || version != extensionVersion) {
		return nil, src.corrupt(what, fmt.Sprintf("magic %#x, version %d", uint64(magic), version))
	}
	block := src.buffer(what)
	sum := src.crc
	stored := uint32(src.small(what, 4).Int())
	if err := src.checkSeal(what); err != nil {
		return nil, err
	}
	switch {
	case stored != sum:
		return nil, src.corrupt(what, fmt.Sprintf("CRC-32C %08x, computed %08x", stored, sum))
	case count != nodes:
		return nil, src.corrupt(what, fmt.Sprintf("%d nodes, read %d", count, nodes))
	case block == nil:
		return nil, src.corrupt(what, "the owner's block is null")
	}
	return block, nil
}

// checkSeal reads a seal and compares it with the bytes so far.
func (s *source) checkSeal(what string) error {
	want := int64(s.adler.Sum32())
	got := s.small("the seal of "+what, 8).Long()
	text := s.text("the seal of " + what)
	if s.err != nil {
		return s.err
	}
	if got != want || text != endOfNodes {
		return s.corrupt("the seal of "+what, fmt.Sprintf("checksum %x, computed %x", uint64(got), uint64(want)))
	}
	return nil
}

// sealedLongAhead tells whether a long and its seal come next: the 3.9 part
// without the one of the digest before it. Chance cannot fake it, as the seal
// depends on every byte before it.
func (s *source) sealedLongAhead() bool {
	ahead, err := s.r.Peek(8 + sealLen)
	if err != nil {
		return false
	}
	sum := adlerContinue(s.adler, ahead[:8])
	d := proto.NewDecoder(ahead[8:])
	return d.Long() == int64(sum) && d.String() == endOfNodes
}

// count reads an element count.
func (s *source) count(what string) int32 {
	n := s.small(what, 4).Int()
	if n < 0 && s.err == nil {
		s.err = s.corrupt(what, fmt.Sprintf("count %d", n))
	}
	return max(n, 0)
}

// text reads a string.
func (s *source) text(what string) string {
	n := s.small(what, 4).Int()
	if n == -1 || s.err != nil {
		return proto.NullString
	}
	s.scratch = proto.AppendInt(s.scratch[:0], n)
	s.scratch = s.appendBytes(what, s.scratch, n)
	if s.err != nil {
		return ""
	}
	return proto.NewDecoder(s.scratch).String()
}

// buffer reads a byte buffer; nil stands for null.
func (s *source) buffer(what string) []byte {
	n := s.small(what, 4).Int()
	if n == -1 || s.err != nil {
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	return s.appendBytes(what, nil, n)
}

// expectEnd verifies that nothing follows, which also makes gzip compare its
// own checksum.
func (s *source) expectEnd() error {
	if s.atEnd() {
		return s.err
	}
	return s.corrupt("the end", "bytes follow the last seal")
}

// atEnd tells whether the input ends here, or failed.
func (s *source) atEnd() bool {
	if s.err != nil {
		return true
	}
	_, err := s.r.Peek(1)
	if err == nil {
		return false
	}
	if !errors.Is(err, io.EOF) {
		s.err = s.readError("the end", err)
	}
	return true
}

func (s *source) account(b []byte) {
	s.adler.Write(b)
	s.crc = crc32.Update(s.crc, castagnoli, b)
	s.off += int64(len(b))
}
