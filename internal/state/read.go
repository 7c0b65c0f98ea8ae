package state

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/internal/watch"
)

// Asker is a connection as a read sees it.
type Asker interface {
	watch.Watcher
	// SessionID is the connection's session.
	SessionID() proto.SessionID
	// Push takes a finished reply frame, which lies in the scratch that Read
	// returns: an asker that keeps it must not hand that scratch in again. It is
	// called under the state lock and must not block.
	Push(frame []byte)
	// Replay takes an event that setWatches found overdue.
	Replay(e proto.WatcherEvent)
}

// ReadRequest is a request that needs no log.
type ReadRequest struct {
	Header     proto.RequestHeader
	Body       []byte
	Identities []proto.ID // at the time of the request
	SkipACL    bool       // this server's own switch: reads are answered locally
	// MultiReadMaxBytes bounds the reply to a multiRead: the ops behind that
	// many bytes fail. 0 is no bound. One frame can ask for the largest node
	// fifty thousand times.
	MultiReadMaxBytes int
}

// Read answers a request under the read lock: value, watch and the reply's
// place in the asker's outbox are taken together, so that no change falls
// between them. It returns the reply's header, and scratch, which it encodes
// into, for the next call. An asker that is Gone gets no answer.
func (m *Machine) Read(a Asker, r *ReadRequest, scratch []byte) (proto.ReplyHeader, []byte) {
	lane := m.mu.lane(uint64(a.SessionID()))
	lane.RLock()
	defer lane.RUnlock()
	return m.ReadApplying(a, r, scratch)
}

// ReadApplying is Read for the goroutine that applies, which holds the lock: of
// a Hook's methods ServeReads alone may call it.
func (m *Machine) ReadApplying(a Asker, r *ReadRequest, scratch []byte) (proto.ReplyHeader, []byte) {
	h := proto.ReplyHeader{Xid: r.Header.Xid, Zxid: m.zxid}
	if r.Header.Type == proto.OpPing {
		h.Xid = proto.XidPing
	}
	if a.Gone() {
		return h, scratch
	}
	frame := proto.AppendReplyHeader(proto.BeginFrame(scratch[:0]), h)
	q := query{m: m, a: a, maxBytes: r.MultiReadMaxBytes, r: tree.Reader{Identities: r.Identities, SkipACL: r.SkipACL}, d: *proto.NewDecoder(r.Body)}
	frame, h.Err = q.answer(r.Header.Type, frame)
	if h.Err != proto.ErrOK {
		frame = proto.AppendReplyHeader(proto.BeginFrame(frame[:0]), h)
		frame = append(frame, q.behindErr...)
	}
	a.Push(proto.EndFrame(frame, 0))
	return h, frame
}

// query is one read under way; the read lock is held.
type query struct {
	m *Machine
	a Asker
	r tree.Reader
	d proto.Decoder
	// behindErr is what a multiRead that fails as a whole sends behind its
	// error, as ZooKeeper does: the results so far and the closing header.
	behindErr []byte
	maxBytes  int // see ReadRequest.MultiReadMaxBytes
}

// answer appends the reply's body, or returns the error code.
func (q *query) answer(op proto.OpCode, dst []byte) ([]byte, proto.ErrCode) {
	switch op {
	case proto.OpPing:
		return dst, proto.ErrOK
	case proto.OpExists:
		return q.exists(dst)
	case proto.OpGetData:
		return q.getData(dst)
	case proto.OpGetChildren, proto.OpGetChildren2:
		return q.getChildren(dst, op == proto.OpGetChildren2)
	case proto.OpGetACL:
		return q.getACL(dst)
	case proto.OpGetAllChildrenNumber:
		return q.getAllChildrenNumber(dst)
	case proto.OpGetEphemerals:
		return q.getEphemerals(dst)
	case proto.OpWhoAmI:
		return q.whoAmI(dst)
	case proto.OpMultiRead:
		return q.multiRead(dst)
	case proto.OpSetWatches, proto.OpSetWatches2:
		return q.setWatches(dst, op == proto.OpSetWatches2)
	case proto.OpAddWatch:
		return q.addWatch(dst)
	case proto.OpCheckWatches, proto.OpRemoveWatches:
		return q.checkWatches(dst, op == proto.OpRemoveWatches)
	}
	return dst, proto.ErrUnimplemented
}

// path reads a record's path; a null path is malformed in every read that
// looks a node up.
func (q *query) path() (string, bool) {
	p := q.d.String()
	return p, q.d.Err() == nil && p != proto.NullString
}

func (q *query) pathWatch() (proto.PathWatch, bool) {
	r := q.d.PathWatch()
	return r, q.d.Err() == nil && r.Path != proto.NullString
}

func (q *query) exists(dst []byte) ([]byte, proto.ErrCode) {
	r, ok := q.pathWatch()
	if !ok {
		return dst, proto.ErrMarshalling
	}
	if strings.IndexByte(r.Path, 0) >= 0 {
		return dst, proto.ErrBadArguments
	}
	stat, err := q.m.tree.Exists(q.r, r.Path)
	if r.Watch && (err == proto.ErrOK || err == proto.ErrNoNode) {
		q.m.watches.AddData(r.Path, q.a)
	}
	if err != proto.ErrOK {
		return dst, err
	}
	q.count(r.Path, 0)
	return proto.AppendStat(dst, &stat), proto.ErrOK
}

// statOverhead is what Apache counts for the Stat of each read: 68 bytes.
const statOverhead = 68

// count tells the bytes of one successful read of a node.
func (q *query) count(path string, bytes int) {
	if q.m.traffic != nil {
		q.m.traffic.Read(q.a, path, len(path)+bytes+statOverhead)
	}
}

func (q *query) getData(dst []byte) ([]byte, proto.ErrCode) {
	r, ok := q.pathWatch()
	if !ok {
		return dst, proto.ErrMarshalling
	}
	return q.appendData(dst, r)
}

func (q *query) appendData(dst []byte, r proto.PathWatch) ([]byte, proto.ErrCode) {
	data, stat, err := q.m.tree.Get(q.r, r.Path)
	if err != proto.ErrOK {
		return dst, err
	}
	if r.Watch {
		q.m.watches.AddData(r.Path, q.a)
	}
	q.count(r.Path, len(data))
	return proto.AppendStat(proto.AppendBuffer(dst, data), &stat), proto.ErrOK
}

func (q *query) getChildren(dst []byte, withStat bool) ([]byte, proto.ErrCode) {
	r, ok := q.pathWatch()
	if !ok {
		return dst, proto.ErrMarshalling
	}
	return q.appendChildren(dst, r, withStat)
}

func (q *query) appendChildren(dst []byte, r proto.PathWatch, withStat bool) ([]byte, proto.ErrCode) {
	kids, stat, err := q.m.tree.Children(q.r, r.Path)
	if err != proto.ErrOK {
		return dst, err
	}
	if r.Watch {
		q.m.watches.AddChild(r.Path, q.a)
	}
	dst = slices.Grow(dst, childrenBytes(kids))
	dst = proto.AppendInt(dst, int32(kids.Len()))
	names := 0
	for name := range kids.All() {
		dst = proto.AppendString(dst, name)
		names += len(name)
	}
	q.count(r.Path, names)
	if withStat {
		dst = proto.AppendStat(dst, &stat)
	}
	return dst, proto.ErrOK
}

// childrenBytes guesses the length of a list of children by its first names, so
// that a list of megabytes is not copied again and again while it grows.
func childrenBytes(kids tree.Children) int {
	const looked = 8
	n, bytes := 0, 0
	for name := range kids.All() {
		if n++; n > looked {
			break
		}
		bytes += len(name)
	}
	return 128 + kids.Len()*(4+bytes/max(min(n, looked), 1)+1)
}

func (q *query) getACL(dst []byte) ([]byte, proto.ErrCode) {
	path, ok := q.path()
	if !ok {
		return dst, proto.ErrMarshalling
	}
	acl, stat, err := q.m.tree.ACL(q.r, path)
	if err != proto.ErrOK {
		return dst, err
	}
	return proto.AppendStat(proto.AppendACLs(dst, acl), &stat), proto.ErrOK
}

func (q *query) getAllChildrenNumber(dst []byte) ([]byte, proto.ErrCode) {
	path, ok := q.path()
	if !ok {
		return dst, proto.ErrMarshalling
	}
	n, err := q.m.tree.AllChildrenNumber(q.r, path)
	if err != proto.ErrOK {
		return dst, err
	}
	return proto.AppendInt(dst, n), proto.ErrOK
}

// getEphemerals lists the session's own, by plain prefix; null, blank and "/"
// mean all.
func (q *query) getEphemerals(dst []byte) ([]byte, proto.ErrCode) {
	prefix := q.d.String()
	if q.d.Err() != nil {
		return dst, proto.ErrMarshalling
	}
	if t := strings.TrimFunc(prefix, func(r rune) bool { return r <= ' ' }); t == "" || t == "/" || prefix == proto.NullString {
		prefix = ""
	}
	return proto.AppendStrings(dst, q.m.tree.Ephemerals(q.a.SessionID(), prefix)), proto.ErrOK
}

func (q *query) whoAmI(dst []byte) ([]byte, proto.ErrCode) {
	dst = proto.AppendInt(dst, int32(len(q.r.Identities)))
	for _, id := range q.r.Identities {
		dst = proto.AppendString(proto.AppendString(dst, id.Scheme), id.UserName())
	}
	return dst, proto.ErrOK
}

// multiRead answers each op by itself. An op that does not belong fails the
// whole with an empty multi answer behind the header, as Apache's does.
func (q *query) multiRead(dst []byte) ([]byte, proto.ErrCode) {
	ops, err := proto.DecodeMulti(q.d.Rest())
	if err != nil {
		return dst, proto.ErrMarshalling
	}
	start := len(dst)
	for i := range ops {
		op := &ops[i]
		at := len(dst)
		if op.Type != proto.OpGetData && op.Type != proto.OpGetChildren || op.Read.Path == proto.NullString {
			q.behindErr = proto.AppendMultiHeader(bytes.Clone(dst[start:at]), proto.MultiEnd)
			return dst, proto.ErrMarshalling
		}
		var code proto.ErrCode
		dst = proto.AppendMultiHeader(dst, proto.MultiHeader{Type: op.Type})
		switch {
		case q.maxBytes > 0 && at-start > q.maxBytes:
			code = proto.ErrMarshalling
		case op.Type == proto.OpGetData:
			dst, code = q.appendData(dst, op.Read)
		default:
			dst, code = q.appendChildren(dst, op.Read, false)
		}
		if code != proto.ErrOK {
			dst = proto.AppendMultiHeader(dst[:at], proto.MultiHeader{Type: proto.OpError, Err: code})
			dst = proto.AppendInt(dst, int32(code))
		}
	}
	return proto.AppendMultiHeader(dst, proto.MultiEnd), proto.ErrOK
}

// setWatches sets the watches of a client that has come back, or tells at once
// what it has missed. A null list or path fails the rest, not what came before
// it, as on Apache's server.
// It has a query of its own, since what it does with the lists would move every
// read's to the heap.
func (q query) setWatches(dst []byte, two bool) ([]byte, proto.ErrCode) {
	r := q.d.SetWatches(two)
	if q.d.Err() != nil {
		return dst, proto.ErrMarshalling
	}
	w := q.m.watches
	lists := []struct {
		paths []string
		set   func(path string) bool
	}{
		{r.Data, q.looked(func(path string, s proto.StatPersisted, found bool) proto.EventType {
			switch {
			case !found:
				return proto.EventNodeDeleted
			case s.Mzxid > r.RelativeZxid:
				return proto.EventNodeDataChanged
			}
			w.AddData(path, q.a)
			return proto.EventNone
		})},
		{r.Exist, q.looked(func(path string, _ proto.StatPersisted, found bool) proto.EventType {
			if found {
				return proto.EventNodeCreated
			}
			w.AddData(path, q.a)
			return proto.EventNone
		})},
		{r.Child, q.looked(func(path string, s proto.StatPersisted, found bool) proto.EventType {
			switch {
			case !found:
				return proto.EventNodeDeleted
			case s.Pzxid > r.RelativeZxid:
				return proto.EventNodeChildrenChanged
			}
			w.AddChild(path, q.a)
			return proto.EventNone
		})},
		{r.Persistent, func(path string) bool { w.AddPersistent(path, q.a); return true }},
		{r.PersistentRecur, func(path string) bool { w.AddRecursive(path, q.a); return true }},
	}
	for _, l := range lists {
		if l.paths == nil || slices.ContainsFunc(l.paths, func(p string) bool { return !l.set(p) }) {
			return dst, proto.ErrMarshalling
		}
	}
	return dst, proto.ErrOK
}

// looked wraps a judgement of one path of setWatches: the node is looked up,
// and an overdue event sent.
func (q *query) looked(judge func(path string, s proto.StatPersisted, found bool) proto.EventType) func(string) bool {
	return func(path string) bool {
		if path == proto.NullString {
			return false
		}
		s, found := q.m.tree.Stat(path)
		if e := judge(path, s, found); e != proto.EventNone {
			q.a.Replay(proto.WatcherEvent{Type: e, State: proto.StateSyncConnected, Path: path})
		}
		return true
	}
}

func (q *query) addWatch(dst []byte) ([]byte, proto.ErrCode) {
	r := q.d.PathType()
	switch {
	case q.d.Err() != nil:
		return dst, proto.ErrMarshalling
	case r.Type == proto.AddWatchPersistent:
		q.m.watches.AddPersistent(r.Path, q.a)
	case r.Type == proto.AddWatchPersistentRecursive:
		q.m.watches.AddRecursive(r.Path, q.a)
	default:
		return dst, proto.ErrMarshalling
	}
	return proto.AppendInt(dst, 0), proto.ErrOK // an ErrorResponse that says OK
}

func (q *query) checkWatches(dst []byte, remove bool) ([]byte, proto.ErrCode) {
	r := q.d.PathType()
	t := proto.WatcherType(r.Type)
	if q.d.Err() != nil || t < proto.WatcherChildren || t > proto.WatcherPersistentRecursive {
		return dst, proto.ErrMarshalling
	}
	found := false
	if remove {
		found = q.m.watches.Remove(r.Path, t, q.a)
	} else {
		found = q.m.watches.Contains(r.Path, t, q.a)
	}
	if !found {
		return dst, proto.ErrNoWatcher
	}
	return dst, proto.ErrOK
}
