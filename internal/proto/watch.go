package proto

// EventType is the type of a watch event.
type EventType int32

// The event types that a server sends.
const (
	EventNone                EventType = -1
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4
)

// String returns ZooKeeper's name of the event type.
func (e EventType) String() string {
	switch e {
	case EventNone:
		return "None"
	case EventNodeCreated:
		return "NodeCreated"
	case EventNodeDeleted:
		return "NodeDeleted"
	case EventNodeDataChanged:
		return "NodeDataChanged"
	case EventNodeChildrenChanged:
		return "NodeChildrenChanged"
	}
	return "Unknown"
}

// StateSyncConnected is the only keeper state that a server puts into a
// notification.
const StateSyncConnected int32 = 3

// WatcherType names watches in checkWatches and removeWatches.
type WatcherType int32

// The watcher types.
const (
	WatcherChildren            WatcherType = 1
	WatcherData                WatcherType = 2
	WatcherAny                 WatcherType = 3
	WatcherPersistent          WatcherType = 4
	WatcherPersistentRecursive WatcherType = 5
)

// Modes of addWatch.
const (
	AddWatchPersistent          int32 = 0
	AddWatchPersistentRecursive int32 = 1
)

// WatcherEvent is the body of a notification.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

// WatcherEvent reads the record.
func (d *Decoder) WatcherEvent() WatcherEvent {
	return WatcherEvent{Type: EventType(d.Int()), State: d.Int(), Path: d.String()}
}

// AppendWatcherEvent adds the record to dst.
func AppendWatcherEvent(dst []byte, e WatcherEvent) []byte {
	return AppendString(AppendInt(AppendInt(dst, int32(e.Type)), e.State), e.Path)
}

// SetWatches is the body of setWatches and setWatches2; the last two lists are
// setWatches2's. A nil list came as null.
type SetWatches struct {
	RelativeZxid                                    Zxid
	Data, Exist, Child, Persistent, PersistentRecur []string
}

// SetWatches reads the record of setWatches, or with two true of setWatches2.
func (d *Decoder) SetWatches(two bool) SetWatches {
	r := SetWatches{RelativeZxid: Zxid(d.Long()), Data: d.Strings(), Exist: d.Strings(), Child: d.Strings()}
	if two {
		r.Persistent, r.PersistentRecur = d.Strings(), d.Strings()
	} else {
		r.Persistent, r.PersistentRecur = []string{}, []string{}
	}
	return r
}

// Append adds the record to dst.
func (r *SetWatches) Append(dst []byte, two bool) []byte {
	dst = AppendLong(dst, int64(r.RelativeZxid))
	dst = AppendStrings(AppendStrings(AppendStrings(dst, r.Data), r.Exist), r.Child)
	if two {
		dst = AppendStrings(AppendStrings(dst, r.Persistent), r.PersistentRecur)
	}
	return dst
}
