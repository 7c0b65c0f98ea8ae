package watch

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random history of this seed")

func newManager() *Manager { return New(NewMetrics(metrics.NewRegistry())) }

// listener is a Watcher that keeps what it is told.
type listener struct {
	name  string
	heard []string
	gone  atomic.Bool
}

func (l *listener) Notify(e proto.WatcherEvent, zxid proto.Zxid, acl ACL) {
	entries, _ := acl.(list)
	l.heard = append(l.heard, fmt.Sprintf("%v %s %d %d %d", e.Type, e.Path, e.State, zxid, len(entries)))
}

// list is an ACL that nobody asks.
type list []proto.ACL

func (list) Allowed(int32, []proto.ID) bool { return false }

func (l *listener) Gone() bool { return l.gone.Load() }

// twin is a Manager that looks at every watcher for every event. It is written
// from ZooKeeper's description of its watches.
type twin map[*listener]map[string]*held

// held is what one watcher has on one path.
type held struct {
	standardData, standardChild, persistent, recursive bool
}

func (h *held) empty() bool { return *h == held{} }

func (w twin) at(l *listener, path string) *held {
	if w[l] == nil {
		w[l] = map[string]*held{}
	}
	if w[l][path] == nil {
		w[l][path] = &held{}
	}
	return w[l][path]
}

// inherits tells whether a recursive watch at the path or above covers it.
func (w twin) inherits(l *listener, path string) bool {
	for p, h := range w[l] {
		if h.recursive && (p == path || p == "/" || strings.HasPrefix(path, p+"/")) {
			return true
		}
	}
	return false
}

// fire returns those who are told, and spends their standard watches.
func (w twin) fire(e proto.EventType, path string) map[*listener]bool {
	told := map[*listener]bool{}
	for l := range w {
		h := w.at(l, path)
		data := h.standardData || h.persistent || w.inherits(l, path)
		child := h.standardChild || h.persistent
		switch e {
		case proto.EventNodeChildrenChanged:
			told[l] = child
			h.standardChild = false
		case proto.EventNodeDeleted:
			told[l] = data || child
			h.standardData, h.standardChild = false, false
		default:
			told[l] = data
			h.standardData = false
		}
	}
	return told
}

func (w twin) has(l *listener, path string, t proto.WatcherType) bool {
	h := w.at(l, path)
	switch t {
	case proto.WatcherChildren:
		return h.standardChild
	case proto.WatcherData:
		return h.standardData
	case proto.WatcherPersistent:
		return h.persistent
	case proto.WatcherPersistentRecursive:
		return h.recursive
	}
	return !h.empty()
}

func (w twin) remove(l *listener, path string, t proto.WatcherType) {
	h := w.at(l, path)
	switch t {
	case proto.WatcherChildren:
		h.standardChild = false
	case proto.WatcherData:
		h.standardData = false
	case proto.WatcherPersistent:
		h.persistent = false
	case proto.WatcherPersistentRecursive:
		h.recursive = false
	default:
		*h = held{}
	}
}

// count returns what wchs shows of the data table, and the pairs of both.
func (w twin) count() (s Summary, pairs int) {
	paths := map[string]bool{}
	for l := range w {
		some := false
		for p, h := range w[l] {
			if h.standardData || h.persistent || h.recursive {
				s.Watches++
				some, paths[p] = true, true
			}
			if h.standardChild || h.persistent {
				pairs++
			}
		}
		if some {
			s.Watchers++
		}
	}
	s.Paths = len(paths)
	return s, pairs + s.Watches
}

func TestTheManagerDoesWhatItsTwinDoes(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	first := uint64(time.Now().UnixNano())
	for i := range uint64(60) {
		seeds = append(seeds, first+i)
	}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	t.Logf("seeds 1, 2, 3 and 60 from %d; replay one with -seed", first)
	for _, seed := range seeds {
		runHistory(t, seed, 800)
	}
}

var paths = []string{"/", "/a", "/a/b", "/a/b/c", "/a/bb", "/b", "/aa", "/a/b/c/d"}

var types = []proto.WatcherType{proto.WatcherChildren, proto.WatcherData, proto.WatcherAny, proto.WatcherPersistent, proto.WatcherPersistentRecursive}

var events = []proto.EventType{proto.EventNodeCreated, proto.EventNodeDeleted, proto.EventNodeDataChanged, proto.EventNodeChildrenChanged}

func runHistory(t *testing.T, seed uint64, length int) {
	r := rand.New(rand.NewPCG(seed, 0))
	m, w := newManager(), twin{}
	listeners := make([]*listener, 5)
	for i := range listeners {
		listeners[i] = &listener{name: fmt.Sprint(i)}
	}
	for step := range length {
		i := r.IntN(len(listeners))
		l, path := listeners[i], paths[r.IntN(len(paths))]
		switch r.IntN(10) {
		case 0, 1:
			m.AddData(path, l)
			w.at(l, path).standardData = true
		case 2, 3:
			m.AddChild(path, l)
			w.at(l, path).standardChild = true
		case 4:
			m.AddPersistent(path, l)
			w.at(l, path).persistent = true
		case 5:
			m.AddRecursive(path, l)
			w.at(l, path).recursive = true
		case 6:
			kind := types[r.IntN(len(types))]
			want := w.has(l, path, kind)
			if got := m.Contains(path, kind, l); got != want {
				t.Fatalf("seed %d, step %d: %s has type %d on %s: %t, want %t", seed, step, l.name, kind, path, got, want)
			}
			if r.IntN(2) == 0 {
				w.remove(l, path, kind)
				if got := m.Remove(path, kind, l); got != want {
					t.Fatalf("seed %d, step %d: removed type %d of %s on %s: %t, want %t", seed, step, kind, l.name, path, got, want)
				}
			}
		case 7:
			if r.IntN(10) == 0 {
				l.gone.Store(true)
				m.AddRecursive(path, l) // too late
				m.Forget(l)
				m.AddPersistent(path, l) // too late as well
				delete(w, l)
				listeners[i] = &listener{name: l.name + "'"}
			}
		default:
			e := events[r.IntN(len(events))]
			fireBoth(t, fmt.Sprintf("seed %d, step %d", seed, step), m, w, listeners, e, path, proto.Zxid(step))
		}
		want, pairs := w.count()
		if got := m.DataSummary(); got != want || m.Count() != pairs {
			t.Fatalf("seed %d, step %d: %+v and %d pairs, want %+v and %d", seed, step, got, m.Count(), want, pairs)
		}
	}
	checkListing(t, m, w)
}

// fireBoth fires an event at both and compares who was told what.
func fireBoth(t *testing.T, where string, m *Manager, w twin, all []*listener, e proto.EventType, path string, zxid proto.Zxid) {
	told := w.fire(e, path)
	for _, l := range all {
		l.heard = nil
	}
	m.Fire(Trigger{Type: e, Path: path, ACL: list(proto.OpenACL)}, zxid)
	for _, l := range all {
		var want []string
		if told[l] {
			want = []string{fmt.Sprintf("%v %s 3 %d 1", e, path, zxid)}
		}
		if !slices.Equal(l.heard, want) {
			t.Fatalf("%s: %s heard %q, want %q", where, l.name, l.heard, want)
		}
	}
}

// checkListing compares what wchc and wchp list.
func checkListing(t *testing.T, m *Manager, w twin) {
	var got, want []string
	m.EachData(func(l Watcher, path string) { got = append(got, l.(*listener).name+" "+path) })
	for l := range w {
		for p, h := range w[l] {
			if h.standardData || h.persistent || h.recursive {
				want = append(want, l.name+" "+p)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}
