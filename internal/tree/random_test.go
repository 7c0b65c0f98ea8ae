package tree

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zooraft/zooraft/internal/proto"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random history of this seed")

// history makes random commands over a small world, so that they meet.
type history struct {
	*rand.Rand
	zxid proto.Zxid
	calm bool // few errors, so that multis pass
}

func newHistory(seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 0))}
	h.calm = h.IntN(2) == 0
	return h
}

// opening is what a calm history starts with: a quota on /a.
func (h *history) opening() []proto.CreateRequest {
	if !h.calm {
		return nil
	}
	var out []proto.CreateRequest
	for _, p := range []string{"/a", "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats"} {
		out = append(out, proto.CreateRequest{Path: p, Data: h.data(p), ACL: proto.OpenACL})
	}
	return out
}

func pick[T any](h *history, of ...T) T { return of[h.IntN(len(of))] }

func (h *history) path() string {
	if h.calm && h.IntN(12) > 0 {
		return h.plain(1 + h.IntN(2))
	}
	if !h.calm && h.IntN(12) == 0 {
		return pick(h, "", "/", "a", "a/b", "/a/", "//a", "/a//b", "/a/.", "/a/..", "/zookeeper", "/zookeeper/quota",
			"/zookeeper/config", "/a\x00", proto.NullString, "/é", "/\uFFFD")
	}
	if h.calm || h.IntN(12) == 0 {
		return "/zookeeper/quota" + h.plain(2) + pick(h, "", "", "/zookeeper_limits", "/zookeeper_stats")
	}
	return h.plain(3)
}

func (h *history) plain(depth int) string {
	var p string
	for range 1 + h.IntN(depth) {
		p += "/" + pick(h, "a", "b", "c")
	}
	return p
}

func (h *history) data(path string) []byte {
	switch {
	case strings.HasSuffix(path, "/zookeeper_limits"):
		return fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", h.IntN(30), h.IntN(8))
	case strings.HasSuffix(path, "/zookeeper_stats"):
		return fmt.Appendf(nil, "count=%d,bytes=%d", h.IntN(8), h.IntN(30))
	case h.IntN(8) == 0:
		return nil
	}
	return bytes.Repeat([]byte{'x'}, h.IntN(12))
}

func (h *history) version() int32 {
	if h.calm {
		return -1
	}
	return pick[int32](h, -1, -1, -1, 0, 0, 1, 2, 3)
}

func (h *history) acl() []proto.ACL {
	n := 16
	if h.calm {
		n = 200
	}
	switch h.IntN(n) {
	case 0:
		return nil
	case 1:
		return []proto.ACL{}
	case 2:
		return parseACL("31:digest:u:h;1:world:anyone")
	case 3:
		return parseACL("31:auth:;1:world:anyone;1:world:anyone")
	case 4:
		return parseACL("27:world:anyone;31:digest:u:h")
	case 5:
		return parseACL("31:nothing:x")
	}
	return proto.OpenACL
}

func (h *history) request() (proto.OpCode, []byte) {
	p := h.path()
	switch h.IntN(10) {
	default:
		op := pick(h, proto.OpCreate, proto.OpCreate, proto.OpCreate2, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL)
		r := proto.CreateRequest{Path: p, Data: h.data(p), ACL: h.acl(), TTL: -1, Flags: int32(pick(h, 0, 0, 0, 1, 1, 2, 3))}
		if op == proto.OpCreateTTL {
			r.Flags, r.TTL = int32(pick(h, 5, 5, 6, 0)), int64(pick(h, 1, 5000, 400_000, 0, proto.MaxTTLMillis+1))
		} else if h.IntN(20) == 0 {
			r.Flags = int32(pick(h, -1, 4, 5, 6, 7))
		}
		return op, r.Append(nil, op)
	case 5, 6:
		return proto.OpDelete, (&proto.PathVersion{Path: p, Version: h.version()}).Append(nil)
	case 7, 8:
		return proto.OpSetData, (&proto.SetDataRequest{Path: p, Data: h.data(p), Version: h.version()}).Append(nil)
	case 9:
		return proto.OpSetACL, (&proto.SetACLRequest{Path: p, ACL: h.acl(), Version: h.version()}).Append(nil)
	}
}

func (h *history) command() (proto.OpCode, []byte) {
	if h.IntN(4) > 0 {
		op, body := h.request()
		if h.IntN(40) == 0 {
			body = body[:h.IntN(len(body)+1)]
		}
		return op, body
	}
	var body []byte
	for range h.IntN(4) {
		op, rec := h.request()
		if op == proto.OpSetACL {
			op, rec = proto.OpCheck, (&proto.PathVersion{Path: h.path(), Version: h.version()}).Append(nil)
		}
		body = append(proto.AppendMultiHeader(body, proto.MultiHeader{Type: op, Err: -1}), rec...)
	}
	body = proto.AppendMultiHeader(body, proto.MultiEnd)
	if h.IntN(40) == 0 {
		body = body[:h.IntN(len(body))]
	}
	return proto.OpMulti, body
}

func (h *history) txn() Txn {
	h.zxid++
	txn := Txn{Zxid: h.zxid, TimeMillis: int64(h.zxid) * 7919, Session: proto.SessionID(1 + h.IntN(3))}
	txn.Identities = pick(h, nil, nil, []proto.ID{{Scheme: "digest", ID: "u:h"}}, []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "super"}})
	if h.IntN(20) == 0 {
		txn.Switches |= proto.SwitchSkipACL
	}
	if h.IntN(4) > 0 {
		txn.Switches |= proto.SwitchExtendedTypes
	}
	if h.IntN(4) > 0 {
		txn.Switches |= proto.SwitchEnforceQuota
	}
	return txn
}

func dump(v *View) string {
	var lines []string
	_ = v.Nodes(func(path string, data []byte, acl []proto.ACL, st proto.StatPersisted) error {
		lines = append(lines, fmt.Sprintf("%s %q %t %v %+v\n", path, data, data == nil, acl, st))
		return nil
	})
	slices.SortFunc(lines, func(a, b string) int {
		pa, _, _ := strings.Cut(a, " ")
		pb, _, _ := strings.Cut(b, " ")
		return strings.Compare(pa, pb)
	})
	return strings.Join(lines, "")
}

func dumpTree(t *Tree) string {
	v := t.Freeze()
	defer v.Release()
	return dump(v)
}

func rebuild(t *Tree) (*Tree, error) {
	v := t.Freeze()
	defer v.Release()
	b := NewBuilder()
	if err := v.Nodes(b.Add); err != nil {
		return nil, err
	}
	return b.Tree()
}

// checkInvariants compares everything that the tree keeps up to date with a
// new computation.
func checkInvariants(t testing.TB, tr *Tree) {
	t.Helper()
	var nodes, owned int
	var size int64
	refs := map[*ACLSet]int{}
	quotas := map[string]struct{}{}
	reapable := map[reapSlot]map[uint32]struct{}{}
	if err := walk(tr.chunks, func(path string, n *node) error {
		i := tr.find(path)
		kids := 0
		for k, prev := n.first, none; k != none; k, prev = tr.at(k).next, k {
			if kids++; tr.at(k).parent != i || tr.at(k).prev != prev {
				return fmt.Errorf("%s: child %d is linked wrongly", path, k)
			}
		}
		if i == none || tr.at(i) != n || tr.path(i) != path || kids != int(n.children) {
			return fmt.Errorf("%s: number %d, path %q, %d children of %d", path, i, tr.path(i), kids, n.children)
		}
		nodes++
		size += int64(utf8.RuneCountInString(path) + len(n.data))
		refs[n.acl]++
		if kind, _ := proto.ClassifyOwner(n.stat.EphemeralOwner); kind == proto.OwnerSession {
			owned++
			if _, ok := tr.owned[proto.SessionID(n.stat.EphemeralOwner)][i]; !ok {
				return fmt.Errorf("%s: not with its owner", path)
			}
		}
		if s, ok := slotOf(n); ok {
			if reapable[s] == nil {
				reapable[s] = map[uint32]struct{}{}
			}
			reapable[s][i] = struct{}{}
		}
		if prefix, name, ok := quotaNode(path); ok && name == quotaLimitsName {
			quotas[prefix] = struct{}{}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	inSets, slots, free := 0, 0, 0
	for _, s := range tr.owned {
		inSets += len(s)
	}
	for i := range tr.index.shards {
		for _, e := range tr.index.shards[i].slots {
			if e != 0 {
				slots++
			}
		}
	}
	for i := tr.free; i != none; i = tr.at(i).next {
		free++
	}
	for s, n := range refs {
		if s.refs != n {
			t.Fatalf("ACL %v has %d references, %d nodes have it", s.acl, s.refs, n)
		}
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"nodes", tr.nodes, nodes}, {"node count", tr.NodeCount(), nodes + 1}, {"index entries", slots, nodes - 1},
		{"used numbers", int(tr.used) - 1, nodes + free}, {"data size", tr.ApproximateDataSize(), size},
		{"ephemerals", tr.EphemeralCount(), owned}, {"ephemerals in sets", inSets, owned},
		{"ACL lists", len(tr.acls.sets), len(refs)}, {"digest", tr.Digest(), tr.DigestFull()},
		{"quotas", maps.Equal(tr.quotas, quotas), true}, {"reapable", reflect.DeepEqual(tr.reap.slots, reapable), true},
	} {
		if c.got != c.want {
			t.Fatalf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// The tree and its twin give the same replies, changes and states for any
// history; a failed command leaves no trace; a view stays as it was; a tree
// rebuilt from its nodes goes on as the old one would have.
func TestRandomHistoriesAgreeWithTheTwin(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	first := uint64(time.Now().UnixNano())
	for i := range uint64(16) {
		seeds = append(seeds, first+i)
	}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	t.Logf("seeds 1, 2, 3 and 16 from %d; replay one with -seed", first)
	for _, seed := range seeds {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runHistory(t, seed, 400) }) {
			return
		}
	}
}

func runHistory(t *testing.T, seed uint64, length int) {
	h := newHistory(seed)
	tr, tw := New(), newTwin()
	for _, r := range h.opening() {
		txn, body := h.txn(), r.Append(nil, proto.OpCreate)
		tr.Apply(txn, proto.OpCreate, body, nil)
		tw.apply(txn, proto.OpCreate, body)
	}
	var view *View
	var frozen string
	for i := range length {
		before := tr.Digest()
		txn := h.txn()
		if h.IntN(30) == 0 {
			got, want := tr.CloseSession(txn, nil), tw.closeSession(txn)
			if !sameChanges(got, want) {
				t.Fatalf("step %d: closing %v: changes\n%v, want\n%v", i, txn.Session, got, want)
			}
		} else {
			op, body := h.command()
			res, changes := tr.Apply(txn, op, body, nil)
			reply, code, want := tw.apply(txn, op, body)
			if res.Err != code || !bytes.Equal(AppendResult(nil, op, &res), reply) || !sameChanges(changes, want) {
				t.Fatalf("step %d: %v %q by %+v:\ngot  %+v %v\nwant %v %q %v", i, op, body, txn, res, changes, code, reply, want)
			}
			if res.Failed() && tr.Digest() != before {
				t.Fatalf("step %d: failed %v changed the digest", i, op)
			}
		}
		if got, want := dumpTree(tr), tw.dump(); got != want {
			t.Fatalf("step %d: tree\n%s\ntwin\n%s", i, got, want)
		}
		checkInvariants(t, tr)
		now, unused := int64(h.zxid)*7919+int64(h.IntN(600_000)), int64(h.IntN(3))*100_000
		if got, want := reapPaths(tr.Reapable(now, unused, 1000)), tw.reapable(now, unused); !slices.Equal(got, want) {
			t.Fatalf("step %d: reapable %v, want %v", i, got, want)
		}
		if tr.NodeCount() != tw.count() || !slices.Equal(tr.Ephemerals(txn.Session, "/"), tw.ephemerals(txn.Session)) {
			t.Fatalf("step %d: counts or ephemerals differ", i)
		}
		switch {
		case view == nil && h.IntN(10) == 0:
			view, frozen = tr.Freeze(), tw.dump()
		case view != nil && h.IntN(10) == 0:
			if got := dump(view); got != frozen {
				t.Fatalf("step %d: the view changed:\n%s\nwas\n%s", i, got, frozen)
			}
			view.Release()
			view = nil
		}
		if h.IntN(50) == 0 {
			next, err := rebuild(tr)
			if err != nil || next.Digest() != tr.Digest() {
				t.Fatalf("step %d: rebuilt: %v", i, err)
			}
			tr = next
		}
	}
}

func sameChanges(a, b []Change) bool {
	return slices.EqualFunc(a, b, func(x, y Change) bool {
		same := slices.Equal(x.ACL.acl, y.ACL.acl)
		x.ACL, y.ACL = nil, nil
		return same && x == y
	})
}

func reapPaths(list []Reap) []string {
	out := []string{}
	for _, r := range list {
		out = append(out, r.Path)
	}
	slices.Sort(out)
	return out
}
