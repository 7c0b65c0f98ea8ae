package tree

import (
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
	}{{"/", -1, 0}, {"", -1, 0}, {"/zookeeper", -2, 0}, {"/zookeeper/quota", 0, 0}, {"/zookeeper/config", 0, -1}} {
		st, code := tr.Exists(Reader{}, c.path)
		if code != proto.ErrOK || st.CVersion != c.cversion || st.AVersion != c.aversion {
			t.Errorf("%q: %v cversion %d aversion %d, want %+v", c.path, code, st.CVersion, st.AVersion, c)
		}
	}
}

func TestCreateSetDeleteRoundTrip(t *testing.T) {
	tr := New()
	empty := tr.Digest()
	body := (&proto.CreateRequest{Path: "/a", Data: []byte("x"), ACL: proto.OpenACL}).Append(nil, proto.OpCreate)
	res, ch := tr.Apply(Txn{Zxid: 1, TimeMillis: 5}, proto.OpCreate, body, nil)
	if res.Err != proto.ErrOK || res.Path != "/a" || len(ch) != 2 {
		t.Fatalf("create: %+v %+v", res, ch)
	}
	res, _ = tr.Apply(Txn{Zxid: 2, TimeMillis: 6}, proto.OpSetData, (&proto.SetDataRequest{Path: "/a", Version: 0}).Append(nil), nil)
	if res.Err != proto.ErrOK || res.Stat.Version != 1 || res.Stat.Mzxid != 2 {
		t.Fatalf("set: %+v", res)
	}
	if tr.Digest() != tr.DigestFull() || tr.Digest() == empty {
		t.Fatalf("digest %x, recomputed %x", tr.Digest(), tr.DigestFull())
	}
	data, _, _ := tr.Get(Reader{}, "/a")
	if data != nil {
		t.Fatalf("data %q, want null", data)
	}
	res, _ = tr.Apply(Txn{Zxid: 3}, proto.OpDelete, (&proto.PathVersion{Path: "/a", Version: -1}).Append(nil), nil)
	if res.Err != proto.ErrOK || tr.NodeCount() != 5 {
		t.Fatalf("delete: %+v", res)
	}
}
