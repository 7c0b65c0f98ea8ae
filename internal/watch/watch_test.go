package watch

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// script fires the triggers of a change, as the tree reports them.
func script(m *Manager, lines ...string) {
	for i, line := range lines {
		var name, path string
		if _, err := fmt.Sscan(line, &name, &path); err != nil {
			panic(err)
		}
		for _, e := range events {
			if e.String() == "Node"+name {
				m.Fire(Trigger{Type: e, Path: path}, proto.Zxid(i))
			}
		}
	}
}

func heard(l *listener) []string {
	out := make([]string, len(l.heard))
	for i, line := range l.heard {
		var name, path string
		_, _ = fmt.Sscan(line, &name, &path) // Notify wrote it
		out[i] = name[len("Node"):] + " " + path
	}
	return out
}

func TestWatchesFireAsZooKeepersDo(t *testing.T) {
	create := func(parent, path string) []string { return []string{"Created " + path, "ChildrenChanged " + parent} }
	remove := func(parent, path string) []string { return []string{"Deleted " + path, "ChildrenChanged " + parent} }
	for _, c := range []struct {
		name  string
		add   func(m *Manager, l *listener)
		fire  []string
		want  []string
		count int // pairs left
	}{
		{"a data watch fires once", func(m *Manager, l *listener) { m.AddData("/a", l) },
			[]string{"DataChanged /a", "DataChanged /a"}, []string{"DataChanged /a"}, 0},
		{"a data watch hears nothing of children", func(m *Manager, l *listener) { m.AddData("/a", l) },
			slices.Concat(create("/a", "/a/b"), remove("/a", "/a/b")), []string{}, 1},
		{"a watch on a node that is missing fires at its creation", func(m *Manager, l *listener) { m.AddData("/a", l) },
			create("/", "/a"), []string{"Created /a"}, 0},
		{"a child watch fires once, for children and for the end of the node", func(m *Manager, l *listener) { m.AddChild("/a", l) },
			slices.Concat(create("/a", "/a/b"), remove("/a", "/a/b")), []string{"ChildrenChanged /a"}, 0},
		{"a child watch hears the deletion of its node", func(m *Manager, l *listener) { m.AddChild("/a", l) },
			remove("/", "/a"), []string{"Deleted /a"}, 0},
		{"data and child watch of one node hear its deletion once, and both are spent",
			func(m *Manager, l *listener) { m.AddData("/a", l); m.AddChild("/a", l) },
			append(remove("/", "/a"), "ChildrenChanged /a", "DataChanged /a"), []string{"Deleted /a"}, 0},
		{"a persistent watch stays and hears of children", func(m *Manager, l *listener) { m.AddPersistent("/a", l) },
			slices.Concat(create("/", "/a"), create("/a", "/a/b"), []string{"DataChanged /a", "DataChanged /a/b"}, remove("/", "/a")),
			[]string{"Created /a", "ChildrenChanged /a", "DataChanged /a", "Deleted /a"}, 2},
		{"case 22: a recursive watch hears of the changed node by its own path", func(m *Manager, l *listener) { m.AddRecursive("/a", l) },
			slices.Concat(create("/a/b", "/a/b/c"), []string{"DataChanged /a/b/c"}, remove("/a/b", "/a/b/c")),
			[]string{"Created /a/b/c", "DataChanged /a/b/c", "Deleted /a/b/c"}, 1},
		{"case 23: a recursive watch never hears of children", func(m *Manager, l *listener) { m.AddRecursive("/a", l) },
			slices.Concat(create("/a", "/a/b"), create("/a/b", "/a/b/c"), []string{"ChildrenChanged /a"}),
			[]string{"Created /a/b", "Created /a/b/c"}, 1},
		{"case 23: a child watch below it adds one event, and nothing comes twice",
			func(m *Manager, l *listener) { m.AddRecursive("/a", l); m.AddChild("/a/b", l) },
			slices.Concat(create("/a/b", "/a/b/c"), remove("/a/b", "/a/b/c"), []string{"Deleted /a/b"}),
			[]string{"Created /a/b/c", "ChildrenChanged /a/b", "Deleted /a/b/c", "Deleted /a/b"}, 1},
		{"a recursive watch does not cover names that only begin alike", func(m *Manager, l *listener) { m.AddRecursive("/a", l) },
			[]string{"Created /ab", "DataChanged /aa/b", "Deleted /"}, []string{}, 1},
		{"a recursive watch on the root covers all", func(m *Manager, l *listener) { m.AddRecursive("/", l) },
			[]string{"DataChanged /", "Created /x", "Deleted /x/y/z"}, []string{"DataChanged /", "Created /x", "Deleted /x/y/z"}, 1},
		{"recursive watches at several heights tell once",
			func(m *Manager, l *listener) {
				m.AddRecursive("/", l)
				m.AddRecursive("/a", l)
				m.AddRecursive("/a/b", l)
			},
			[]string{"Created /a/b"}, []string{"Created /a/b"}, 3},
		{"all modes on one path tell once, and only the standard ones are spent",
			func(m *Manager, l *listener) {
				m.AddData("/a", l)
				m.AddChild("/a", l)
				m.AddPersistent("/a", l)
				m.AddRecursive("/a", l)
			},
			[]string{"DataChanged /a", "ChildrenChanged /a", "Deleted /a", "Created /a"},
			[]string{"DataChanged /a", "ChildrenChanged /a", "Deleted /a", "Created /a"}, 2},
	} {
		m, l := newManager(), &listener{name: "l"}
		c.add(m, l)
		script(m, c.fire...)
		if got := heard(l); !slices.Equal(got, c.want) {
			t.Errorf("%s: heard %q, want %q", c.name, got, c.want)
		}
		if got := m.Count(); got != c.count {
			t.Errorf("%s: %d watches left, want %d", c.name, got, c.count)
		}
	}
}

func TestModesOfOnePathAreRemovedByTheirType(t *testing.T) {
	for _, c := range []struct {
		remove proto.WatcherType
		left   []proto.WatcherType
	}{
		{proto.WatcherChildren, []proto.WatcherType{proto.WatcherData, proto.WatcherPersistent, proto.WatcherPersistentRecursive}},
		{proto.WatcherData, []proto.WatcherType{proto.WatcherChildren, proto.WatcherPersistent, proto.WatcherPersistentRecursive}},
		{proto.WatcherPersistent, []proto.WatcherType{proto.WatcherChildren, proto.WatcherData, proto.WatcherPersistentRecursive}},
		{proto.WatcherPersistentRecursive, []proto.WatcherType{proto.WatcherChildren, proto.WatcherData, proto.WatcherPersistent}},
		{proto.WatcherAny, nil},
	} {
		m, l, other := newManager(), &listener{}, &listener{}
		for _, w := range []*listener{l, other} {
			m.AddData("/a", w)
			m.AddChild("/a", w)
			m.AddPersistent("/a", w)
			m.AddRecursive("/a", w)
		}
		if m.Remove("/b", c.remove, l) || !m.Remove("/a", c.remove, l) || m.Remove("/a", c.remove, l) {
			t.Errorf("type %d: removed from a path without it, not at all, or twice", c.remove)
		}
		for _, kind := range types[:2] {
			if want := slices.Contains(c.left, kind); m.Contains("/a", kind, l) != want {
				t.Errorf("type %d removed: type %d held %t", c.remove, kind, !want)
			}
		}
		if got := m.Contains("/a", proto.WatcherAny, l); got != (c.left != nil) {
			t.Errorf("type %d removed: any held %t", c.remove, got)
		}
		for _, kind := range types {
			if !m.Contains("/a", kind, other) {
				t.Errorf("type %d removed: another watcher lost type %d", c.remove, kind)
			}
		}
	}
}

// Case 28: 14 million watches were counted for 18 connections.
func TestWatchesAreCountedOnceAndGoWithTheirConnection(t *testing.T) {
	m := newManager()
	for range 100 {
		l := &listener{}
		for i := range 1000 {
			m.AddData(fmt.Sprintf("/missing/%d", i), l)
		}
		l.gone.Store(true)
		m.Forget(l)
	}
	if m.Count() != 0 || len(m.data.byPath) != 0 || len(m.data.byWatcher) != 0 {
		t.Errorf("%d watches, %d paths, %d watchers left", m.Count(), len(m.data.byPath), len(m.data.byWatcher))
	}
	l := &listener{}
	m.AddData("/a", l)
	if allocs := testing.AllocsPerRun(1_000_000, func() { m.AddData("/a", l) }); allocs != 0 {
		t.Errorf("adding a watch again allocates %v times", allocs)
	}
	if got, want := m.DataSummary(), (Summary{Watchers: 1, Paths: 1, Watches: 1}); got != want {
		t.Errorf("%+v after a million times, want %+v", got, want)
	}
	m.Remove("/a", proto.WatcherData, l)
	if m.Count() != 0 || len(m.data.byPath) != 0 || len(m.data.byWatcher) != 0 {
		t.Errorf("%d watches left", m.Count())
	}
}

// A connection may go while its last reads and a change are under way: nothing
// of it may stay. The race detector judges the rest.
func TestNothingIsLeftOfWatchersThatGoWhileTheyAdd(t *testing.T) {
	m := newManager()
	stop := make(chan struct{})
	var firing, adding sync.WaitGroup
	firing.Add(1)
	go func() {
		defer firing.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				m.Fire(Trigger{Type: events[i%4], Path: paths[i%len(paths)]}, 1)
				m.DataSummary()
				m.EachData(func(Watcher, string) {})
			}
		}
	}()
	for range 200 {
		l := &silent{}
		adding.Add(2)
		go func() {
			defer adding.Done()
			for i := range 100 {
				m.AddData(paths[i%len(paths)], l)
				m.AddChild(paths[i%len(paths)], l)
				m.AddRecursive(paths[i%len(paths)], l)
			}
		}()
		go func() {
			defer adding.Done()
			l.gone.Store(true)
			m.Forget(l)
		}()
	}
	adding.Wait()
	close(stop)
	firing.Wait()
	if m.Count() != 0 || m.data.recursive != 0 {
		t.Errorf("%d watches and %d recursive ones left", m.Count(), m.data.recursive)
	}
}

// A connection with very many watches goes: those who wait for the manager get
// their turn long before all are forgotten, and one that fires meanwhile is
// counted once.
func TestOthersGetTheirTurnWhileVeryManyWatchesAreForgotten(t *testing.T) {
	m := newManager()
	l := &silent{}
	const many = 50 * forgetAtOnce
	for i := range many {
		m.AddPersistent(fmt.Sprintf("/%d", i), l)
		m.AddData(fmt.Sprintf("/%d", i), l)
	}
	l.gone.Store(true)
	turns, most, fired := 0, 0, 0
	left := m.data.size
	m.mu.Lock()
	m.data.forget(l, func() {
		turns, most, left = turns+1, max(most, left-m.data.size), m.data.size
		for path := range m.data.byPath { // one that is still there
			if set := m.data.byPath[path]; turns%2 == 0 {
				m.data.drop(path, set, l)
				fired++
			}
			break
		}
	})
	m.mu.Unlock()
	if turns < 40 || most > forgetAtOnce+1 || fired == 0 {
		t.Errorf("%d turns, at most %d watches between two, %d fired", turns, most, fired)
	}
	m.Forget(l)
	if m.Count() != 0 || len(m.data.byPath) != 0 || len(m.data.byWatcher) != 0 || len(m.kids.byPath) != 0 || len(m.kids.byWatcher) != 0 {
		t.Errorf("%d watches left", m.Count())
	}
}

// silent is a listener that keeps nothing.
type silent struct{ listener }

func (*silent) Notify(proto.WatcherEvent, proto.Zxid, ACL) {}

func BenchmarkFireWithoutWatchers(b *testing.B) {
	m := newManager()
	m.AddData("/other", &silent{})
	b.ReportAllocs()
	for b.Loop() {
		m.Fire(Trigger{Type: proto.EventNodeDataChanged, Path: "/app/dir-1/node-0000000001"}, 1)
	}
}

func BenchmarkFireBelowARecursiveWatch(b *testing.B) {
	m := newManager()
	m.AddRecursive("/app", &silent{})
	b.ReportAllocs()
	for b.Loop() {
		m.Fire(Trigger{Type: proto.EventNodeDataChanged, Path: "/app/dir-1/node-0000000001"}, 1)
	}
}

func BenchmarkFireToTenThousandPersistentWatchers(b *testing.B) {
	m := newManager()
	for range 10_000 {
		m.AddPersistent("/a", &silent{})
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Fire(Trigger{Type: proto.EventNodeDataChanged, Path: "/a"}, 1)
	}
}

func BenchmarkAddAndFire(b *testing.B) {
	m, l := newManager(), &silent{}
	b.ReportAllocs()
	for b.Loop() {
		m.AddData("/app/dir-1/node-0000000001", l)
		m.Fire(Trigger{Type: proto.EventNodeDataChanged, Path: "/app/dir-1/node-0000000001"}, 1)
	}
}

func BenchmarkFireToTenThousandWhoWatchOnce(b *testing.B) {
	m := newManager()
	all := make([]silent, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range all {
			m.AddData("/a", &all[i])
		}
		b.StartTimer()
		m.Fire(Trigger{Type: proto.EventNodeDataChanged, Path: "/a"}, 1)
	}
}

// A mix of watches that are spent and that stay, fired until only the latter are left.
func TestWhatIsSpentGoesAndWhatStaysIsKept(t *testing.T) {
	m := newManager()
	const each = 50
	var once, both, stay [each]*listener
	for i := range each {
		once[i], both[i], stay[i] = &listener{}, &listener{}, &listener{}
		m.AddData("/a", once[i])
		m.AddData("/a", both[i])
		m.AddPersistent("/a", both[i])
		m.AddPersistent("/a", stay[i])
	}
	m.AddData("/b", once[0])
	want := Summary{Watchers: 2*each + 1, Paths: 2, Watches: 2*each + 1}
	for change := range 2 {
		m.Fire(Trigger{Type: proto.EventNodeDataChanged, Path: "/a"}, 1)
		if got := m.DataSummary(); got != want {
			t.Errorf("after change %d: %+v, want %+v", change, got, want)
		}
	}
	if m.Contains("/a", proto.WatcherData, both[1]) || !m.Contains("/a", proto.WatcherPersistent, both[1]) || !m.Contains("/b", proto.WatcherData, once[0]) {
		t.Error("the wrong watches were taken away")
	}
}

func BenchmarkForgetAThousandPaths(b *testing.B) {
	m := newManager()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("/app/%d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		l := &silent{}
		for _, n := range names {
			m.AddData(n, l)
		}
		m.Forget(l)
	}
}
