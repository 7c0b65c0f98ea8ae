package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/snapshot"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// ownNodes are nodes that the real server writes itself at its start.
var ownNodes = []string{proto.PathConfig}

func options(dataDir string, defines map[string]string) peer.Options {
	all := map[string]string{
		"zookeeper.extendedTypesEnabled":                     "true",
		"zookeeper.DigestAuthenticationProvider.superDigest": superDigest,
		"zookeeper.forceSync":                                "no",
		"zookeeper.4lw.commands.whitelist":                   "mntr,srvr,dump",
	}
	for k, v := range defines {
		all[k] = v
	}
	return peer.Options{DataDir: dataDir, Defines: all}
}

// treeDigest computes the digest of version 2 from the facts sheet's formula.
func treeDigest(f *file) uint64 {
	var sum uint64
	for p, n := range f.nodes {
		if strings.HasPrefix(p, proto.PathZooKeeper+"/") {
			continue
		}
		if p == proto.PathRoot {
			p = ""
		}
		s := n.stat
		b := append([]byte(p), n.data...)
		for _, v := range []int64{int64(s.Czxid), int64(s.Mzxid), int64(s.Pzxid), s.Ctime, s.Mtime} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
		b = proto.AppendInt(proto.AppendInt(proto.AppendInt(b, s.Version), s.CVersion), s.AVersion)
		sum += uint64(crc32.ChecksumIEEE(binary.BigEndian.AppendUint64(b, uint64(s.EphemeralOwner))))
	}
	return sum
}

// ourTree is a tree of every kind of node, as our own server could hold it.
func ourTree(session proto.SessionID) *file {
	var f file
	add := func(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) {
		if err := f.Node(path, data, acl, st); err != nil {
			panic(err)
		}
	}
	anna := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: "anna:3f+5xUZ5l5sYVvPC8wLXrfL9d8Y="}}}
	st := proto.StatPersisted{Czxid: 0x100000002, Mzxid: 0x100000003, Ctime: 1700000000001, Mtime: 1700000000002, Version: 7, CVersion: 4, AVersion: 2, Pzxid: 0x100000009}
	owned := func(owner int64) proto.StatPersisted { o := st; o.EphemeralOwner, o.CVersion = owner, 0; return o }
	add("/", []byte{}, proto.OpenACL, proto.StatPersisted{CVersion: 5, Pzxid: 0x100000005})
	add("/zookeeper", []byte{}, proto.OpenACL, proto.StatPersisted{})
	add("/zookeeper/config", []byte{}, []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}, proto.StatPersisted{})
	add("/zookeeper/quota", []byte{}, proto.OpenACL, proto.StatPersisted{CVersion: 1, Pzxid: 0x100000006})
	add("/zookeeper/quota/a", []byte{}, proto.OpenACL, proto.StatPersisted{CVersion: 2, Pzxid: 0x100000008})
	add("/zookeeper/quota/a/zookeeper_limits", []byte("count=100,bytes=-1"), proto.OpenACL, st)
	add("/zookeeper/quota/a/zookeeper_stats", []byte("count=3,bytes=3"), proto.OpenACL, st)
	add("/a", nil, proto.OpenACL, st)
	add("/a/empty", []byte{}, anna, owned(0))
	add("/a/ephemeral", []byte("eph"), anna, owned(int64(session)))
	add("/container", []byte("c"), []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "world", ID: "anyone"}}, {Perms: 1, ID: anna[0].ID}}, func() proto.StatPersisted { s := st; s.EphemeralOwner = proto.ContainerOwner; return s }())
	add("/container/child", []byte("in it"), proto.OpenACL, owned(0))
	add("/ttl", []byte("t"), proto.OpenACL, owned(proto.TTLOwner(3600000)))
	add("/ünï\u4e00", bytes.Repeat([]byte{0, 0xff}, 500), proto.OpenACL, owned(0))
	return &f
}

const (
	ourSession proto.SessionID = 0x100000000000042
	ourZxid    proto.Zxid      = 0x100000009
)

func writeSnapshot(t *testing.T, dataDir string, f *file, zxid proto.Zxid, extension []byte) {
	t.Helper()
	dir := filepath.Join(dataDir, "version-2")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, snapshot.SnapshotName(zxid)))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	content := snapshot.Content{Sessions: f.sessions, Nodes: f.each, Zxid: zxid, Digest: treeDigest(f), Extension: extension}
	if err := snapshot.Write(out, content); err != nil {
		t.Fatal(err)
	}
}

// noMismatch asks the real server whether it found a digest wrong.
func noMismatch(t *testing.T, s *peer.Server) {
	t.Helper()
	text, err := peer.Word(s.Address, "mntr")
	if err != nil || !strings.Contains(text, "zk_digest_mismatches_count\t0\n") {
		t.Errorf("mntr: %v\n%s", err, text)
	}
	if strings.Contains(s.Log(), "digests are not matching") || strings.Contains(s.Log(), "problem reading snap file") {
		t.Errorf("the server complained:\n%s", s.Log())
	}
}

// A user may leave zooraft: the very file works in Apache's directory.
func TestApacheStartsFromASnapshotOfOurs(t *testing.T) {
	for name, extension := range map[string][]byte{"with our part behind it": []byte("passwords and owners"), "as a plain export": nil} {
		t.Run(name, func(t *testing.T) {
			f := ourTree(ourSession)
			f.sessions = []snapshot.Session{{ID: ourSession, TimeoutMillis: 3600000}}
			opts := options(t.TempDir(), nil)
			writeSnapshot(t, opts.DataDir, f, ourZxid, extension)
			s := peer.StartApache(t, opts)
			c := connect(t, s)
			c.auth("digest", "super:secret")
			sameTree(t, c.walk("/"), f.view(), ownNodes...)
			noMismatch(t, s)
			if text, err := peer.Word(s.Address, "dump"); err != nil || !strings.Contains(text, "/a/ephemeral") {
				t.Errorf("dump does not list the ephemeral: %v\n%s", err, text)
			}
			if !strings.Contains(s.Log(), "digest value as") {
				t.Errorf("the server did not read the digest:\n%s", s.Log())
			}
		})
	}
}

// The log that the room writes is one that the real server replays.
func TestApacheReplaysALogOfOurs(t *testing.T) {
	f := ourTree(ourSession)
	opts := options(t.TempDir(), nil)
	writeSnapshot(t, opts.DataDir, f, ourZxid, []byte{})
	var b bytes.Buffer
	w, err := snapshot.NewLogWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	zxid := ourZxid
	for _, txn := range []struct {
		op   proto.OpCode
		body snapshot.LogBody
	}{
		{proto.OpCreateSession, snapshot.CreateSessionTxn{TimeoutMillis: 3600000}},
		{proto.OpCreate2, snapshot.CreateTxn{Path: "/log", Data: nil, ACL: proto.OpenACL, ParentCVersion: 6}},
		{proto.OpMulti, snapshot.MultiTxn{Parts: []snapshot.MultiPart{
			{Type: proto.OpCreate, Body: snapshot.CreateTxn{Path: "/log/eph", Data: []byte("e"), ACL: proto.OpenACL, Ephemeral: true, ParentCVersion: 1}},
			{Type: proto.OpSetData, Body: snapshot.SetDataTxn{Path: "/log", Data: []byte("set"), Version: 1}},
		}}},
		{proto.OpError, snapshot.ErrorTxn{Err: proto.ErrNoNode}},
		{proto.OpDelete, snapshot.DeleteTxn{Path: "/a/empty"}},
		{proto.OpSetACL, snapshot.SetACLTxn{Path: "/ttl", ACL: proto.OpenACL, Version: 3}},
		{proto.OpCreateContainer, snapshot.CreateContainerTxn{Path: "/log/c", ACL: proto.OpenACL, ParentCVersion: 2}},
		{proto.OpCreateTTL, snapshot.CreateTTLTxn{Path: "/log/t", ACL: proto.OpenACL, ParentCVersion: 3, TTLMillis: 3600000}},
	} {
		zxid++
		head := snapshot.LogHeader{Session: 0x100000000000043, Cxid: 1, Zxid: zxid, TimeMillis: 1700000005000, Type: txn.op}
		if err := w.Append(snapshot.LogRecord{LogHeader: head, Body: txn.body}); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(opts.DataDir, "version-2", snapshot.LogName(ourZxid+1))
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	c := connect(t, peer.StartApache(t, opts))
	c.auth("digest", "super:secret")
	got := c.walk("/")
	if n := got["/log"]; string(n.data) != "set" || n.stat.Version != 1 || n.stat.CVersion != 3 || n.stat.NumChildren != 3 {
		t.Errorf("/log: %q %+v", n.data, n.stat)
	}
	if n := got["/log/eph"]; n.stat.EphemeralOwner != 0x100000000000043 {
		t.Errorf("/log/eph: %+v", n)
	}
	if _, there := got["/a/empty"]; there || got["/ttl"].stat.AVersion != 3 {
		t.Errorf("/a/empty is there: %v; /ttl: %+v", there, got["/ttl"])
	}
}

// populate lets the real server make a node of every kind.
func populate(c *client) {
	anna := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
	c.auth("digest", "anna:secret")
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/null"})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/null/empty", Data: []byte{}})
	c.create(proto.OpCreate2, proto.CreateRequest{Path: "/secret", Data: []byte("s"), ACL: anna})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/eph", Data: []byte("e"), Flags: 1, ACL: anna})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/null/seq-", Flags: 2})
	c.create(proto.OpCreateContainer, proto.CreateRequest{Path: "/container", Flags: 4})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/container/x", Data: bytes.Repeat([]byte("abc"), 1000)})
	c.create(proto.OpCreateTTL, proto.CreateRequest{Path: "/ttl", Flags: 5, TTL: 3600000})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/zookeeper/quota/null"})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/zookeeper/quota/null/zookeeper_limits", Data: []byte("count=10,bytes=-1")})
	c.create(proto.OpCreate, proto.CreateRequest{Path: "/zookeeper/quota/null/zookeeper_stats", Data: []byte("count=0,bytes=0")})
	set := proto.SetDataRequest{Path: "/secret", Data: []byte("changed"), Version: 0}
	c.call(proto.OpSetData, set.Append(nil))
	del := proto.PathVersion{Path: "/null/seq-0000000001", Version: -1}
	c.call(proto.OpDelete, del.Append(nil))
}

// A user may come from Apache: what the real server wrote is read whole.
func TestASnapshotThatApacheWroteIsRead(t *testing.T) {
	for _, compression := range []string{"", "gz", "snappy"} {
		t.Run("compression "+compression, func(t *testing.T) {
			opts := options(t.TempDir(), map[string]string{"zookeeper.snapshot.compression.method": compression})
			s := peer.StartApache(t, opts)
			c := connect(t, s)
			populate(c)
			// The session lives on in the log; the start after it takes a snapshot.
			s.Kill(t)
			s.Start(t)
			super := connect(t, s)
			super.auth("digest", "super:secret")
			live := super.walk("/")
			s.Kill(t)

			name := newest(t, opts.DataDir, func(n string) bool { _, ok := snapshot.ParseSnapshotName(n); return ok })
			keep(t, name)
			f, trailer := readSnapshot(t, name)
			sameTree(t, f.view(), live)
			if !slices.Contains(f.sessions, snapshot.Session{ID: c.id, TimeoutMillis: 40000}) {
				t.Errorf("session %v is not in %v", c.id, f.sessions)
			}
			zxid, _ := snapshot.ParseSnapshotName(filepath.Base(name))
			if !trailer.HasZxid || trailer.Zxid != zxid || !trailer.HasDigest || trailer.Digest != treeDigest(f) || trailer.Extension != nil {
				t.Errorf("trailer %+v of %s, computed digest %x", trailer, name, treeDigest(f))
			}
			if st := f.nodes["/ttl"].stat; st.EphemeralOwner != proto.TTLOwner(3600000) {
				t.Errorf("/ttl: %+v", st)
			}
			backToApache(t, f, zxid, live)
		})
	}
}

// backToApache writes what was read and lets the real server start from it.
func backToApache(t *testing.T, f *file, zxid proto.Zxid, want map[string]node) {
	t.Helper()
	opts := options(t.TempDir(), nil)
	writeSnapshot(t, opts.DataDir, f, zxid, []byte("ours"))
	s := peer.StartApache(t, opts)
	c := connect(t, s)
	c.auth("digest", "super:secret")
	sameTree(t, c.walk("/"), want)
	noMismatch(t, s)
}

var update = flag.Bool("update", false, "keep what the real server writes as test data of room snapshot")

// keep copies a file to where the room's own tests find it, which need no Java.
func keep(t *testing.T, name string) {
	t.Helper()
	if !*update {
		return
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	as := "apache-" + peer.ApacheVersion + filepath.Ext(filepath.Base(name))
	if zxid, ok := snapshot.ParseSnapshotName(filepath.Base(name)); ok && filepath.Base(name) == snapshot.SnapshotName(zxid) {
		as = "apache-" + peer.ApacheVersion + ".plain"
	}
	if _, ok := snapshot.ParseLogName(filepath.Base(name)); ok {
		as = "apache-" + peer.ApacheVersion + ".log"
		// The space taken in advance is 64 MiB of zeros: a few are enough.
		b = append(bytes.TrimRight(b, "\x00"), make([]byte, 100)...)
	}
	if err := os.WriteFile(filepath.Join(toolchain.Root(), "internal", "snapshot", "testdata", as), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestALogThatApacheWroteIsRead(t *testing.T) {
	opts := options(t.TempDir(), nil)
	s := peer.StartApache(t, opts)
	c := connect(t, s)
	populate(c)
	multi := proto.AppendMulti(nil, []proto.MultiOp{
		{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/m", ACL: proto.OpenACL}},
		{Type: proto.OpCheck, Version: proto.PathVersion{Path: "/m", Version: 0}},
	})
	c.call(proto.OpMulti, multi)
	c.call(proto.OpCloseSession, nil)
	s.Kill(t)

	name := newest(t, opts.DataDir, func(n string) bool { _, ok := snapshot.ParseLogName(n); return ok })
	keep(t, name)
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := snapshot.NewLogReader(in)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[proto.OpCode]int{}
	created := map[string]bool{}
	var last snapshot.LogRecord
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !rec.HasDigest || rec.DigestVersion != 2 || rec.Zxid <= last.Zxid {
			t.Errorf("record %+v", rec)
		}
		seen[rec.Type]++
		if b, ok := rec.Body.(snapshot.CreateTxn); ok {
			created[b.Path] = true
		}
		last = rec
	}
	for _, op := range []proto.OpCode{proto.OpCreateSession, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpSetData, proto.OpDelete, proto.OpMulti, proto.OpCloseSession} {
		if seen[op] == 0 {
			t.Errorf("no %v in the log", op)
		}
	}
	if b, ok := last.Body.(snapshot.CloseSessionTxn); !ok || !slices.Equal(b.Paths, []string{"/eph"}) {
		t.Errorf("the last record is %+v", last)
	}
	if !created["/null/seq-0000000001"] {
		t.Errorf("created %v", created)
	}
}

func newest(t *testing.T, dataDir string, accept func(string) bool) string {
	t.Helper()
	dir := filepath.Join(dataDir, "version-2")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	best, bestZxid := "", proto.Zxid(-1)
	for _, e := range entries {
		if !accept(e.Name()) {
			continue
		}
		zxid, ok := snapshot.ParseSnapshotName(e.Name())
		if !ok {
			zxid, _ = snapshot.ParseLogName(e.Name())
		}
		if zxid > bestZxid {
			best, bestZxid = filepath.Join(dir, e.Name()), zxid
		}
	}
	if best == "" {
		t.Fatalf("nothing to read in %s", dir)
	}
	return best
}

func readSnapshot(t *testing.T, name string) (*file, snapshot.Trailer) {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var f file
	trailer, err := snapshot.Read(in, &f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &f, trailer
}
