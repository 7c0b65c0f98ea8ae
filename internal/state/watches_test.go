package state

import (
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Case 25: what setWatches does for a node in each state since the client's
// last zxid: one event if something was missed, else the watch is set.
func TestSetWatchesTellsWhatWasMissedAndSetsTheRest(t *testing.T) {
	type list int
	const (
		data list = iota
		exist
		child
		persistent
		recursive
	)
	base := func(m *machine, a *client) { m.entry(a.make("/n", 0), a.make("/n/old", 0)) }
	for _, c := range []struct {
		name   string
		list   list
		change func(m *machine, a *client)
		event  string // at once
		armed  bool
	}{
		{"data, unchanged", data, func(*machine, *client) {}, "", true},
		{"data, changed", data, func(m *machine, a *client) { m.entry(a.command(proto.OpSetData, setBody("/n", "y"))) }, "NodeDataChanged /n", false},
		{"data, only its children changed", data, func(m *machine, a *client) { m.entry(a.make("/n/new", 0)) }, "", true},
		{"data, its ACL changed", data, func(m *machine, a *client) {
			m.entry(a.command(proto.OpSetACL, (&proto.SetACLRequest{Path: "/n", ACL: proto.OpenACL, Version: -1}).Append(nil)))
		}, "", true},
		{"data, deleted", data, deleteAll, "NodeDeleted /n", false},
		{"data, deleted and made again", data, func(m *machine, a *client) { deleteAll(m, a); m.entry(a.make("/n", 0)) }, "NodeDataChanged /n", false},
		{"exist, there all the time", exist, func(*machine, *client) {}, "NodeCreated /n", false},
		{"exist, missing", exist, deleteAll, "", true},
		{"child, unchanged", child, func(*machine, *client) {}, "", true},
		{"child, its data changed", child, func(m *machine, a *client) { m.entry(a.command(proto.OpSetData, setBody("/n", "y"))) }, "", true},
		{"child, one added", child, func(m *machine, a *client) { m.entry(a.make("/n/new", 0)) }, "NodeChildrenChanged /n", false},
		{"child, one removed", child, func(m *machine, a *client) { m.entry(a.command(proto.OpDelete, deleteBody("/n/old"))) }, "NodeChildrenChanged /n", false},
		{"child, a grandchild added", child, func(m *machine, a *client) { m.entry(a.make("/n/old/x", 0)) }, "", true},
		{"child, deleted", child, deleteAll, "NodeDeleted /n", false},
		{"persistent, deleted meanwhile", persistent, deleteAll, "", true},
		{"recursive, changed meanwhile", recursive, func(m *machine, a *client) { m.entry(a.command(proto.OpSetData, setBody("/n", "y"))) }, "", true},
	} {
		m := newMachine(t)
		a := newClient(10, 1)
		m.entry(a.create())
		base(m, a)
		since := m.Zxid()
		c.change(m, a)
		lists := [5][]string{{}, {}, {}, {}, {}}
		lists[c.list] = []string{"/n"}
		r := proto.SetWatches{RelativeZxid: since, Data: lists[0], Exist: lists[1], Child: lists[2], Persistent: lists[3], PersistentRecur: lists[4]}
		box := &outbox{session: 10}
		if got := m.read(box, proto.OpSetWatches2, r.Append(nil, true)); got.Err != proto.ErrOK || len(got.body) > 0 {
			t.Errorf("%s: reply %+v", c.name, got)
		}
		items := box.take()
		var events []string
		for _, it := range items[:len(items)-1] { // the reply is the last
			events = append(events, it.event.Type.String()+" "+it.event.Path)
			if it.Zxid != -1 {
				t.Errorf("%s: event with zxid %v", c.name, it.Zxid)
			}
		}
		want := []string{}
		if c.event != "" {
			want = append(want, c.event)
		}
		if !slices.Equal(events, want) {
			t.Errorf("%s: events %q, want %q", c.name, events, want)
		}
		if armed := m.Watches().Count() > 0; armed != c.armed {
			t.Errorf("%s: armed %t", c.name, armed)
		}
	}
}

func deleteAll(m *machine, a *client) {
	m.entry(a.command(proto.OpDelete, deleteBody("/n/old")), a.command(proto.OpDelete, deleteBody("/n")))
}

// A null list or path fails the request, not what came before it.
func TestSetWatchesKeepsWhatCameBeforeANull(t *testing.T) {
	m := newMachine(t)
	box := &outbox{session: 10}
	for _, c := range []struct {
		name    string
		request proto.SetWatches
		want    int
	}{
		{"a null list", proto.SetWatches{Data: []string{}, Exist: []string{"/x"}}, 1},
		{"a null path", proto.SetWatches{Data: []string{}, Exist: []string{"/x", "/y", proto.NullString, "/z"}, Child: []string{}}, 2},
	} {
		if got := m.read(box, proto.OpSetWatches, c.request.Append(nil, false)); got.Err != proto.ErrMarshalling {
			t.Errorf("%s: %+v", c.name, got.ReplyHeader)
		}
		if got := m.Watches().Count(); got != c.want {
			t.Errorf("%s: %d watches, want %d", c.name, got, c.want)
		}
		m.Watches().Forget(box)
	}
}

// Which reads leave a watch: those of a node that may be read, and exists of
// one that is missing.
func TestWhichReadsLeaveAWatch(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/a", 0))
	secret := proto.CreateRequest{Path: "/secret", ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: "u:h"}}}}
	m.entry(a.command(proto.OpCreate, secret.Append(nil, proto.OpCreate)))
	for _, c := range []struct {
		name string
		op   proto.OpCode
		path string
		err  proto.ErrCode
		want int
	}{
		{"getData", proto.OpGetData, "/a", proto.ErrOK, 1},
		{"getData of none", proto.OpGetData, "/none", proto.ErrNoNode, 0},
		{"getData without permission", proto.OpGetData, "/secret", proto.ErrNoAuth, 0},
		{"exists", proto.OpExists, "/a", proto.ErrOK, 1},
		{"exists of none", proto.OpExists, "/none", proto.ErrNoNode, 1},
		{"exists without permission", proto.OpExists, "/secret", proto.ErrNoAuth, 0},
		{"exists of an impossible path", proto.OpExists, "/a/../b", proto.ErrNoNode, 1},
		{"exists of a path with NUL", proto.OpExists, "/a\x00", proto.ErrBadArguments, 0},
		{"exists of null", proto.OpExists, proto.NullString, proto.ErrMarshalling, 0},
		{"getChildren", proto.OpGetChildren, "/a", proto.ErrOK, 1},
		{"getChildren2", proto.OpGetChildren2, "/a", proto.ErrOK, 1},
		{"getChildren of none", proto.OpGetChildren, "/none", proto.ErrNoNode, 0},
		{"getChildren2 without permission", proto.OpGetChildren2, "/secret", proto.ErrNoAuth, 0},
	} {
		box := &outbox{session: 10}
		got := m.read(box, c.op, watchBody(c.path, true))
		if got.Err != c.err || c.err != proto.ErrOK && len(got.body) > 0 || m.Watches().Count() != c.want {
			t.Errorf("%s: %v with a body of %d bytes and %d watches, want %v and %d", c.name, got.Err, len(got.body), m.Watches().Count(), c.err, c.want)
		}
		m.Watches().Forget(box)
		m.read(box, c.op, watchBody(c.path, false))
		if m.Watches().Count() != 0 {
			t.Errorf("%s: a watch that was not asked for", c.name)
		}
	}
}

// Case 37: the end of a session with very many ephemerals is a small command,
// and leaves nothing.
func TestTheEndOfASessionWithVeryManyEphemeralsIsASmallCommand(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create())
	const count, batch = 20_000, 1000
	long := "/" + string(slices.Repeat([]byte("x"), 109))
	for range count / batch {
		commands := make([][]byte, batch)
		for i := range commands {
			commands[i] = a.make(long, proto.CreateEphemeralSequential)
		}
		m.entry(commands...)
	}
	m.View(func(v View) {
		if got := v.Tree.EphemeralCount(); got != count {
			t.Fatalf("%d ephemerals, want %d", got, count)
		}
	})
	end := expire(a.session, 1)
	if len(end) > 100 {
		t.Errorf("the command is %d bytes long", len(end))
	}
	m.entry(end)
	if nodes(m) != 5 {
		t.Errorf("%d nodes left, want 5", nodes(m))
	}
	if cap(m.changes) > changesKept {
		t.Errorf("scratch for %d changes is kept", cap(m.changes))
	}
}
