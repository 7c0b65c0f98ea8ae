// Package watch keeps who watches which path in which mode, and turns one
// change of the tree into notifications.
//
// It never reads the tree, knows connections only as the Watcher interface,
// and never blocks. A Manager has its own lock, taken below the state lock
// (see docs/locks.md): reads of several connections add watches side by side.
package watch

import (
	"strings"
	"sync"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

// Watcher is a connection as this room sees it. Implementations must be
// pointers: a watcher is known by identity.
type Watcher interface {
	// Notify takes one event. The list is that by which the reader's right to
	// learn of it is judged. It is called under the manager's lock, must not
	// block, and must not call the manager.
	Notify(e proto.WatcherEvent, zxid proto.Zxid, acl ACL)
	// Gone tells that the watcher has been, or is about to be, forgotten; it
	// then gets no more watches. Once true it stays true.
	Gone() bool
}

// ACL is a node's list, as the tree keeps it.
type ACL interface {
	// Allowed tells whether one of the identities has any of the permissions.
	Allowed(perm int32, ids []proto.ID) bool
}

// Mode is a set of ways in which one watcher watches one path.
type Mode uint8

// The modes. Several may be held on one path at a time.
const (
	Standard   Mode = 1 << iota // fires once
	Persistent                  // stays
	Recursive                   // stays, and fires for descendants
)

// all matches every mode.
const all = Standard | Persistent | Recursive

// Trigger is one change of a node, as the tree reports it.
type Trigger struct {
	Type proto.EventType
	Path string
	ACL  ACL
}

// Metrics says how many watchers each change told, by kind of change.
type Metrics struct {
	Created, Deleted, DataChanged, ChildrenChanged *metrics.Summary
}

// NewMetrics declares the metrics in a registry.
func NewMetrics(r *metrics.Registry) Metrics {
	return Metrics{
		Created:         r.Summary("node_created_watch_count", "Watches fired by the creation of a node."),
		Deleted:         r.Summary("node_deleted_watch_count", "Watches fired by the deletion of a node."),
		DataChanged:     r.Summary("node_changed_watch_count", "Watches fired by a change of a node's data."),
		ChildrenChanged: r.Summary("node_children_watch_count", "Watches fired by a change of a node's children."),
	}
}

// observe counts a change that told somebody.
func observe(s *metrics.Summary, n int) {
	if n > 0 {
		s.Observe(int64(n))
	}
}

// Manager holds the two watch tables of one server.
type Manager struct {
	metrics Metrics

	mu   sync.Mutex
	data table // exists, getData, persistent, recursive
	kids table // getChildren, persistent
}

// New returns an empty manager.
func New(m Metrics) *Manager {
	return &Manager{metrics: m, data: newTable(), kids: newTable()}
}

// AddData adds a one-shot watch on the node's data and existence.
func (m *Manager) AddData(path string, w Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.add(path, w, Standard)
}

// AddChild adds a one-shot watch on the node's list of children.
func (m *Manager) AddChild(path string, w Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kids.add(path, w, Standard)
}

// AddPersistent adds a watch that stays, on data and children of the path.
func (m *Manager) AddPersistent(path string, w Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.add(path, w, Persistent)
	m.kids.add(path, w, Persistent)
}

// AddRecursive adds a watch that stays, on the path and all below it.
func (m *Manager) AddRecursive(path string, w Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.add(path, w, Recursive)
}

// Contains tells whether the watcher has a watch of that type on the path.
func (m *Manager) Contains(path string, t proto.WatcherType, w Watcher) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch t {
	case proto.WatcherChildren:
		return m.kids.mode(path, w)&Standard != 0
	case proto.WatcherData:
		return m.data.mode(path, w)&Standard != 0
	case proto.WatcherPersistent:
		return m.data.mode(path, w)&Persistent != 0
	case proto.WatcherPersistentRecursive:
		return m.data.mode(path, w)&Recursive != 0
	default:
		return (m.kids.mode(path, w) | m.data.mode(path, w)) != 0
	}
}

// Remove takes the watcher's watches of that type off the path and tells
// whether there was any.
func (m *Manager) Remove(path string, t proto.WatcherType, w Watcher) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch t {
	case proto.WatcherChildren:
		return m.kids.remove(path, w, Standard)
	case proto.WatcherData:
		return m.data.remove(path, w, Standard)
	case proto.WatcherPersistent:
		kids := m.kids.remove(path, w, Persistent)
		return m.data.remove(path, w, Persistent) || kids
	case proto.WatcherPersistentRecursive:
		return m.data.remove(path, w, Recursive)
	default:
		kids := m.kids.remove(path, w, all)
		return m.data.remove(path, w, all) || kids
	}
}

// forgetAtOnce is how many watches Forget removes before it lets others have
// their turn: some hundred thousand of them take longer than a write should
// wait. Source: 1000 take a fraction of a millisecond.
const forgetAtOnce = 1000

// Forget removes all watches of a watcher that is Gone. Others get their turn
// between, if the caller does not hold the state lock, for which they would wait
// instead; the watcher passes over what it is still told.
func (m *Manager) Forget(w Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.forget(w, m.letOthers)
	m.kids.forget(w, m.letOthers)
}

// letOthers gives up the manager's lock, which must be held, for a moment.
func (m *Manager) letOthers() {
	m.mu.Unlock()
	m.mu.Lock()
}

// Fire notifies the watchers of one change and takes away the watches that
// fire once.
//
// A creation or a change of data concerns the data table, a change of the
// children the child table; a deletion the data table and then those in the
// child table who were not told already, as in Apache's server. The event for
// the parent of a created or deleted node is a trigger of its own.
func (m *Manager) Fire(t Trigger, zxid proto.Zxid) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch t.Type {
	case proto.EventNodeCreated:
		observe(m.metrics.Created, m.data.fire(&t, zxid, nil))
	case proto.EventNodeDataChanged:
		observe(m.metrics.DataChanged, m.data.fire(&t, zxid, nil))
	case proto.EventNodeChildrenChanged:
		observe(m.metrics.ChildrenChanged, m.kids.fire(&t, zxid, nil))
	case proto.EventNodeDeleted:
		var told map[Watcher]struct{}
		if m.kids.watched(t.Path) {
			told = make(map[Watcher]struct{})
		}
		observe(m.metrics.Deleted, m.data.fire(&t, zxid, told))
		if told != nil {
			observe(m.metrics.Deleted, m.kids.fire(&t, zxid, told))
		}
	}
}

// Summary counts one table as the four-letter word wchs does.
type Summary struct {
	Watchers, Paths, Watches int
}

// DataSummary counts the data table, the only one that wchs shows.
func (m *Manager) DataSummary() Summary {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Summary{Watchers: len(m.data.byWatcher), Paths: len(m.data.byPath), Watches: m.data.size}
}

// Count is the number of (watcher, path) pairs in both tables.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.size + m.kids.size
}

// EachData calls fn for every (watcher, path) pair of the data table, under
// the lock: fn must be short and must not call the manager.
func (m *Manager) EachData(fn func(w Watcher, path string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w, paths := range m.data.byWatcher {
		for p := range paths {
			fn(w, p)
		}
	}
}

// Each calls fn for every (watcher, path) pair of both tables, under the lock:
// fn must be short and must not call the manager.
func (m *Manager) Each(fn func(w Watcher, path string, mode Mode, child bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range []struct {
		table *table
		child bool
	}{{&m.data, false}, {&m.kids, true}} {
		for path, set := range t.table.byPath {
			for w, mode := range set {
				fn(w, path, mode, t.child)
			}
		}
	}
}

// table is one watch table, indexed both ways.
//
// Invariants: byPath[p] has w exactly if byWatcher[w] has p; no stored mode is
// 0 and no inner map is empty; size = Σ len(byWatcher[w]); recursive is the
// number of pairs whose mode has Recursive.
type table struct {
	byPath    map[string]map[Watcher]Mode
	byWatcher map[Watcher]map[string]struct{}
	size      int
	recursive int
}

func newTable() table {
	return table{byPath: map[string]map[Watcher]Mode{}, byWatcher: map[Watcher]map[string]struct{}{}}
}

func (t *table) watched(path string) bool { return len(t.byPath[path]) > 0 }

func (t *table) mode(path string, w Watcher) Mode { return t.byPath[path][w] }

func (t *table) add(path string, w Watcher, mode Mode) {
	set := t.byPath[path]
	old := set[w]
	if old|mode == old || w.Gone() {
		return
	}
	if set == nil {
		set = make(map[Watcher]Mode, 1)
		t.byPath[path] = set
	}
	if old == 0 {
		paths := t.byWatcher[w]
		if paths == nil {
			paths = make(map[string]struct{}, 1)
			t.byWatcher[w] = paths
		}
		paths[path] = struct{}{}
		t.size++
	}
	if mode == Recursive {
		t.recursive++
	}
	set[w] = old | mode
}

func (t *table) remove(path string, w Watcher, mode Mode) bool {
	set := t.byPath[path]
	old := set[w]
	if old&mode == 0 {
		return false
	}
	if old&mode&Recursive != 0 {
		t.recursive--
	}
	if rest := old &^ mode; rest != 0 {
		set[w] = rest
		return true
	}
	t.drop(path, set, w)
	return true
}

// drop deletes a pair from both indexes.
func (t *table) drop(path string, set map[Watcher]Mode, w Watcher) {
	if delete(set, w); len(set) == 0 {
		delete(t.byPath, path)
	}
	t.unlist(path, w)
}

// unlist deletes a pair from the index by watcher; the caller has it leave the other
// one, too.
func (t *table) unlist(path string, w Watcher) {
	if paths := t.byWatcher[w]; len(paths) == 1 {
		delete(t.byWatcher, w) // it is the one
	} else {
		delete(paths, path)
	}
	t.size--
}

// clear deletes from the index by path what is Standard only, of which there are n:
// all watchers at once, as a rule, and then one step.
func (t *table) clear(path string, set map[Watcher]Mode, n int) {
	if n == len(set) {
		delete(t.byPath, path)
		return
	}
	for w, mode := range set {
		if n == 0 {
			return
		}
		if mode == Standard {
			n--
			delete(set, w)
		}
	}
}

// forget removes all watches of a watcher that gets no more. pause is called
// every forgetAtOnce watches and may let others change the table.
func (t *table) forget(w Watcher, pause func()) {
	done := 0
	for path := range t.byWatcher[w] {
		if done++; done%forgetAtOnce == 0 {
			pause()
		}
		if set := t.byPath[path]; set[w] != 0 { // it may have fired in a pause
			if set[w]&Recursive != 0 {
				t.recursive--
			}
			t.drop(path, set, w)
		}
	}
}

// fire notifies the watchers of one trigger and returns how many it has. If
// told is not nil, those in it are passed over (though they count, and their
// one-shot watches are spent all the same) and those notified are added.
func (t *table) fire(tr *Trigger, zxid proto.Zxid, told map[Watcher]struct{}) int {
	e := proto.WatcherEvent{Type: tr.Type, State: proto.StateSyncConnected, Path: tr.Path}
	n := len(t.byPath[tr.Path])
	seen := told
	if seen == nil && t.recursive > 0 {
		seen = make(map[Watcher]struct{})
	}
	notify := func(w Watcher) {
		if seen != nil {
			if _, dup := seen[w]; dup {
				return
			}
			seen[w] = struct{}{}
		}
		w.Notify(e, zxid, tr.ACL)
	}
	if set := t.byPath[tr.Path]; set != nil {
		spent := 0
		for w, mode := range set {
			notify(w)
			if rest := mode &^ Standard; rest == 0 {
				spent++
				t.unlist(tr.Path, w)
			} else if rest != mode {
				set[w] = rest
			}
		}
		t.clear(tr.Path, set, spent)
	}
	if t.recursive == 0 {
		return n
	}
	for path := tr.Path; path != proto.PathRoot; {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		if path == "" {
			path = proto.PathRoot
		}
		for w, mode := range t.byPath[path] {
			if _, dup := seen[w]; mode&Recursive != 0 && !dup {
				n++
				notify(w)
			}
		}
	}
	return n
}
