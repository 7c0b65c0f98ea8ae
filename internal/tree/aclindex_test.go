package tree

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// pastedIDs are ids of each scheme, some of them equal in text, some close.
var pastedIDs = map[string][]string{
	schemeWorld:  {"anyone", "someone", ""},
	schemeDigest: {"u:h", "v:h", "super", "", "10.1.2.3"},
	schemeX509:   {"CN=a", "CN=b", "u:h"},
	schemeSASL:   {"super", "a@R", "b", "u:h"},
	schemeIP: {"10.1.2.3", "10.1.2.4/30", "10.1.0.0/16", "010.1.2.3", "10.1.2.3/33", "10.1.2.7/+31", "0.0.0.0/0", "::1", "::2/126", "2001:db8::/32",
		"0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:5", "::/0", "nonsense", "", "10.1.2.3.", "1.2.3.4", "200.0.0.0/1", "1.2.3.4:5"},
	schemeSuper: {"", "x"}, schemeAuth: {"", "u:h"}, "key": {"k", "super"}, proto.NullString: {proto.NullString},
}

// A long list is asked by its index, a short one entry by entry: they say the
// same.
func TestAnIndexedListAllowsWhatItsEntriesAllow(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	schemes := []string{schemeWorld, schemeDigest, schemeDigest, schemeX509, schemeSASL, schemeIP, schemeIP, schemeIP, schemeSuper, schemeAuth, "key", proto.NullString}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	id := func(schemes []string) proto.ID {
		s := pick(schemes)
		return proto.ID{Scheme: s, ID: pick(pastedIDs[s])}
	}
	// Seldom many of them.
	perms := []int32{0, 0, 0, 1, 2, 4, 8, 16, 3, 20, proto.PermAll}
	var said [2]int
	for range 5000 {
		// Of few schemes, that a list need not allow everything.
		few := []string{pick(schemes), pick(schemes), pick(schemes)}
		acl := make([]proto.ACL, indexedFrom+r.IntN(20))
		for i := range acl {
			acl[i] = proto.ACL{Perms: perms[r.IntN(len(perms))], ID: id(few)}
			if acl[i].ID.Scheme == schemeWorld && r.IntN(4) > 0 {
				acl[i].ID.ID = "someone"
			}
		}
		list := &ACLSet{acl: acl}
		for range 8 {
			ids := make([]proto.ID, r.IntN(4))
			for i := range ids {
				ids[i] = id(schemes)
			}
			perm := int32(1) << r.IntN(5)
			if r.IntN(4) == 0 {
				perm |= int32(r.IntN(32))
			}
			got, want := list.Allowed(perm, ids), Allowed(acl, perm, ids)
			if got != want {
				t.Fatalf("seed %d: %+v for %d of %+v: %v, want %v", seed, ids, perm, acl, got, want)
			}
			if got {
				said[1]++
			} else {
				said[0]++
			}
		}
		if list.index.Load() == nil {
			t.Fatalf("a list of %d entries has no index", len(acl))
		}
	}
	if min(said[0], said[1]) < 4000 {
		t.Fatalf("seed %d: %d refused and %d allowed are too few of one kind", seed, said[0], said[1])
	}
}

// crowd is a list of digest entries, and a client with many identities, none of
// which is in it but the last.
func crowd(entries, identities int) ([]proto.ACL, []proto.ID) {
	acl, ids := make([]proto.ACL, entries), make([]proto.ID, identities)
	for i := range acl {
		acl[i] = proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: schemeDigest, ID: fmt.Sprintf("u%06d:h", i)}}
	}
	for i := range ids {
		ids[i] = proto.ID{Scheme: schemeDigest, ID: fmt.Sprintf("v%06d:h", i)}
	}
	return acl, ids
}

// Each command and each read beside it asks anew. Comparing each entry with each
// identity, this takes minutes.
func TestALongListIsNotComparedWithManyIdentities(t *testing.T) {
	tr := New()
	acl, ids := crowd(45_000, 370)
	owner := Txn{Zxid: 1, Identities: []proto.ID{acl[44_999].ID}}
	create := proto.CreateRequest{Path: "/long", ACL: acl, TTL: -1}
	if res, _ := tr.Apply(owner, proto.OpCreate, create.Append(nil, proto.OpCreate), nil); res.Err != proto.ErrOK {
		t.Fatalf("create: %v", res.Err)
	}
	const rounds = 4_000
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for range rounds / 4 {
				if _, _, code := tr.Get(Reader{Identities: ids}, "/long"); code != proto.ErrNoAuth {
					t.Errorf("a stranger reads: %v", code)
					return
				}
			}
		})
	}
	readers.Wait()
	stranger := Txn{Zxid: 2, Identities: ids}
	set := proto.SetDataRequest{Path: "/long", Version: -1}
	for range rounds {
		if res, _ := tr.Apply(stranger, proto.OpSetData, set.Append(nil), nil); res.Err != proto.ErrNoAuth {
			t.Fatalf("a stranger: %v", res.Err)
		}
	}
	if res, _ := tr.Apply(owner, proto.OpSetData, set.Append(nil), nil); res.Err != proto.ErrOK {
		t.Fatalf("the last one in the list: %v", res.Err)
	}
}

// The list that replaces a long one is asked for itself.
func TestTheIndexGoesWithItsList(t *testing.T) {
	tr := New()
	acl, _ := crowd(50, 0)
	txn := Txn{Zxid: 1, Identities: []proto.ID{acl[0].ID}}
	create := proto.CreateRequest{Path: "/n", ACL: acl, TTL: -1}
	if res, _ := tr.Apply(txn, proto.OpCreate, create.Append(nil, proto.OpCreate), nil); res.Err != proto.ErrOK {
		t.Fatalf("create: %v", res.Err)
	}
	set := proto.SetACLRequest{Path: "/n", ACL: acl[1:], Version: -1}
	for i, want := range []proto.ErrCode{proto.ErrOK, proto.ErrNoAuth} {
		if res, _ := tr.Apply(txn, proto.OpSetACL, set.Append(nil), nil); res.Err != want {
			t.Fatalf("setACL %d: %v, want %v", i, res.Err, want)
		}
	}
}

func BenchmarkAllowedBy(b *testing.B) {
	for _, n := range []struct{ entries, identities int }{{1, 1}, {32, 2}, {33, 2}, {1000, 2}, {45_000, 370}} {
		acl, ids := crowd(n.entries, n.identities)
		list := &ACLSet{acl: acl}
		b.Run(fmt.Sprintf("list/%dx%d", n.entries, n.identities), func(b *testing.B) {
			for b.Loop() {
				list.Allowed(proto.PermRead, ids)
			}
		})
		b.Run(fmt.Sprintf("pairs/%dx%d", n.entries, n.identities), func(b *testing.B) {
			for b.Loop() {
				Allowed(acl, proto.PermRead, ids)
			}
		})
	}
}
