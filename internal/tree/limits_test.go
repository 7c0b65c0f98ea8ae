package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// uniqueByPairs is the plain reading of withoutDuplicates: each entry is
// compared with all that were kept, perms first and then the strings of the
// later one.
func uniqueByPairs(acl []proto.ACL) ([]proto.ACL, proto.ErrCode) {
	var out []proto.ACL
	for _, a := range acl {
		dup := false
		for _, b := range out {
			if a.Perms != b.Perms {
				continue
			}
			if a.ID.Scheme == proto.NullString || a.ID.Scheme == b.ID.Scheme && a.ID.ID == proto.NullString {
				return nil, proto.ErrMarshalling
			}
			dup = dup || a == b
		}
		if !dup {
			out = append(out, a)
		}
	}
	return out, proto.ErrOK
}

func TestDuplicatesOfAnACLListAreThoseThatAllPairsShow(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	for range 20000 {
		acl := make([]proto.ACL, 2+r.IntN(6))
		for i := range acl {
			acl[i] = proto.ACL{Perms: int32(r.IntN(3)), ID: proto.ID{
				Scheme: pick("a", "b", "c", proto.NullString), ID: pick("x", "y", "z", proto.NullString)}}
		}
		got, code := withoutDuplicates(acl)
		want, wantCode := uniqueByPairs(acl)
		if code != wantCode || !slices.Equal(got, want) {
			t.Fatalf("seed %d: %+v: %+v %v, want %+v %v", seed, acl, got, code, want, wantCode)
		}
	}
}

// longACL is a list of n different ip entries that do not match 127.0.0.1, with
// one that does at its end.
func longACL(n int) []proto.ACL {
	acl := make([]proto.ACL, 0, n+1)
	for i := range n {
		acl = append(acl, proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}})
	}
	return append(acl, proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "127.0.0.1"}})
}

// One request must not hold up everybody. These take a blink; comparing all
// pairs of entries, or all entries for each op, takes hours.
func TestLongACLListsAreJudgedInOnePass(t *testing.T) {
	tr := New()
	local := Txn{Zxid: 1, Identities: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}}
	create := proto.CreateRequest{Path: "/long", ACL: longACL(150_000), TTL: -1}
	if res, _ := tr.Apply(local, proto.OpCreate, create.Append(nil, proto.OpCreate), nil); res.Err != proto.ErrOK {
		t.Fatalf("create: %v", res.Err)
	}
	ops := make([]proto.MultiOp, 50_000)
	for i := range ops {
		ops[i] = proto.MultiOp{Type: proto.OpCheck, Version: proto.PathVersion{Path: "/long", Version: -1}}
	}
	if res, _ := tr.Apply(local, proto.OpMulti, proto.AppendMulti(nil, ops), nil); res.Err != proto.ErrOK || res.Failed() {
		t.Fatalf("multi: %+v", res.Err)
	}
	stranger := Txn{Zxid: 2, Identities: []proto.ID{{Scheme: "ip", ID: "127.0.0.2"}}}
	if res, _ := tr.Apply(stranger, proto.OpMulti, proto.AppendMulti(nil, ops), nil); res.Sub[0].Err != proto.ErrNoAuth {
		t.Fatalf("a stranger: %+v", res.Sub[0])
	}
}

// A multi remembers what it judged of a list, not of a path: a node that is
// made anew in it has another list.
func TestAMultiJudgesTheListOfANodeThatItMakesAnew(t *testing.T) {
	tr := New()
	local := Txn{Zxid: 1, Identities: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}}
	open, closed := longACL(20), longACL(20)
	closed[20].Perms = proto.PermDelete
	multi := func(ops ...proto.MultiOp) Result {
		res, _ := tr.Apply(local, proto.OpMulti, proto.AppendMulti(nil, ops), nil)
		return res
	}
	create := func(acl []proto.ACL) proto.MultiOp {
		return proto.MultiOp{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/n", ACL: acl, TTL: -1}}
	}
	check := proto.MultiOp{Type: proto.OpCheck, Version: proto.PathVersion{Path: "/n", Version: -1}}
	remove := proto.MultiOp{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/n", Version: -1}}
	if res := multi(create(open), check, remove, create(open), check, remove); res.Failed() {
		t.Fatalf("open lists: %+v", res.Sub)
	}
	if res := multi(create(open), check, remove, create(closed), check); res.Sub[4].Err != proto.ErrNoAuth {
		t.Fatalf("then a closed one: %+v", res.Sub)
	}
}

func TestAuthEntriesExpandInOrderUpToALimit(t *testing.T) {
	ids := []proto.ID{{Scheme: "ip", ID: "1.1.1.1"}, {Scheme: "digest", ID: "u:h"}, {Scheme: "super"}, {Scheme: "digest", ID: "v:h"}}
	txn := &Txn{Identities: ids}
	got, code := fixACL(txn, parseACL("1:world:anyone;2:auth:;4:ip:2.2.2.2;8:auth:"))
	want := parseACL("1:world:anyone;2:digest:u:h;2:digest:v:h;4:ip:2.2.2.2;8:digest:u:h;8:digest:v:h")
	if code != proto.ErrOK || !slices.Equal(got, want) {
		t.Errorf("%+v %v, want %+v", got, code, want)
	}
	for n, want := range map[int]proto.ErrCode{maxExpandedACL / 2: proto.ErrOK, maxExpandedACL/2 + 1: proto.ErrInvalidACL, 8 * maxExpandedACL: proto.ErrInvalidACL} {
		acl := make([]proto.ACL, n)
		for i := range acl {
			acl[i] = proto.ACL{Perms: int32(i), ID: proto.ID{Scheme: "auth"}}
		}
		if got, code := fixACL(txn, acl); code != want || code == proto.ErrOK && len(got) != 2*n {
			t.Errorf("%d auth entries: %d entries, %v, want %v", n, len(got), code, want)
		}
	}
}

// Whoever may write a quota could else have every write below it read a
// megabyte.
func TestALongQuotaTextIsNotRead(t *testing.T) {
	for n, want := range map[int]bool{maxUsageLen: true, maxUsageLen + 1: false} {
		text := "count=1,bytes=2,k=" + strings.Repeat("0", n-len("count=1,bytes=2,k=")-1) + "1"
		if _, ok := parseUsage([]byte(text)); ok != want {
			t.Errorf("%d bytes: read %v, want %v", n, ok, want)
		}
	}
}
