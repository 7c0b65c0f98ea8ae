package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Case 13: which write changes which field of the parent and of the node. The
// table is the same for both servers, so the real one judges it.
func TestAChildsWritesChangeTheParentsStatAsInZooKeeper(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()
		for _, tc := range []struct {
			name     string
			write    func(parent string)
			cversion int32 // the parent's, how much it rises
			pzxid    bool  // whether the parent's changes
			children int32
		}{
			{"create", func(p string) { c.create(p+"/new", nil) }, 1, true, 1},
			{"delete", func(p string) { c.delete(p + "/old") }, 1, true, -1},
			{"set the child", func(p string) { c.set(p+"/old", []byte("x")) }, 0, false, 0},
			{"set the child's ACL", func(p string) {
				c.want(proto.ErrOK, proto.OpSetACL, proto.AppendInt(proto.AppendACLs(proto.AppendString(nil, p+"/old"), proto.OpenACL), -1))
			}, 0, false, 0},
			{"create a grandchild", func(p string) { c.create(p+"/old/g", nil) }, 0, false, 0},
			{"create and delete a grandchild", func(p string) { c.create(p+"/old/g", nil); c.delete(p + "/old/g") }, 0, false, 0},
			{"create a sequential child", func(p string) {
				c.want(proto.ErrOK, proto.OpCreate, createBody(proto.OpCreate, p+"/s-", nil, nil, 2))
			}, 1, true, 1},
			{"expire a session's ephemeral", func(p string) {
				e := openFor(t, s, 400*time.Millisecond)
				e.ephemeral(p + "/e")
				e.drop()
				c.until("expiry", func() bool { _, there := c.stat(p + "/e"); return !there })
			}, 2, true, 0},
		} {
			parent := top + "/" + strings.ReplaceAll(tc.name, " ", "-")
			c.create(parent, nil)
			c.create(parent+"/old", nil)
			before, _ := c.stat(parent)
			tc.write(parent)
			after, _ := c.stat(parent)
			want := before
			want.CVersion += tc.cversion
			want.NumChildren += tc.children
			if (after.Pzxid > before.Pzxid) != tc.pzxid {
				t.Errorf("%s: pzxid %v, then %v", tc.name, before.Pzxid, after.Pzxid)
			}
			want.Pzxid = after.Pzxid
			if after != want {
				t.Errorf("%s: the parent has %+v, want %+v", tc.name, after, want)
			}
		}
		before, _ := c.stat("/")
		c.create(top+"-root", nil)
		after, _ := c.stat("/")
		if after.CVersion <= before.CVersion || after.Pzxid <= before.Pzxid || after.Mzxid != before.Mzxid {
			t.Errorf("the root: %+v, then %+v", before, after)
		}
		now := time.Now().UnixMilli()
		if st, _ := c.stat(top + "-root"); st.Ctime < now-600000 || st.Ctime > now+600000 {
			t.Errorf("ctime %d is not in milliseconds: now is %d", st.Ctime, now)
		}
	})
}

// Case 14: ctime and mtime are stamped once, into the log.
func TestTimesAreTheSameAfterLogAndSnapshot(t *testing.T) {
	s := own(t, map[string]string{"snapCount": "40"})
	c := open(t, s)
	top := c.top()
	c.create(top+"/a", nil)
	c.set(top+"/a", []byte("x"))
	want := map[string]proto.Stat{}
	for _, p := range []string{top, top + "/a"} {
		want[p], _ = c.stat(p)
	}
	verify := func(when string) {
		t.Helper()
		c := open(t, s)
		for p, st := range want {
			if got, _ := c.stat(p); got != st {
				t.Errorf("%s: %s has %+v, want %+v", when, p, got, st)
			}
		}
	}
	s.Kill(t)
	s.Start(t)
	verify("from the log")
	fillSnapshots(t, s, open(t, s), 1)
	s.Restart(t)
	verify("from a snapshot")
}

// Case 19: a node changes hands in one multi, and the former owner's end does
// not undo it.
func TestAnEphemeralHandedOverInAMultiStaysWithItsNewOwner(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		b := open(t, s)
		top := b.top()
		a := openFor(t, s, 400*time.Millisecond)
		a.ephemeral(top + "/1")
		a.ephemeral(top + "/witness")
		if got := codes(b.multi(opDelete(top+"/1"), opCreate(proto.OpCreate, top+"/1", 1))); !slices.Equal(got, []proto.ErrCode{0, 0}) {
			t.Fatalf("results %v", got)
		}
		a.drop()
		b.until("the former owner's expiry", func() bool { _, there := b.stat(top + "/witness"); return !there })
		if st, there := b.stat(top + "/1"); !there || st.EphemeralOwner != int64(b.id) {
			t.Errorf("the node is there: %v, owner %x, want %v", there, st.EphemeralOwner, b.id)
		}
		got := codes(b.multi(opCreate(proto.OpCreate, top+"/a", 0), opCreate(proto.OpCreate, top+"/a/b", 0), opSet(top+"/a/b", nil), opDelete(top+"/a/b")))
		if !slices.Equal(got, []proto.ErrCode{0, 0, 0, 0}) {
			t.Errorf("operations in their order: %v", got)
		}
	})
}

// setQuota gives a path a hard limit of nodes and bytes.
func setQuota(c *session, path string, nodes, bytes int) {
	c.t.Helper()
	at := proto.PathQuota
	for _, name := range strings.Split(path[1:], "/") {
		at += "/" + name
		c.create(at, nil)
	}
	c.create(at+"/zookeeper_limits", fmt.Appendf(nil, "count=-1,bytes=-1;byteHardLimit=%d;countHardLimit=%d", bytes, nodes))
	c.create(at+"/zookeeper_stats", []byte("count=0,bytes=0"))
}

// Case 20: a quota sees what a multi is about to do, and its usage is right
// after a restart.
func TestAHardQuotaCountsWithinAMulti(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()
		setQuota(c, top, 5, 100)
		got := codes(c.multi(opCreate(proto.OpCreate, top+"/a", 0), opSet(top+"/a", []byte("12345"))))
		if !slices.Equal(got, []proto.ErrCode{0, 0}) {
			t.Errorf("create and set in one multi: %v", got)
		}
		for _, name := range []string{"b", "c", "d"} {
			c.create(top+"/"+name, nil)
		}
		c.want(proto.ErrQuotaExceeded, proto.OpCreate, createBody(proto.OpCreate, top+"/e", nil, nil, 0))
		c.want(proto.ErrQuotaExceeded, proto.OpSetData, setBody(top+"/a", make([]byte, 101), -1))
		c.delete(top + "/b")
		c.create(top+"/e", nil)
	})
}

func TestAQuotasUsageIsRightAfterARestartFromASnapshot(t *testing.T) {
	s := own(t, map[string]string{"snapCount": "40"})
	c := open(t, s)
	top := c.top()
	setQuota(c, top, 5, 100)
	for _, name := range []string{"a", "b", "c", "d"} {
		c.create(top+"/"+name, []byte("12"))
	}
	fillSnapshots(t, s, c, 1)
	s.Restart(t)
	c = open(t, s)
	usage := func() string { data, _ := c.get(proto.PathQuota + top + "/zookeeper_stats"); return string(data) }
	if got := usage(); !strings.HasPrefix(got, "count=5,bytes=8") {
		t.Errorf("usage %q after a restart", got)
	}
	c.want(proto.ErrQuotaExceeded, proto.OpCreate, createBody(proto.OpCreate, top+"/e", nil, nil, 0))
	c.delete(top + "/a")
	c.create(top+"/e", nil)
	for _, name := range []string{"b", "c", "d", "e"} {
		c.delete(top + "/" + name)
	}
	if got := usage(); !strings.HasPrefix(got, "count=1,bytes=0") {
		t.Errorf("usage %q with everything deleted", got)
	}
}

func TestAQuotaOnlyWarnsWhenItIsNotEnforced(t *testing.T) {
	s := own(t, map[string]string{"-Dzookeeper.enforceQuota": "false"})
	c := open(t, s)
	top := c.top()
	setQuota(c, top, 2, 100)
	for _, name := range []string{"a", "b", "c"} {
		c.create(top+"/"+name, nil)
	}
}

// Case 68: what operations.md offers in place of a limit of memory. A full hard quota
// refuses growth in so many words, and nothing else: reads, writes that do not grow
// and deletes pass, others are not concerned, and growth passes by itself once there
// is room, also where the limit was set below what was there already.
func TestAFullHardQuotaRefusesGrowthAndNothingElse(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top, elsewhere := c.top(), c.top()
		grows := func(want proto.ErrCode) {
			t.Helper()
			c.want(want, proto.OpCreate, createBody(proto.OpCreate, top+"/new", make([]byte, 300), nil, 0))
			c.want(want, proto.OpSetData, setBody(top+"/a", make([]byte, 700), -1))
			if want != proto.ErrOK {
				if got := codes(c.multi(opSet(elsewhere, []byte("x")), opSet(top+"/a", make([]byte, 700)))); got[1] != want {
					t.Errorf("growth in a multi: %v", got)
				}
			}
		}
		others := func() {
			t.Helper()
			if data, st := c.get(top + "/a"); len(data) != int(st.DataLength) || len(c.list(top)) == 0 {
				t.Errorf("reads below a full quota: %d bytes, %+v, %v", len(data), st, c.list(top))
			}
			c.set(top+"/a", make([]byte, 400)) // as long as it is
			c.set(elsewhere, make([]byte, 2000))
			c.create(elsewhere+"/n", nil)
			c.delete(elsewhere + "/n")
		}
		setQuota(c, top, 100, 1000)
		c.create(top+"/a", make([]byte, 400))
		c.create(top+"/b", make([]byte, 350))
		c.create(top+"/c", make([]byte, 240))
		grows(proto.ErrQuotaExceeded)
		others()
		c.delete(top + "/b")
		c.delete(top + "/c")
		grows(proto.ErrOK)

		c.set(top+"/a", make([]byte, 100))
		c.delete(top + "/new")
		for n := range 4 {
			c.create(fmt.Sprintf("%s/%d", top, n), nil)
		}
		c.set(proto.PathQuota+top+"/zookeeper_limits", []byte("count=-1,bytes=-1;byteHardLimit=50;countHardLimit=3"))
		c.want(proto.ErrQuotaExceeded, proto.OpCreate, createBody(proto.OpCreate, top+"/5", nil, nil, 0))
		c.want(proto.ErrQuotaExceeded, proto.OpSetData, setBody(top+"/a", make([]byte, 101), -1))
		c.set(top+"/a", make([]byte, 100)) // as long as it is
		for n := range 4 {
			c.delete(fmt.Sprintf("%s/%d", top, n))
		}
		c.create(top+"/5", nil)
	})
}
