package cases

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// recursive and persistent are the modes of addWatch.
const (
	persistent int32 = 0
	recursive  int32 = 1
)

func (s *session) addWatch(path string, mode int32) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpAddWatch, proto.AppendInt(proto.AppendString(nil, path), mode))
}

func (s *session) watchData(path string) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpGetData, readBody(path, true))
}

func (s *session) watchChildren(path string) {
	s.t.Helper()
	s.want(proto.ErrOK, proto.OpGetChildren, readBody(path, true))
}

// Case 17: a multi that fails fires nothing; one that succeeds fires once.
func TestAMultiFiresWatchesOnlyWhenItSucceeds(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		w, c := open(t, s), open(t, s)
		top := c.top()
		w.watchData(top)
		w.watchChildren(top)
		before, _ := c.stat(top)
		failed := codes(c.multi(opCreate(proto.OpCreate, top+"/x", 0), opCreate(proto.OpCreate, top, 0), opSet(top, nil)))
		if want := []proto.ErrCode{0, proto.ErrNodeExists, proto.ErrRuntimeInconsistency}; !slices.Equal(failed, want) {
			t.Errorf("results %v, want %v", failed, want)
		}
		w.wantEvents()
		if after, _ := c.stat(top); after != before {
			t.Errorf("a failed multi changed %+v to %+v", before, after)
		}
		c.multi(opCreate(proto.OpCreate, top+"/x", 0), opSet(top, []byte("y")), opDelete(top+"/x"))
		w.wantEvents("4 "+top, "3 "+top)
		c.set(top, nil)
		c.create(top+"/later", nil)
		w.wantEvents()
	})
}

// Case 22: an event names the node that changed, not the one that is watched.
func TestRecursiveEventsNameTheChangedNode(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		w, c := open(t, s), open(t, s)
		top := c.top()
		c.create(top+"/b", nil)
		w.addWatch(top, recursive)
		node := top + "/b/c"
		c.create(node, nil)
		c.set(node, []byte("x"))
		c.delete(node)
		w.wantEvents("1 "+node, "3 "+node, "2 "+node)
	})
}

// Case 22: a cache that follows the events equals the tree.
func TestACacheFedByRecursiveEventsEqualsTheTree(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		w, c := open(t, s), open(t, s)
		top := c.top()
		w.addWatch(top, recursive)
		var nodes []string
		for i := range 1000 {
			path := top
			if len(nodes) > 0 && i%3 > 0 {
				path = nodes[(i*7919)%len(nodes)]
			}
			switch {
			case i%7 < 4:
				if len(path)-len(top) < 40 {
					path += "/" + strconv.Itoa(i)
					c.create(path, nil)
					nodes = append(nodes, path)
				}
			case i%7 < 5:
				c.set(path, []byte(strconv.Itoa(i)))
			case path != top && len(c.list(path)) == 0:
				c.delete(path)
				nodes = slices.DeleteFunc(nodes, func(n string) bool { return n == path })
			}
		}
		cache := map[string]bool{}
		w.want(proto.ErrOK, proto.OpSync, proto.AppendString(nil, "/"))
		for _, e := range w.events {
			switch e.Type {
			case created, changed:
				cache[e.Path] = true
			case deleted:
				delete(cache, e.Path)
			}
		}
		delete(cache, top)
		if len(cache) != len(nodes) {
			t.Errorf("the cache has %d nodes, the tree %d", len(cache), len(nodes))
		}
		for _, n := range nodes {
			if !cache[n] {
				t.Errorf("the cache lacks %s", n)
			}
		}
	})
}

// Case 23: a recursive watch never hears that children changed.
func TestARecursiveWatchGetsNoChildrenChanged(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		w, c := open(t, s), open(t, s)
		top := c.top()
		c.create(top+"/b", nil)
		w.addWatch(top, recursive)
		c.create(top+"/b/c", nil)
		c.delete(top + "/b/c")
		w.wantEvents("1 "+top+"/b/c", "2 "+top+"/b/c")
		w.watchChildren(top + "/b")
		c.create(top+"/b/c", nil)
		got := w.seen()
		slices.Sort(got)
		if want := []string{"1 " + top + "/b/c", "4 " + top + "/b"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// Case 25: what a client missed while it was away, for each kind of watch and
// each thing that may have happened to the node.
func TestSetWatchesTellsExactlyWhatWasMissed(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()
		node := func(name string) string { return top + "/" + name }
		for _, name := range []string{"same", "changed", "deleted", "child-added", "child-removed"} {
			c.create(node(name), nil)
		}
		c.create(node("child-removed")+"/x", nil)
		seen := c.set(top, nil).Mzxid
		c.set(node("changed"), []byte("x"))
		c.delete(node("deleted"))
		c.create(node("child-added")+"/x", nil)
		c.delete(node("child-removed") + "/x")
		c.create(node("created"), nil)

		for _, tc := range []struct {
			kind int // 0 data, 1 exists, 2 child
			name string
			want string // the event, or "armed" when there is none yet
		}{
			{0, "same", "armed"}, {0, "changed", "3"}, {0, "deleted", "2"}, {0, "child-added", "armed"}, {0, "child-removed", "armed"},
			{1, "never", "armed"}, {1, "deleted", "armed"}, {1, "created", "1"}, {1, "same", "1"},
			{2, "same", "armed"}, {2, "changed", "armed"}, {2, "deleted", "2"}, {2, "child-added", "4"}, {2, "child-removed", "4"},
		} {
			w := open(t, s)
			lists := [3][]string{{}, {}, {}}
			lists[tc.kind] = []string{node(tc.name)}
			body := proto.AppendLong(nil, int64(seen))
			for _, l := range lists {
				body = proto.AppendStrings(body, l)
			}
			if err := w.conn.SendRequest(proto.XidSetWatches, proto.OpSetWatches, body); err != nil {
				t.Fatal(err)
			}
			if h, _ := w.reply(); h.Xid != proto.XidSetWatches || h.Err != proto.ErrOK {
				t.Fatalf("kind %d, %s: reply %+v", tc.kind, tc.name, h)
			}
			if tc.want != "armed" {
				w.wantEvents(tc.want + " " + node(tc.name))
				continue
			}
			w.wantEvents()
			check := proto.AppendInt(proto.AppendString(nil, node(tc.name)), []int32{2, 2, 1}[tc.kind])
			w.want(proto.ErrOK, proto.OpCheckWatches, check)
		}
	})
}

func TestOneSetWatchesWithAllListsAnswersEach(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c, w := open(t, s), open(t, s)
		top := c.top()
		seen := c.set(top, nil).Mzxid
		c.create(top+"/new", nil)
		c.set(top, []byte("x"))
		body := proto.AppendLong(nil, int64(seen))
		body = proto.AppendStrings(body, []string{top, top + "/gone"})
		body = proto.AppendStrings(body, []string{top + "/new", top + "/never"})
		body = proto.AppendStrings(body, []string{top, top + "/new"})
		if err := w.conn.SendRequest(proto.XidSetWatches, proto.OpSetWatches, body); err != nil {
			t.Fatal(err)
		}
		w.reply()
		got := w.seen()
		slices.Sort(got)
		if want := []string{"1 " + top + "/new", "2 " + top + "/gone", "3 " + top, "4 " + top, "4 " + top + "/new"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// Case 26: a client with very many watches comes back: it sends them in
// frames below the limit, and each is acknowledged.
func TestVeryManyWatchesAreRegisteredAgainInSeveralFrames(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c, w := open(t, s), open(t, s)
		top := c.top()
		zxid := c.set(top, nil).Mzxid
		const frames, each = 5, 8000
		for f := range frames {
			paths := make([]string, each)
			for i := range paths {
				paths[i] = fmt.Sprintf("%s/%s-%d-%d", top, strings.Repeat("x", 70), f, i)
			}
			body := proto.AppendStrings(proto.AppendStrings(proto.AppendLong(nil, int64(zxid)), []string{}), paths)
			if err := w.conn.SendRequest(proto.XidSetWatches, proto.OpSetWatches, proto.AppendStrings(body, []string{})); err != nil {
				t.Fatal(err)
			}
			if h, _ := w.reply(); h.Xid != proto.XidSetWatches || h.Err != proto.ErrOK {
				t.Fatalf("frame %d: %+v", f, h)
			}
		}
		last := fmt.Sprintf("%s/%s-%d-%d", top, strings.Repeat("x", 70), frames-1, each-1)
		c.create(last, nil)
		w.wantEvents("1 " + last)

		tooLong := open(t, s)
		// The server may close before all of it is written.
		_ = tooLong.conn.SendRequest(proto.XidSetWatches, proto.OpSetWatches, make([]byte, 4<<20))
		tooLong.wantClosed()
	})
}

// watchCount asks the server how many watches it has.
func watchCount(t *testing.T, s *peer.Server) int {
	t.Helper()
	text, err := peer.Word(s.Address, "mntr")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(text, "zk_watch_count\t")
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(line)
	if !found || err != nil {
		t.Fatalf("mntr has no zk_watch_count:\n%s", text)
	}
	return n
}

// Case 28: watches go with their connection, and one that is set again counts
// once.
func TestWatchesGoWithTheirConnection(t *testing.T) {
	s := own(t, nil)
	c := open(t, s)
	top := c.top()
	for range 20 {
		w := open(t, s)
		for i := range 1000 {
			w.send(proto.OpExists, readBody(fmt.Sprintf("%s/missing-%d", top, i), true))
		}
		for range 1000 {
			w.reply()
		}
		w.drop()
	}
	c.until("the last watch's end", func() bool { c.ping(); return watchCount(t, s) == 0 })
	before := residentKiB(t, s)
	for range 200 {
		for range 1000 {
			c.send(proto.OpGetData, readBody(top, true))
		}
		for range 1000 {
			c.reply()
		}
	}
	if n := watchCount(t, s); n != 1 {
		t.Errorf("%d watches, want 1", n)
	}
	if after := residentKiB(t, s); after > before+64<<10 {
		t.Errorf("resident memory grew from %d to %d KiB", before, after)
	}
}

// Case 29: an event must not name a node that its watcher may not read.
func TestEventsAboutProtectedNodesAreKeptFromOthers(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		owner, stranger := open(t, s), open(t, s)
		owner.auth("u:secret")
		top := owner.top()
		owner.addWatch(top, recursive)
		stranger.addWatch(top, recursive)
		node := top + "/secret"
		owner.createWith([]proto.ACL{authACL(proto.PermAll)}, node)
		owner.set(node, []byte("y"))
		owner.delete(node)
		owner.wantEvents("1 "+node, "3 "+node, "2 "+node)
		stranger.wantEvents()
		owner.create(top+"/open", nil)
		stranger.wantEvents("1 " + top + "/open")
	})
}
