package state

import (
	"errors"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/tree"
)

func TestZxidsFollowTheTermsAndTheCommandsOfTheLog(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	quotaOn := proto.SwitchEnforceQuota | proto.SwitchReconfig
	for _, c := range []struct {
		name     string
		term     uint64
		switches uint32
		commands [][]byte
		want     proto.Zxid
	}{
		{"an entry without commands is invisible", 1, 0, nil, 0},
		{"the first command begins epoch 1; create-session takes one", 2, 0, [][]byte{a.create()}, proto.MakeZxid(1, 1)},
		{"a write takes one", 2, 0, [][]byte{a.make("/a", 0)}, proto.MakeZxid(1, 2)},
		{"a write that fails takes one", 2, 0, [][]byte{a.make("/a", 0)}, proto.MakeZxid(1, 3)},
		{"each command of an entry takes one", 2, 0, [][]byte{a.make("/b", 0), a.make("/c", 0)}, proto.MakeZxid(1, 5)},
		{"sync takes none", 2, 0, [][]byte{a.command(proto.OpSync, deleteBody("/a"))}, proto.MakeZxid(1, 5)},
		{"a multi takes one for all of it", 2, 0, [][]byte{a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
			{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: "/a", Version: -1}},
			{Type: proto.OpSetData, Data: proto.SetDataRequest{Path: "/b", Version: -1}},
		}))}, proto.MakeZxid(1, 6)},
		{"a multi that fails takes one", 2, 0, [][]byte{a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
			{Type: proto.OpCheck, Version: proto.PathVersion{Path: "/none", Version: -1}},
		}))}, proto.MakeZxid(1, 7)},
		{"an empty multi takes one", 2, 0, [][]byte{a.command(proto.OpMulti, proto.AppendMulti(nil, nil))}, proto.MakeZxid(1, 8)},
		{"a multi that is cut short takes one", 2, 0, [][]byte{a.command(proto.OpMulti, []byte{0, 0})}, proto.MakeZxid(1, 9)},
		{"a record that is cut short takes none", 2, 0, [][]byte{a.command(proto.OpCreate, []byte{0, 0})}, proto.MakeZxid(1, 9)},
		{"a multi with a null ACL takes none", 2, 0, [][]byte{a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
			{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/n"}},
		}))}, proto.MakeZxid(1, 9)},
		{"a reconfig takes one", 2, quotaOn, [][]byte{a.command(proto.OpReconfig, (&proto.ReconfigRequest{}).Append(nil))}, proto.MakeZxid(1, 10)},
		{"a renewal takes none", 2, 0, [][]byte{a.renew()}, proto.MakeZxid(1, 10)},
		{"a new term begins an epoch, even if its first command takes none", 3, 0, [][]byte{a.renew()}, proto.MakeZxid(2, 0)},
		{"the counter starts at 1", 3, 0, [][]byte{newClient(11, 2).create()}, proto.MakeZxid(2, 1)},
		{"terms that were skipped count once", 9, 0, [][]byte{newClient(12, 3).create()}, proto.MakeZxid(3, 1)},
		{"an entry without commands begins no epoch", 10, 0, nil, proto.MakeZxid(3, 1)},
		{"an expiry takes one", 10, 0, [][]byte{expire(11, 1)}, proto.MakeZxid(4, 1)},
		{"an expiry that does nothing takes none", 10, 0, [][]byte{expire(11, 1)}, proto.MakeZxid(4, 1)},
		{"a deletion of a container that is not there takes one", 10, 0,
			[][]byte{own(proto.OpDeleteContainer, 0, tree.AppendReap(nil, tree.Reap{Path: "/none"}))}, proto.MakeZxid(4, 2)},
	} {
		m.term, m.switches = c.term, c.switches
		m.entry(c.commands...)
		if got := m.Zxid(); got != c.want {
			t.Errorf("%s: zxid %v, want %v", c.name, got, c.want)
		}
		if strings.HasPrefix(m.hook.last(), "out of turn") {
			t.Errorf("%s: %s", c.name, m.hook.last())
		}
	}
}

func TestAFullCounterGoesOnInTheNextEpoch(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create())
	m.zxid = proto.MakeZxid(7, 0xfffffffe)
	for _, want := range []proto.Zxid{proto.MakeZxid(7, 0xffffffff), proto.MakeZxid(8, 1), proto.MakeZxid(8, 2)} {
		m.entry(a.make("/n", proto.CreatePersistentSequential))
		if got := m.Zxid(); got != want {
			t.Errorf("zxid %v, want %v", got, want)
		}
	}
	m.zxid = proto.MakeZxid(8, 0xffffffff)
	m.term++
	m.entry(a.make("/n", proto.CreatePersistentSequential))
	if got, want := m.Zxid(), proto.MakeZxid(9, 1); got != want {
		t.Errorf("a new term at a full counter: zxid %v, want %v", got, want)
	}
}

// The reply carries the command's own zxid, or the last one where it took none.
func TestTheReplyCarriesTheZxidThatWasTaken(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	var zxids []proto.Zxid
	m.hook.onApplied = func(_ *proto.TxnHeader, o *Outcome) bool { zxids = append(zxids, o.Zxid); return false }
	m.entry(a.create(), a.make("/a", 0), a.command(proto.OpSync, deleteBody("/")), a.make("/a", 0),
		a.command(proto.OpCreate, nil), a.command(proto.OpCloseSession, nil))
	for i, want := range []uint32{1, 2, 2, 3, 3, 4} {
		if zxids[i] != proto.MakeZxid(1, want) {
			t.Errorf("reply %d: zxid %v, want %v", i, zxids[i], proto.MakeZxid(1, want))
		}
	}
}

// A command that this build cannot read stops the server before any command of
// its entry has had an effect: skipping it would split the replicas.
func TestAnUnknownCommandStopsBeforeAnythingOfItsEntryHasAnEffect(t *testing.T) {
	for _, c := range []struct {
		name    string
		command []byte
		want    error
	}{
		{"a later version", append([]byte{proto.CommandVersion + 1}, make([]byte, 60)...), proto.ErrCommandVersion},
		{"version 0", make([]byte, 60), proto.ErrCommandVersion},
		{"version 255", []byte{255}, proto.ErrCommandVersion},
		{"no byte at all", nil, proto.ErrTruncated},
		{"an envelope cut short", newClient(10, 1).create()[:20], proto.ErrTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			a := newClient(10, 1)
			m.entry(a.create())
			before, heard, entries := dump(t, m.Machine), len(m.hook.lines), m.hook.entries
			err := m.Apply(2, m.term+1, m.now, 0, [][]byte{a.make("/a", 0), c.command, a.make("/b", 0)})
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), "log entry 2, command 1") {
				t.Errorf("error %q does not name the command", err)
			}
			if after := dump(t, m.Machine); after != before || len(m.hook.lines) != heard || m.hook.entries != entries {
				t.Errorf("the state or the hook was touched:\n%s\nwas:\n%s\nheard %q", after, before, m.hook.lines[heard:])
			}
		})
	}
}

// Op codes that are none leave everything as it is, whoever wrote them.
func TestAnOpCodeThatIsNoneHasNoEffect(t *testing.T) {
	for _, op := range []proto.OpCode{0, 3, 4, 10, 11, 13, 99, 100, 999, -1, -1003, 1 << 30, proto.OpMultiRead} {
		m := newMachine(t)
		a := newClient(10, 1)
		m.entry(a.create())
		before, zxid := nodes(m), m.Zxid()
		m.entry(a.command(op, watchBody("/a", false)))
		if got := nodes(m); got != before || m.Zxid() != zxid {
			t.Errorf("op %d: %d nodes and zxid %v, want %d and %v", op, got, m.Zxid(), before, zxid)
		}
	}
}

func nodes(m *machine) (n int) {
	m.View(func(v View) { n = v.Tree.NodeCount() })
	return n
}

// Apache keeps the digest of every 128th zxid, and 1024 of them.
func TestDigestsAreKeptForEvery128thZxid(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create())
	for range 128 * 3 {
		m.entry(a.command(proto.OpSetData, setBody("/", "x")))
	}
	m.View(func(v View) {
		if len(v.Digests) != 3 || v.Digests[0].Zxid != proto.MakeZxid(1, 128) || v.Digests[2].Zxid != proto.MakeZxid(1, 384) {
			t.Errorf("digests %+v", v.Digests)
		}
	})
	for i := range uint32(2000) {
		m.take(proto.MakeZxid(2, i*128))
	}
	m.View(func(v View) {
		if len(v.Digests) != 1024 || v.Digests[1023].Zxid != proto.MakeZxid(2, 1999*128) || v.Digests[0].Zxid != proto.MakeZxid(2, 976*128) {
			t.Errorf("%d digests, from %+v to %+v", len(v.Digests), v.Digests[0], v.Digests[len(v.Digests)-1])
		}
	})
}
