package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// watchTable is the client's own list of its watches, which it must set again
// on a new connection. The keys are paths below the chroot, as the user gave
// them.
type watchTable struct {
	data, exist, child, persistent, recursive map[string]bool
	chroot                                    string
}

func newWatchTable() watchTable {
	return watchTable{
		data: map[string]bool{}, exist: map[string]bool{}, child: map[string]bool{},
		persistent: map[string]bool{}, recursive: map[string]bool{},
	}
}

// fired takes out the one-shot watches that an event used up.
func (w *watchTable) fired(event proto.WatcherEvent) {
	switch event.Type {
	case proto.EventNodeCreated, proto.EventNodeDataChanged:
		delete(w.data, event.Path)
		delete(w.exist, event.Path)
	case proto.EventNodeChildrenChanged:
		delete(w.child, event.Path)
	case proto.EventNodeDeleted:
		delete(w.data, event.Path)
		delete(w.exist, event.Path)
		delete(w.child, event.Path)
	}
}

// lists returns the tables that a watcher type stands for, with the event that
// tells of a removal from each.
func (w *watchTable) lists(t proto.WatcherType) map[proto.EventType][]map[string]bool {
	child, data := []map[string]bool{w.child}, []map[string]bool{w.data, w.exist}
	switch t {
	case proto.WatcherChildren:
		return map[proto.EventType][]map[string]bool{EventChildWatchRemoved: child}
	case proto.WatcherData:
		return map[proto.EventType][]map[string]bool{EventDataWatchRemoved: data}
	case proto.WatcherPersistent:
		return map[proto.EventType][]map[string]bool{EventPersistentWatchRemoved: {w.persistent}}
	case proto.WatcherPersistentRecursive:
		return map[proto.EventType][]map[string]bool{EventPersistentWatchRemoved: {w.recursive}}
	}
	return map[proto.EventType][]map[string]bool{
		EventChildWatchRemoved: child, EventDataWatchRemoved: data,
		EventPersistentWatchRemoved: {w.persistent, w.recursive},
	}
}

// The events by which a client tells its user that a watch is gone; no server
// sends them.
const (
	EventDataWatchRemoved       proto.EventType = 5
	EventChildWatchRemoved      proto.EventType = 6
	EventPersistentWatchRemoved proto.EventType = 7
)

// EventName returns ZooKeeper's name of an event type, those of removals
// included.
func EventName(t proto.EventType) string {
	switch t {
	case EventDataWatchRemoved:
		return "DataWatchRemoved"
	case EventChildWatchRemoved:
		return "ChildWatchRemoved"
	case EventPersistentWatchRemoved:
		return "PersistentWatchRemoved"
	}
	return t.String()
}

// has tells whether there is a watch of a type at a path.
func (w *watchTable) has(path string, t proto.WatcherType) bool {
	for _, tables := range w.lists(t) {
		for _, table := range tables {
			if table[path] {
				return true
			}
		}
	}
	return false
}

// remove takes watches out and returns the events that tell of it, in the order
// of their types.
func (w *watchTable) remove(path string, t proto.WatcherType) []Event {
	lists := w.lists(t)
	var events []Event
	for _, kind := range slices.Sorted(maps.Keys(lists)) {
		removed := false
		for _, table := range lists[kind] {
			removed = removed || table[path]
			delete(table, path)
		}
		if removed {
			event := proto.WatcherEvent{Type: kind, State: KeeperSyncConnected, Path: path}
			events = append(events, Event{WatcherEvent: event, Zxid: -1})
		}
	}
	return events
}

// maxSetWatchesBytes is about the size at which the watches go on in a further
// request (128 KiB is what the Java client takes): servers limit their frames.
const maxSetWatchesBytes = 128 << 10

// setWatches returns the requests that set all watches again, none if there are
// none.
func (w *watchTable) setWatches(seen proto.Zxid) [][]byte {
	none := []string{} // a null list is refused
	empty := proto.SetWatches{RelativeZxid: seen, Data: none, Exist: none, Child: none, Persistent: none, PersistentRecur: none}
	var requests [][]byte
	next, size := empty, 0
	flush := func() {
		if size > 0 {
			requests = append(requests, next.Append(nil, true))
			next, size = empty, 0
		}
	}
	add := func(table map[string]bool, list func() *[]string) {
		for _, path := range slices.Sorted(maps.Keys(table)) {
			path = w.serverPath(path)
			to := list()
			*to = append(*to, path)
			if size += len(path) + 4; size >= maxSetWatchesBytes {
				flush()
			}
		}
	}
	add(w.data, func() *[]string { return &next.Data })
	add(w.exist, func() *[]string { return &next.Exist })
	add(w.child, func() *[]string { return &next.Child })
	add(w.persistent, func() *[]string { return &next.Persistent })
	add(w.recursive, func() *[]string { return &next.PersistentRecur })
	flush()
	return requests
}

// serverPath puts the chroot before a path.
func (w *watchTable) serverPath(path string) string { return joinChroot(w.chroot, path) }

func joinChroot(chroot, path string) string {
	if chroot != "" && path == "/" {
		return chroot
	}
	return chroot + path
}

// cutChroot takes the chroot off a path of the server's.
func cutChroot(chroot, path string) string {
	if chroot == "" {
		return path
	}
	rest, below := strings.CutPrefix(path, chroot)
	switch {
	case below && rest == "":
		return "/"
	case below && rest[0] == '/':
		return rest
	}
	return path
}

// notify is the Conn's Notify: it keeps the table and tells the user.
func (s *Session) notify(event Event) {
	event.Path = cutChroot(s.options.Chroot, event.Path)
	s.mu.Lock()
	s.watches.fired(event.WatcherEvent)
	s.mu.Unlock()
	s.options.Notify(event)
}

// AddWatch sets a persistent watch; mode is one of proto's AddWatch constants.
func (s *Session) AddWatch(ctx context.Context, path string, mode int32) error {
	request := proto.PathType{Path: s.serverPath(path), Type: mode}
	_, err := s.do(ctx, proto.OpAddWatch, path, request.Append(nil), func(call *Call) {
		if call.Header.Err == proto.ErrOK {
			s.mu.Lock()
			defer s.mu.Unlock()
			if mode == proto.AddWatchPersistentRecursive {
				s.watches.recursive[path] = true
			} else {
				s.watches.persistent[path] = true
			}
		}
	})
	return err
}

// RemoveWatches removes the watches of a type at a path. With local it removes
// them here even when the server cannot be asked.
func (s *Session) RemoveWatches(ctx context.Context, path string, t proto.WatcherType, local bool) error {
	s.mu.Lock()
	known := s.watches.has(path, t)
	s.mu.Unlock()
	if !known {
		return &ServerError{Op: proto.OpRemoveWatches, Path: path, Code: proto.ErrNoWatcher}
	}
	request := proto.PathType{Path: s.serverPath(path), Type: int32(t)}
	var gone []Event
	_, err := s.do(ctx, proto.OpRemoveWatches, path, request.Append(nil), func(call *Call) {
		if call.Header.Err == proto.ErrOK {
			gone = s.forget(path, t)
		}
	})
	if err != nil && local {
		gone = s.forget(path, t)
	}
	for _, event := range gone {
		s.options.Notify(event)
	}
	if err != nil {
		return fmt.Errorf("remove watches: %w", err)
	}
	return nil
}

func (s *Session) forget(path string, t proto.WatcherType) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches.remove(path, t)
}
