package snapshot

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/zooraft/zooraft/internal/proto"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// node is one node as a test writes and collects it.
type node struct {
	path string
	data []byte
	acl  []proto.ACL
	st   proto.StatPersisted
}

// collector is a Sink that keeps everything.
type collector struct {
	sessions []Session
	nodes    []node
	fail     error // returned at the second node
}

func (c *collector) Session(s Session) error { c.sessions = append(c.sessions, s); return nil }

func (c *collector) Node(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
	if c.fail != nil && len(c.nodes) == 1 {
		return c.fail
	}
	c.nodes = append(c.nodes, node{path, data, acl, st})
	return nil
}

func digestACL(user string, perms int32) []proto.ACL {
	return []proto.ACL{{Perms: perms, ID: proto.ID{Scheme: "digest", ID: user + ":aGFzaA=="}}}
}

// smallNodes covers null and empty data, the open list, a shared list, an empty
// list, a null scheme, and every kind of owner.
func smallNodes() []node {
	shared := digestACL("anna", proto.PermAll)
	return []node{
		{"/", []byte{}, proto.OpenACL, proto.StatPersisted{}},
		{"/a", nil, shared, proto.StatPersisted{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, CVersion: 6, AVersion: 7, Pzxid: 8}},
		{"/a/eph", []byte("x"), append([]proto.ACL(nil), shared...), proto.StatPersisted{EphemeralOwner: 0x100000000000001}},
		{"/a/é", []byte{0, 255}, []proto.ACL{}, proto.StatPersisted{EphemeralOwner: proto.ContainerOwner}},
		{"/b", []byte("data"), []proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "ip", ID: proto.NullString}}}, proto.StatPersisted{EphemeralOwner: proto.TTLOwner(77)}},
	}
}

func each(nodes []node) func(NodeFunc) error {
	return func(yield NodeFunc) error {
		for _, n := range nodes {
			if err := yield(n.path, n.data, n.acl, n.st); err != nil {
				return err
			}
		}
		return nil
	}
}

func smallContent() Content {
	return Content{
		Sessions:  []Session{{0x100000000000001, 6000}, {-7, 30000}},
		Nodes:     each(smallNodes()),
		Zxid:      0x200000009,
		Digest:    0xfeedfacecafebeef,
		Extension: []byte("owner's block"),
	}
}

func mustWrite(t testing.TB, c Content) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// input is reused: Read takes a buffered reader that is large enough as its own
// buffer, and tests here read tens of thousands of files. They do not overlap.
var input = bufio.NewReaderSize(nil, bufferSize)

func readAll(b []byte) (*collector, Trailer, error) {
	var c collector
	input.Reset(bytes.NewReader(b))
	t, err := Read(input, &c)
	return &c, t, err
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Content)
		want   Trailer
	}{
		"a file of ours": {func(*Content) {},
			Trailer{Zxid: 0x200000009, HasZxid: true, Digest: 0xfeedfacecafebeef, DigestZxid: 0x200000009, HasDigest: true, Extension: []byte("owner's block")}},
		"an empty block is not a missing one": {func(c *Content) { c.Extension = []byte{} },
			Trailer{Zxid: 0x200000009, HasZxid: true, Digest: 0xfeedfacecafebeef, DigestZxid: 0x200000009, HasDigest: true, Extension: []byte{}}},
		"a plain file for Apache": {func(c *Content) { c.Extension = nil },
			Trailer{Zxid: 0x200000009, HasZxid: true, Digest: 0xfeedfacecafebeef, DigestZxid: 0x200000009, HasDigest: true}},
		"zxid 0 has no digest to compare": {func(c *Content) { c.Zxid = 0 },
			Trailer{HasZxid: true, Extension: []byte("owner's block")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := smallContent()
			tc.change(&c)
			got, trailer, err := readAll(mustWrite(t, c))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.sessions, c.Sessions) {
				t.Errorf("sessions %v, want %v", got.sessions, c.Sessions)
			}
			if !reflect.DeepEqual(got.nodes, smallNodes()) {
				t.Errorf("nodes\n%v, want\n%v", got.nodes, smallNodes())
			}
			if !reflect.DeepEqual(trailer, tc.want) {
				t.Errorf("trailer %+v, want %+v", trailer, tc.want)
			}
		})
	}
}

// The bytes on disk are a promise to older and newer versions of ours.
func TestTheFormatHasNotChanged(t *testing.T) {
	got := mustWrite(t, smallContent())
	path := filepath.Join("testdata", "small.golden")
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
		t.Errorf("the file changed; a change needs a new extension version\ngot  %x\nwant %x", got, want)
	}
	if !bytes.HasSuffix(got, []byte{0, 0, 0, 1, '/'}) {
		t.Error("Apache's test for a finished file looks for 00000001 2f at the end")
	}
}

func TestEveryTruncationOfOurFileIsAnError(t *testing.T) {
	whole := mustWrite(t, smallContent())
	for n := range whole {
		_, _, err := readAll(whole[:n])
		if !errors.Is(err, ErrTruncated) {
			t.Errorf("cut to %d of %d bytes: error %v, want ErrTruncated", n, len(whole), err)
		}
	}
}

func TestEveryBitFlipIsAnError(t *testing.T) {
	ours := smallContent()
	plain := smallContent()
	plain.Extension = nil
	for name, c := range map[string]Content{"ours": ours, "plain": plain} {
		whole := mustWrite(t, c)
		for bit := range len(whole) * 8 {
			b := bytes.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			_, _, err := readAll(b)
			if !isRefusal(err) {
				t.Errorf("%s: bit %d of byte %d flipped: error %v", name, bit%8, bit/8, err)
			}
		}
	}
}

func isRefusal(err error) bool {
	return errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotSnapshot)
}

// A plain file of Apache's can be cut behind a seal without a trace; cut
// anywhere else it is refused.
func TestAPlainFileMayEndOnlyBehindASeal(t *testing.T) {
	c := smallContent()
	c.Extension = nil
	whole := mustWrite(t, c)
	zxidPart := len(whole) - 8 - sealLen
	digestPart := zxidPart - 20 - sealLen
	for n := range len(whole) + 1 {
		got, trailer, err := readAll(whole[:n])
		switch n {
		case digestPart, zxidPart, len(whole):
			if err != nil || len(got.nodes) != len(smallNodes()) {
				t.Errorf("cut to %d bytes, behind a seal: %v", n, err)
			}
			if trailer.HasDigest != (n > digestPart) || trailer.HasZxid != (n > digestPart) {
				t.Errorf("cut to %d bytes: trailer %+v", n, trailer)
			}
		default:
			if !errors.Is(err, ErrTruncated) {
				t.Errorf("cut to %d bytes: error %v, want ErrTruncated", n, err)
			}
		}
	}
}

func TestBytesBehindTheEndAreAnError(t *testing.T) {
	c := smallContent()
	ours := mustWrite(t, c)
	c.Extension = nil
	plain := mustWrite(t, c)
	for _, b := range [][]byte{ours, plain} {
		if _, _, err := readAll(append(bytes.Clone(b), 0)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("one byte appended: error %v, want ErrCorrupt", err)
		}
	}
}

// Adler-32 alone does not see this: two bytes raised and two lowered so that
// both of its sums stay.
func TestDamageThatAdlerMissesIsFoundByTheCRC(t *testing.T) {
	c := smallContent()
	c.Nodes = each([]node{{"/", []byte{10, 20, 30, 40}, proto.OpenACL, proto.StatPersisted{}}})
	whole := mustWrite(t, c)
	at := bytes.Index(whole, []byte{10, 20, 30, 40})
	copy(whole[at:], []byte{11, 19, 29, 41})
	_, _, err := readAll(whole)
	if !errors.Is(err, ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte("CRC-32C")) {
		t.Errorf("error %v, want one that names the CRC-32C", err)
	}
}

func TestAlienFilesAreNotSnapshots(t *testing.T) {
	var log bytes.Buffer
	if _, err := NewLogWriter(&log); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"text": []byte("tickTime=2000\n"), "a log": log.Bytes(), "zeros": make([]byte, 100),
	} {
		if _, _, err := readAll(b); !errors.Is(err, ErrNotSnapshot) {
			t.Errorf("%s: error %v, want ErrNotSnapshot", name, err)
		}
	}
}

// The parts that Apache can switch off: no digest with a zxid, an old text
// digest, an empty digest.
func TestTailsOfOtherVersionsAreRead(t *testing.T) {
	c := smallContent()
	c.Extension = nil
	whole := mustWrite(t, c)
	base := whole[:len(whole)-8-sealLen-20-sealLen]
	sealed := func(parts ...[]byte) []byte {
		b := bytes.Clone(base)
		for _, p := range parts {
			w := newSealedWriter(io.Discard)
			w.emit(append(b, p...))
			sum := w.adler.Sum32()
			b = proto.AppendString(proto.AppendLong(append(b, p...), int64(sum)), "/")
		}
		return b
	}
	zxid := proto.AppendLong(nil, 42)
	for name, tc := range map[string]struct {
		in   []byte
		want Trailer
	}{
		"zxid without digest": {sealed(zxid), Trailer{Zxid: 42, HasZxid: true}},
		"text digest":         {sealed(proto.AppendString(proto.AppendInt(zxid, 1), "abc")), Trailer{}},
		"empty digest":        {sealed(make([]byte, 16)), Trailer{}},
		"empty digest, zxid":  {sealed(make([]byte, 16), zxid), Trailer{Zxid: 42, HasZxid: true}},
		"digest of version 3": {sealed(proto.AppendLong(proto.AppendInt(zxid, 3), 9)), Trailer{}},
	} {
		_, got, err := readAll(tc.in)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tc.want)
		}
	}
}

// Apache writes the ACL table before the nodes while writes go on, so a node
// can name a list that is only in the log.
func TestAMissingACLListIsNilInApachesFileAndDamageInOurs(t *testing.T) {
	for _, ours := range []bool{false, true} {
		database := apacheDatabase
		if ours {
			database = ourDatabase
		}
		b := proto.AppendInt(proto.AppendInt(nil, magicSnapshot), formatVersion)
		b = proto.AppendInt(proto.AppendInt(proto.AppendLong(b, database), 0), 0)
		b = proto.AppendLong(proto.AppendBuffer(proto.AppendString(b, ""), nil), 9)
		b = proto.AppendString(proto.AppendStatPersisted(b, &proto.StatPersisted{}), "/")
		w := newSealedWriter(io.Discard)
		w.emit(b)
		b = proto.AppendString(proto.AppendLong(b, int64(w.adler.Sum32())), "/")
		got, _, err := readAll(b)
		if ours && !errors.Is(err, ErrCorrupt) {
			t.Errorf("ours: error %v, want ErrCorrupt", err)
		}
		if !ours && (err != nil || len(got.nodes) != 1 || got.nodes[0].acl != nil) {
			t.Errorf("Apache's: %v, %v; want a nil list", got.nodes, err)
		}
	}
}

func TestContentThatTheFormatCannotHoldIsRefused(t *testing.T) {
	root := node{"/", nil, proto.OpenACL, proto.StatPersisted{}}
	for name, nodes := range map[string][]node{
		"no root":            nil,
		"another first node": {{"/a", nil, nil, proto.StatPersisted{}}},
		"the root twice":     {root, root},
		"a relative path":    {root, {"a", nil, nil, proto.StatPersisted{}}},
		"a slash at the end": {root, {"/a/", nil, nil, proto.StatPersisted{}}},
	} {
		if err := Write(io.Discard, Content{Nodes: each(nodes)}); !errors.Is(err, ErrBadContent) {
			t.Errorf("%s: error %v, want ErrBadContent", name, err)
		}
	}
	for name, second := range map[string][]node{
		"fewer nodes": {root}, "another list": {root, {"/a", nil, digestACL("new", 1), proto.StatPersisted{}}},
	} {
		pass := 0
		err := Write(io.Discard, Content{Nodes: func(yield NodeFunc) error {
			if pass++; pass == 1 {
				return each([]node{root, {"/a", nil, nil, proto.StatPersisted{}}})(yield)
			}
			return each(second)(yield)
		}})
		if !errors.Is(err, ErrBadContent) {
			t.Errorf("%s in the second pass: error %v, want ErrBadContent", name, err)
		}
	}
}

func TestErrorsOfTheCallersAreReturnedAsTheyAre(t *testing.T) {
	mine := errors.New("mine")
	whole := mustWrite(t, smallContent())
	if _, err := Read(bytes.NewReader(whole), &collector{fail: mine}); err != mine {
		t.Errorf("from the sink: %v", err)
	}
	if _, err := Read(iotest.ErrReader(mine), &collector{}); !errors.Is(err, mine) {
		t.Errorf("from the reader: %v", err)
	}
	half := io.MultiReader(bytes.NewReader(whole[:100]), iotest.ErrReader(mine))
	if _, err := Read(half, &collector{}); !errors.Is(err, mine) || isRefusal(err) {
		t.Errorf("from the reader halfway: %v", err)
	}
	c := smallContent()
	c.Nodes = func(NodeFunc) error { return mine }
	if err := Write(io.Discard, c); err != mine {
		t.Errorf("from the view: %v", err)
	}
	if err := Write(brokenWriter{mine}, smallContent()); !errors.Is(err, mine) {
		t.Errorf("from the writer: %v", err)
	}
}

type brokenWriter struct{ err error }

func (b brokenWriter) Write([]byte) (int, error) { return 0, b.err }

// A length field may claim gigabytes; memory is taken only for bytes that come.
func TestAClaimedLengthTakesNoMemory(t *testing.T) {
	b := proto.AppendInt(proto.AppendInt(nil, magicSnapshot), formatVersion)
	b = proto.AppendInt(proto.AppendInt(proto.AppendLong(b, ourDatabase), 0), 0)
	b = proto.AppendInt(proto.AppendString(b, ""), 0x7fffffff)
	perRun := testing.Benchmark(func(tb *testing.B) {
		tb.ReportAllocs()
		for range tb.N {
			if _, _, err := readAll(b); !errors.Is(err, ErrTruncated) {
				tb.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if perRun > 4*growStep {
		t.Errorf("%d bytes allocated for a file of %d bytes", perRun, len(b))
	}
}

// A big file must stream: the buffer is fixed, and chunks of data larger than
// the buffer and than the growth step come through.
func TestNodesLargerThanEveryBufferRoundTrip(t *testing.T) {
	c := smallContent()
	nodes := []node{{"/", bytes.Repeat([]byte{1}, bufferSize+1), proto.OpenACL, proto.StatPersisted{}}}
	for i, size := range []int{growStep - 1, growStep, growStep + 1, 3*growStep + 5} {
		nodes = append(nodes, node{fmt.Sprintf("/n%d", i), bytes.Repeat([]byte{byte(i)}, size), digestACL(fmt.Sprint(i), 1), proto.StatPersisted{}})
	}
	c.Nodes = each(nodes)
	c.Extension = bytes.Repeat([]byte("x"), 2*growStep)
	got, trailer, err := readAll(mustWrite(t, c))
	if err != nil || !reflect.DeepEqual(got.nodes, nodes) || !bytes.Equal(trailer.Extension, c.Extension) {
		t.Errorf("%d nodes, %d bytes of extension, %v", len(got.nodes), len(trailer.Extension), err)
	}
}

func TestNamesAreApaches(t *testing.T) {
	for name, want := range map[string]int64{
		"snapshot.0": 0, "snapshot.1f": 31, "snapshot.100000000.gz": 1 << 32, "snapshot.a.snappy": 10,
		"snapshot.": -1, "snapshot.0x1": -1, "snapshot.1.tmp": -1, "log.1": -1, "snapshot.01": -1, "snapshot": -1, "snapshot.-1": -1,
	} {
		zxid, ok := ParseSnapshotName(name)
		if ok != (want >= 0) || ok && zxid != proto.Zxid(want) {
			t.Errorf("%s: %v, %v", name, zxid, ok)
		}
	}
	if got := SnapshotName(0x1f); got != "snapshot.1f" {
		t.Error(got)
	}
	if z, ok := ParseLogName(LogName(0xab)); !ok || z != 0xab {
		t.Error(z, ok)
	}
}

func FuzzRead(f *testing.F) {
	whole := mustWrite(f, smallContent())
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(snappyEncode(whole, 30))
	c := smallContent()
	c.Extension = nil
	f.Add(mustWrite(f, c))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, trailer, err := readAll(b)
		if err != nil {
			if !isRefusal(err) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		// What was accepted can be written and reads as the same again.
		again := Content{Sessions: got.sessions, Nodes: each(got.nodes), Zxid: trailer.Zxid, Digest: trailer.Digest, Extension: []byte{}}
		back, _, err := readAll(mustWrite(t, again))
		if err != nil || len(back.nodes) != len(got.nodes) {
			t.Fatalf("%d nodes of %d, %v", len(back.nodes), len(got.nodes), err)
		}
	})
}

// endless is an input after which nobody may ask.
type endless struct {
	io.Reader
	over bool // not synchronised: the race detector sees a reader that goes on
}

func (e *endless) Read(p []byte) (int, error) {
	if e.over {
		panic("read after Read has returned")
	}
	return e.Reader.Read(p)
}

// The nodes are decoded ahead of the sink, by another goroutine: when the sink
// has had enough, that one must let go of the input.
func TestNothingIsReadAfterTheSinkHasHadEnough(t *testing.T) {
	lots := mustWrite(t, Content{Nodes: many(20000), Extension: []byte{}})
	failure := errors.New("enough")
	for range 20 {
		in := &endless{Reader: bytes.NewReader(lots)}
		c := &collector{fail: failure}
		_, err := Read(in, c)
		in.over = true
		if !errors.Is(err, failure) || len(c.nodes) != 1 {
			t.Fatalf("%v after %d nodes", err, len(c.nodes))
		}
	}
	c, _, err := readAll(lots)
	if err != nil || len(c.nodes) != 20001 || c.nodes[20000].path != "/node-19999" || len(c.nodes[777].data) != 100 {
		t.Errorf("%v, %d nodes", err, len(c.nodes))
	}
}
