package tree

import (
	"fmt"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestAFreshTreeLooksLikeApaches(t *testing.T) {
	tr := New()
	if got := tr.NodeCount(); got != 5 {
		t.Errorf("node count %d, want 5", got)
	}
	if got := tr.ApproximateDataSize(); got != 44 {
		t.Errorf("approximate data size %d, want 44", got)
	}
	for _, c := range []struct {
		path               string
		cversion, aversion int32
		acl                string
	}{
		{"/", -1, 0, "31:world:anyone"}, {"", -1, 0, "31:world:anyone"}, {"/zookeeper", -2, 0, "31:world:anyone"},
		{"/zookeeper/quota", 0, 0, "31:world:anyone"}, {"/zookeeper/config", 0, -1, "1:world:anyone"},
	} {
		st, code := tr.Exists(Reader{}, c.path)
		if code != proto.ErrOK || st.CVersion != c.cversion || st.AVersion != c.aversion {
			t.Errorf("%q: %v cversion %d aversion %d, want %+v", c.path, code, st.CVersion, st.AVersion, c)
		}
		if acl, ok := tr.PathACL(c.path); !ok || showACL(acl) != c.acl {
			t.Errorf("%q: ACL %v, want %s", c.path, acl, c.acl)
		}
	}
	if _, ok := tr.PathACL("/nothere"); ok {
		t.Error("a missing node has an ACL")
	}
	if st, ok := tr.Stat("/zookeeper/config"); !ok || st.AVersion != -1 {
		t.Errorf("persisted stat of the config node: %+v %v", st, ok)
	}
	if _, ok := tr.Stat("/nothere"); ok {
		t.Error("a missing node has a stat")
	}
}

func TestPublishingTheConfigKeepsItsVersion(t *testing.T) {
	tr := New()
	st, changes := tr.SetConfig(Txn{Zxid: 0x100000007, TimeMillis: 9}, []byte("server.1=…"), nil)
	if st.Version != -1 || st.Mzxid != 0x100000007 || st.Mtime != 9 || st.Czxid != 0 {
		t.Errorf("stat %+v", st)
	}
	if len(changes) != 1 || changes[0].Type != proto.EventNodeDataChanged || changes[0].Path != proto.PathConfig {
		t.Errorf("changes %+v", changes)
	}
	checkInvariants(t, tr)
}

// Case 37: a session with very many ephemerals ends in one step.
func TestSixtyThousandEphemeralsGoInOrder(t *testing.T) {
	const n = 60_000
	s := newScript()
	s.session = 77
	name := fmt.Sprintf("/%0117d-", 0)
	for range n {
		body := (&proto.CreateRequest{Path: name, ACL: proto.OpenACL, Flags: proto.CreateEphemeralSequential}).Append(nil, proto.OpCreate)
		if res, _ := s.tree.Apply(s.txn(), proto.OpCreate, body, nil); res.Err != proto.ErrOK {
			t.Fatal(res.Err)
		}
	}
	if got := s.tree.EphemeralCount(); got != n {
		t.Fatalf("%d ephemerals, want %d", got, n)
	}
	txn := s.txn()
	changes := s.tree.CloseSession(txn, nil)
	if len(changes) != 2*n {
		t.Fatalf("%d changes, want %d", len(changes), 2*n)
	}
	last := ""
	for i, c := range changes {
		if want := []proto.EventType{proto.EventNodeDeleted, proto.EventNodeChildrenChanged}[i%2]; c.Type != want {
			t.Fatalf("change %d is %v, want %v", i, c.Type, want)
		}
		if i%2 == 0 {
			if c.Path <= last {
				t.Fatalf("%s after %s", c.Path, last)
			}
			last = c.Path
		}
	}
	checkInvariants(t, s.tree)
	if s.tree.NodeCount() != 5 {
		t.Fatalf("%d nodes are left", s.tree.NodeCount())
	}
}

func TestSessionsWithEphemeralsAreListedUntilTheyEnd(t *testing.T) {
	s := newScript()
	for _, l := range []string{"session 9", "create /z x flags=1", "create /a x flags=1", "session 3", "create /b x flags=1", "delete /b"} {
		s.run(l)
	}
	list := func() string {
		out := ""
		for id, paths := range s.tree.SessionsWithEphemerals() {
			out += fmt.Sprint(id, paths, " ")
		}
		return out
	}
	if got, want := list(), "0x3 [] 0x9 [/a /z] "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.run("close 3")
	s.run("close 9")
	if got := list(); got != "" {
		t.Errorf("%q after both have ended", got)
	}
	for range s.tree.SessionsWithEphemerals() {
		t.Error("a session is left")
	}
}

func TestAMalformedRecordIsAnErrorWithoutZxid(t *testing.T) {
	for _, op := range []proto.OpCode{
		proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpSetData,
		proto.OpSetACL, proto.OpDeleteContainer, proto.OpCheck, proto.OpGetData, proto.OpMultiRead, 0, -1, 999,
	} {
		tr := New()
		res, changes := tr.Apply(Txn{Zxid: 1}, op, nil, nil)
		if res.Err != proto.ErrMarshalling || !res.NoZxid || len(changes) != 0 {
			t.Errorf("%v: %+v", op, res)
		}
		if len(AppendResult(nil, op, &res)) != 0 {
			t.Errorf("%v: an error has a body", op)
		}
	}
	tr := New()
	if res, _ := tr.Apply(Txn{Zxid: 1}, proto.OpMulti, []byte{1}, nil); res.Err != proto.ErrMarshalling || res.NoZxid {
		t.Errorf("multi: %+v", res)
	}
}

// The bytes of a multi's answer, field by field.
func TestTheReplyOfAMultiIsAppendedAsApacheWritesIt(t *testing.T) {
	st := proto.Stat{Czxid: 1}
	ok := Result{Type: proto.OpMulti, Sub: []Result{
		{Type: proto.OpCreate, Path: "/a"}, {Type: proto.OpCreateTTL, Path: "/b", Stat: st}, {Type: proto.OpSetData, Stat: st},
		{Type: proto.OpDelete}, {Type: proto.OpCheck},
	}}
	header := func(dst []byte, op proto.OpCode, code proto.ErrCode) []byte {
		return proto.AppendMultiHeader(dst, proto.MultiHeader{Type: op, Err: code})
	}
	want := proto.AppendString(header(nil, 1, 0), "/a")
	want = proto.AppendStat(proto.AppendString(header(want, 15, 0), "/b"), &st)
	want = proto.AppendStat(header(want, 5, 0), &st)
	want = header(header(want, 2, 0), 13, 0)
	want = append(want, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	if got := AppendResult(nil, proto.OpMulti, &ok); string(got) != string(want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	failed := Result{Type: proto.OpMulti, Sub: failedMulti(3, 1, proto.ErrNoNode)}
	want = nil
	for _, code := range []proto.ErrCode{0, proto.ErrNoNode, proto.ErrRuntimeInconsistency} {
		want = proto.AppendInt(header(want, -1, code), int32(code))
	}
	want = append(want, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	if got := AppendResult(nil, proto.OpMulti, &failed); string(got) != string(want) || !failed.Failed() || ok.Failed() {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestTheRequestBufferIsNotKept(t *testing.T) {
	s := newScript()
	op, body := parseRequest("create /name data acl=31:world:anyone;1:digest:u:h")
	s.apply(op, body)
	op2, set := parseRequest("set /name other")
	before := dumpTree(s.tree)
	for i := range body {
		body[i] = 0xee
	}
	if got := dumpTree(s.tree); got != before {
		t.Fatalf("create kept the buffer:\n%s", got)
	}
	s.apply(op2, set)
	before = dumpTree(s.tree)
	for i := range set {
		set[i] = 0xee
	}
	if got := dumpTree(s.tree); got != before {
		t.Fatalf("setData kept the buffer:\n%s", got)
	}
}
