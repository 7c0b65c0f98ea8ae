package state

import (
	"bytes"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Case 14: ctime and mtime are the leader's, from the log entry, whatever the
// clock of the server that applies it, and whenever it does.
func TestTimesOfNodesComeFromTheLog(t *testing.T) {
	a := newClient(10, 1)
	times := []int64{1_000, 5_000, 3_000, -7, 0} // also before: a new leader's clock may be behind
	entries := [][][]byte{
		{a.create(), a.make("/a", 0)},
		{a.command(proto.OpSetData, setBody("/a", "1"))},
		{a.make("/b", proto.CreateEphemeral)},
		{a.command(proto.OpSetData, setBody("/a", "2")), a.command(proto.OpSetACL, (&proto.SetACLRequest{Path: "/b", ACL: proto.OpenACL, Version: -1}).Append(nil))},
		{a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
			{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/c", ACL: proto.OpenACL}}}))},
	}
	apply := func(m *machine, from int) {
		for i := from; i < len(entries); i++ {
			if err := m.Apply(uint64(i+1), 1, times[i], 0, entries[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	direct := newMachine(t)
	apply(direct, 0)
	for _, c := range []struct {
		path         string
		ctime, mtime int64
	}{{"/a", 1_000, -7}, {"/b", 3_000, 3_000}, {"/c", 0, 0}} {
		if s, found := direct.tree.Stat(c.path); !found || s.Ctime != c.ctime || s.Mtime != c.mtime {
			t.Errorf("%s: ctime %d, mtime %d, want %d and %d", c.path, s.Ctime, s.Mtime, c.ctime, c.mtime)
		}
	}
	late := newMachine(t)
	for i := range 3 {
		if err := late.Apply(uint64(i+1), 1, times[i], 0, entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	restarted := newMachine(t)
	if err := restarted.Restore(bytes.NewReader(frozen(t, late.Machine))); err != nil {
		t.Fatal(err)
	}
	apply(restarted, 3)
	if got, want := dump(t, restarted.Machine), dump(t, direct.Machine); got != want {
		t.Errorf("a server that was restarted has\n%s\nwant\n%s", got, want)
	}
}

// Case 32: a log that is replayed after any pause loses nothing. Sessions end
// only by an entry of the log, however old they are.
func TestAReplayJudgesNoSessionByAClock(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	log := [][]byte{a.create(), a.make("/kept", 0), a.make("/mine", proto.CreateEphemeral)}
	for i, command := range log {
		m.now += int64(i) * 365 * 24 * 3_600_000 // a year between the entries; the session's timeout is 4 s
		m.entry(command)
	}
	m.now += 365 * 24 * 3_600_000
	m.entry(a.command(proto.OpSetData, setBody("/kept", "late")))
	m.View(func(v View) {
		if _, found := v.Tree.Stat("/kept"); !found || v.Table.Len() != 1 || v.Tree.EphemeralCount() != 1 {
			t.Errorf("%d sessions, %d ephemerals", v.Table.Len(), v.Tree.EphemeralCount())
		}
	})
	m.entry(expire(a.session, 1))
	m.View(func(v View) {
		if s, found := v.Tree.Stat("/kept"); !found || s.Version != 1 || v.Tree.EphemeralCount() != 0 {
			t.Errorf("after the expiry: /kept %t, %d ephemerals", found, v.Tree.EphemeralCount())
		}
	})
}

// Switches, too, come from the entry: three servers with other settings of
// their own agree.
func TestSwitchesComeFromTheLog(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create())
	closed := proto.CreateRequest{Path: "/closed", ACL: []proto.ACL{{Perms: proto.PermRead, ID: proto.OpenACL[0].ID}}}
	m.entry(a.command(proto.OpCreate, closed.Append(nil, proto.OpCreate)))
	ttl := proto.CreateRequest{Path: "/ttl", ACL: proto.OpenACL, Flags: proto.CreatePersistentTTL, TTL: 5}
	for _, c := range []struct {
		name     string
		switches uint32
		op       proto.OpCode
		body     []byte
		want     proto.ErrCode
	}{
		{"a write that the ACL forbids", 0, proto.OpSetData, setBody("/closed", "x"), proto.ErrNoAuth},
		{"the same with skipACL", proto.SwitchSkipACL, proto.OpSetData, setBody("/closed", "x"), proto.ErrOK},
		{"a TTL node", 0, proto.OpCreateTTL, ttl.Append(nil, proto.OpCreateTTL), proto.ErrUnimplemented},
		{"the same with extended types", proto.SwitchExtendedTypes, proto.OpCreateTTL, ttl.Append(nil, proto.OpCreateTTL), proto.ErrOK},
		{"a reconfig", 0, proto.OpReconfig, (&proto.ReconfigRequest{}).Append(nil), proto.ErrReconfigDisabled},
		{"the same with reconfigEnabled", proto.SwitchReconfig, proto.OpReconfig, (&proto.ReconfigRequest{}).Append(nil), proto.ErrUnimplemented},
	} {
		got := proto.ErrCode(1)
		m.hook.onApplied = func(_ *proto.TxnHeader, o *Outcome) bool { got = o.Result.Err; return false }
		m.switches = c.switches
		m.entry(a.command(c.op, c.body))
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
