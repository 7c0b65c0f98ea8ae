package server

import (
	"fmt"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// authCreates is a multi of n creates below the path, each with an auth entry of its
// own.
func authCreates(below string, n int) []byte {
	ops := make([]proto.MultiOp, n)
	for i := range ops {
		ops[i] = proto.MultiOp{Type: proto.OpCreate, Create: proto.CreateRequest{Path: fmt.Sprintf("%s/%d", below, i), TTL: -1,
			ACL: []proto.ACL{{Perms: int32(i)<<5 | proto.PermAll, ID: proto.ID{Scheme: "auth"}}}}}
	}
	return proto.AppendMulti(nil, ops)
}

// One frame must not make millions of ACL entries on every server. It is the
// server that proposes it which judges that, with the error of a list that is
// too long.
func TestAuthEntriesOfOneMultiExpandUpToALimit(t *testing.T) {
	s := startServer(t, testConfig(t))
	c := connect(t, s, proto.ConnectRequest{})
	const identities, limit = 32, 1 << 16
	for i := range identities {
		p := proto.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "user%d:secret", i)}
		if r := c.call(proto.OpAuth, p.Append(nil)); r.Err != 0 {
			t.Fatalf("auth: %v", r)
		}
	}
	c.create("/n", "", 0)
	c.create("/full", "", 0)
	const fit = limit / identities
	batch := c.frame(proto.OpSetData, setBody("/n", "before"))
	batch = append(batch, c.frame(proto.OpMulti, authCreates("/n", fit+2))...)
	batch = append(batch, c.frame(proto.OpSetData, setBody("/n", "behind"))...)
	first := c.xid - 2
	go func() { _, _ = c.net.Write(batch) }()
	before, refused, behind := c.must(), c.must(), c.must()
	for i, r := range []reply{before, refused, behind} {
		if r.Err != 0 || r.Xid != first+int32(i) {
			t.Fatalf("reply %d: %v", i, r)
		}
	}
	if refused.Zxid != before.Zxid || behind.Zxid != before.Zxid+1 {
		t.Errorf("zxids %v, %v, %v: the multi was proposed", before.Zxid, refused.Zxid, behind.Zxid)
	}
	d := proto.NewDecoder(refused.body)
	for i := range fit + 2 {
		want := proto.ErrOK
		switch {
		case i == fit:
			want = proto.ErrInvalidACL
		case i > fit:
			want = proto.ErrRuntimeInconsistency
		}
		if h, code := d.MultiHeader(), proto.ErrCode(d.Int()); h.Type != proto.OpError || h.Err != want || code != want {
			t.Fatalf("op %d: %+v %v, want %v", i, h, code, want)
		}
	}
	if h := d.MultiHeader(); !h.Done || d.Err() != nil {
		t.Fatalf("the end: %+v %v", h, d.Err())
	}
	if r := c.call(proto.OpMulti, authCreates("/full", fit)); r.Err != 0 || proto.NewDecoder(r.body).MultiHeader().Type != proto.OpCreate {
		t.Fatalf("a multi that just fits: %v", r)
	}
}
