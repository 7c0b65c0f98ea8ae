package tree

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Views are walked in other goroutines while the tree is written; run with the
// race detector.
func TestViewsStayAsTheyWereWhileTheTreeIsWritten(t *testing.T) {
	h := newHistory(7)
	h.calm = true
	tr := New()
	for i := range 2000 {
		body := (&proto.CreateRequest{Path: fmt.Sprintf("/n%04d", i), ACL: proto.OpenACL}).Append(nil, proto.OpCreate)
		tr.Apply(h.txn(), proto.OpCreate, body, nil)
	}
	var walkers sync.WaitGroup
	for range 20 {
		v := tr.Freeze()
		want, digest := dump(v), tr.Digest()
		walkers.Go(func() {
			defer v.Release()
			for range 3 {
				if got := dump(v); got != want || v.DigestFull() != digest {
					t.Error("a view changed")
				}
				runtime.Gosched()
			}
		})
		for range 100 {
			op, body := h.command()
			tr.Apply(h.txn(), op, body, nil)
			path := fmt.Sprintf("/n%04d", h.IntN(2000))
			tr.Apply(h.txn(), proto.OpSetData, (&proto.SetDataRequest{Path: path, Data: []byte("new"), Version: -1}).Append(nil), nil)
			path = fmt.Sprintf("/n%04d", h.IntN(2000))
			tr.Apply(h.txn(), proto.OpDelete, (&proto.PathVersion{Path: path, Version: -1}).Append(nil), nil)
		}
	}
	walkers.Wait()
	checkInvariants(t, tr)
	if n := tr.views.Load(); n != 0 {
		t.Errorf("%d views are counted as living", n)
	}
}

func TestAChunkIsCopiedOnceForAViewAndNotAfterItsRelease(t *testing.T) {
	tr := New()
	set := func() {
		tr.Apply(Txn{Zxid: 1}, proto.OpSetData, (&proto.SetDataRequest{Path: "/", Version: -1}).Append(nil), nil)
	}
	first := tr.chunks[0]
	set()
	if tr.chunks[0] != first {
		t.Error("copied without a view")
	}
	v := tr.Freeze()
	set()
	second := tr.chunks[0]
	if second == first {
		t.Error("not copied for the view")
	}
	set()
	if tr.chunks[0] != second {
		t.Error("copied twice for one view")
	}
	w := tr.Freeze()
	set()
	third := tr.chunks[0]
	if third == second {
		t.Error("not copied for the second view")
	}
	v.Release()
	v.Release()
	set()
	w.Release()
	set()
	if tr.chunks[0] != third || tr.views.Load() != 0 {
		t.Error("copied after the release")
	}
}

func TestAViewYieldsParentsFirstAndStopsAtAnError(t *testing.T) {
	s := newScript()
	for _, l := range []string{"create /b x", "create /b/c x", "create /b/c/d x", "create /a x", "create /b/e x"} {
		s.run(l)
	}
	v := s.tree.Freeze()
	defer v.Release()
	seen := map[string]bool{}
	if err := v.Nodes(func(path string, _ []byte, _ []proto.ACL, _ proto.StatPersisted) error {
		if path != "/" && !seen[twinParent(path)] {
			return fmt.Errorf("%s before its parent", path)
		}
		if len(seen) == 0 && path != "/" {
			return fmt.Errorf("first is %s", path)
		}
		seen[path] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != v.NodeCount() || len(seen) != s.tree.NodeCount()-1 {
		t.Errorf("%d nodes, want %d", len(seen), v.NodeCount())
	}
	stop := errors.New("stop")
	calls := 0
	if err := v.Nodes(func(string, []byte, []proto.ACL, proto.StatPersisted) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestBuilderRefusesWhatIsNoTree(t *testing.T) {
	for _, c := range []struct {
		name  string
		paths []string
		want  error
	}{
		{"a node before its parent", []string{"/", "/a/b"}, ErrNoParent},
		{"a node twice", []string{"/", "/a", "/a"}, ErrDuplicate},
		{"the root twice", []string{"", "/"}, ErrDuplicate},
		{"the root after others", []string{"/a", "/"}, ErrDuplicate},
		{"a path without slash", []string{"a"}, ErrPath},
		{"a path that ends in a slash", []string{"/a", "/a/"}, ErrPath},
		{"an empty segment", []string{"/a", "/a//b"}, ErrNoParent},
	} {
		b := NewBuilder()
		var err error
		for _, p := range c.paths {
			if err = b.Add(p, nil, nil, proto.StatPersisted{}); err != nil {
				break
			}
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestBuilderRefusesChildrenOfEphemerals(t *testing.T) {
	for owner, want := range map[int64]error{7: ErrEphemeralParent, 0: nil, proto.ContainerOwner: nil, proto.TTLOwner(5): nil} {
		b := NewBuilder()
		if err := b.Add("/e", nil, nil, proto.StatPersisted{EphemeralOwner: owner}); err != nil {
			t.Fatal(err)
		}
		if err := b.Add("/e/c", nil, nil, proto.StatPersisted{}); !errors.Is(err, want) {
			t.Errorf("owner %x: %v, want %v", owner, err, want)
		}
	}
}

func TestBuilderAddsWhatEveryServerHas(t *testing.T) {
	b := NewBuilder()
	tr, err := b.Tree()
	if err != nil || dumpTree(tr) != dumpTree(New()) || tr.Digest() != New().Digest() {
		t.Errorf("an empty snapshot: %v\n%s", err, dumpTree(tr))
	}
	checkInvariants(t, tr)
	b = NewBuilder()
	for _, p := range []string{"", "/zookeeper"} {
		if err := b.Add(p, []byte("d"), []proto.ACL{}, proto.StatPersisted{Version: 3}); err != nil {
			t.Fatal(err)
		}
	}
	tr, err = b.Tree()
	if err != nil || tr.NodeCount() != 5 {
		t.Fatalf("%v, %d nodes", err, tr.NodeCount())
	}
	if data, st, code := tr.Get(Reader{}, "/zookeeper"); string(data) != "d" || st.Version != 3 || code != proto.ErrOK {
		t.Errorf("an empty ACL list must allow everything: %q %+v %v", data, st, code)
	}
	checkInvariants(t, tr)
}

// Case 20: usage after a restart.
func TestQuotaUsageComesFromTheSnapshotOrARecount(t *testing.T) {
	s := newScript()
	for _, l := range []string{
		"create /q abc", "create /q/a de", "create /zookeeper/quota/q null",
		"create /zookeeper/quota/q/zookeeper_limits count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=3",
		"create /zookeeper/quota/q/zookeeper_stats null",
	} {
		s.run(l)
	}
	stats := func() string {
		data, _, _ := s.tree.Get(Reader{}, "/zookeeper/quota/q/zookeeper_stats")
		return string(data)
	}
	if got := stats(); got != "count=2,bytes=5" {
		t.Fatalf("stats %s", got)
	}
	s.run("set /zookeeper/quota/q/zookeeper_stats count=3,bytes=50")
	for _, c := range []struct {
		recount bool
		stats   string
		create  string
	}{{false, "count=3,bytes=50", "-125"}, {true, "count=2,bytes=5", "ok /q/b"}} {
		b := NewBuilder()
		b.Recount = c.recount
		v := s.tree.Freeze()
		if err := v.Nodes(b.Add); err != nil {
			t.Fatal(err)
		}
		v.Release()
		s.tree, _ = b.Tree()
		checkInvariants(t, s.tree)
		if got := stats(); got != c.stats {
			t.Errorf("recount %v: %s, want %s", c.recount, got, c.stats)
		}
		if got := s.run("create /q/b x")[0]; got != c.create {
			t.Errorf("recount %v: create %s, want %s", c.recount, got, c.create)
		}
	}
	s.run("delete /q/b")
	s.run("delete /q/a")
	s.run("delete /q")
	if got := stats(); got != "count=0,bytes=0" {
		t.Errorf("stats %s after all is gone", got)
	}
}
