package state

import (
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// The tests of this file stand for rule 1.7 of the design: a write whose turn
// has not come, or whose connection does not own the session, has no effect.

func TestACommandOutOfTurnChangesNothingAndTakesNoZxid(t *testing.T) {
	body := createBody("/out-of-turn", proto.CreatePersistent, "x")
	for _, c := range []struct {
		name    string
		command func(a, b *client) []byte
	}{
		{"the number of the last command again", func(a, _ *client) []byte { return a.numbered(a.seq, proto.OpCreate, body) }},
		{"an older number", func(a, _ *client) []byte { return a.numbered(a.seq-1, proto.OpCreate, body) }},
		{"number 0", func(a, _ *client) []byte { return a.numbered(0, proto.OpCreate, body) }},
		{"one number skipped", func(a, _ *client) []byte { return a.numbered(a.seq+2, proto.OpCreate, body) }},
		{"the greatest number", func(a, _ *client) []byte { return a.numbered(1<<64-1, proto.OpCreate, body) }},
		{"another session's connection", func(a, b *client) []byte {
			b.session = a.session
			return b.numbered(a.seq+1, proto.OpCreate, body)
		}},
		{"the same connection id on another server", func(a, _ *client) []byte {
			other := *a
			other.origin.Server = 2
			return other.numbered(a.seq+1, proto.OpCreate, body)
		}},
		{"a sync", func(a, _ *client) []byte { return a.numbered(a.seq+2, proto.OpSync, deleteBody("/")) }},
		{"a multi", func(a, _ *client) []byte { return a.numbered(a.seq+2, proto.OpMulti, proto.AppendMulti(nil, nil)) }},
		{"a close of the session", func(a, _ *client) []byte { return a.numbered(a.seq+2, proto.OpCloseSession, nil) }},
		{"a body that cannot be read", func(a, _ *client) []byte { return a.numbered(a.seq+2, proto.OpCreate, []byte{1}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			a, b := newClient(10, 1), newClient(11, 2)
			m.entry(a.create(), b.create(), a.make("/one", 0), a.make("/two", proto.CreateEphemeral))
			command := c.command(a, b)
			before := dump(t, m.Machine)
			m.entry(command)
			if !strings.HasPrefix(m.hook.last(), "out of turn conn") {
				t.Errorf("the hook heard %q, want out of turn", m.hook.last())
			}
			if after := dump(t, m.Machine); after != before {
				t.Errorf("the state changed:\n%s\nwas:\n%s", after, before)
			}
			// The connection's true next command is not disturbed.
			m.entry(a.make("/three", 0))
			if want := "applied create conn 1/1 err 0"; !strings.HasPrefix(m.hook.last(), want) {
				t.Errorf("the hook heard %q, want %q", m.hook.last(), want)
			}
		})
	}
}

// A lost proposal: everything behind it on the same connection is void, be it
// one command later or many, until the client has connected anew.
func TestALaterWriteNeverTakesEffectWithoutTheEarlierOne(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create())
	a.make("/config", 0) // lost on its way
	ready, more := a.make("/ready", 0), a.make("/more", 0)
	before := m.Zxid()
	m.entry(ready)
	m.entry(more, a.command(proto.OpCloseSession, nil))
	if got := m.Zxid(); got != before {
		t.Errorf("zxid %v, want still %v", got, before)
	}
	m.View(func(v View) {
		if v.Tree.NodeCount() != 5 || v.Table.Len() != 1 {
			t.Errorf("%d nodes and %d sessions, want 5 and 1", v.Tree.NodeCount(), v.Table.Len())
		}
	})
	again := a.on(2)
	m.entry(again.renew(), again.make("/config", 0), again.make("/ready", 0))
	m.entry(ready) // and the old ones stay void for ever
	m.View(func(v View) {
		if v.Tree.NodeCount() != 7 {
			t.Errorf("%d nodes, want 7", v.Tree.NodeCount())
		}
	})
}

func TestARenewalMovesTheSessionAndStartsItsNumbersAnew(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/one", proto.CreateEphemeral), a.make("/two", 0))
	before := m.Zxid()
	b := a.on(2)
	m.entry(b.renew())
	if got := m.Zxid(); got != before {
		t.Errorf("the renewal took zxid %v", got)
	}
	want := "moved 0xa generation 2 to conn 1/2 from 1/1"
	if lines := m.hook.lines[len(m.hook.lines)-2:]; lines[0] != want || !strings.HasPrefix(lines[1], "applied renewSession conn 1/2 err 0") {
		t.Errorf("the hook heard %q, want first %q, then the answer", lines, want)
	}
	m.entry(a.make("/late", 0))
	if got := m.hook.last(); got != "out of turn conn 1/1" {
		t.Errorf("a late write of the former owner: %q", got)
	}
	m.entry(b.make("/three", 0))
	if got := m.hook.last(); !strings.HasPrefix(got, "applied create conn 1/2 err 0") {
		t.Errorf("the first write of the new owner: %q", got)
	}
	m.View(func(v View) {
		if got := v.Tree.Ephemerals(a.session, ""); len(got) != 1 {
			t.Errorf("ephemerals %q, want the one made before", got)
		}
	})
}

func TestARefusedRenewalLeavesTheOwnerAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		renewal func(a *client) []byte
		want    string
	}{
		{"one password byte is wrong", func(a *client) []byte {
			b := a.on(2)
			b.password = append([]byte(nil), a.password...)
			b.password[15] ^= 1
			return b.renew()
		}, "err -112"},
		{"the password is null", func(a *client) []byte { b := a.on(2); b.password = nil; return b.renew() }, "err -112"},
		{"the password is a prefix", func(a *client) []byte { b := a.on(2); b.password = a.password[:15]; return b.renew() }, "err -112"},
		{"the client has seen a later zxid", func(a *client) []byte {
			return a.on(2).connect(proto.OpRenewSession, proto.MakeZxid(1, 3))
		}, "zxid ahead"},
		{"there is no such session", func(*client) []byte { return newClient(99, 2).renew() }, "err -112"},
		{"the body cannot be read", func(a *client) []byte {
			t := proto.Txn{TxnHeader: proto.TxnHeader{Session: a.session, Type: proto.OpRenewSession, Origin: a.on(2).origin}, Body: []byte{0}}
			return t.Append(nil, 1)
		}, "err -112"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			a := newClient(10, 1)
			m.entry(a.create(), a.make("/one", proto.CreateEphemeral))
			before := dump(t, m.Machine)
			m.entry(c.renewal(a))
			if got := m.hook.last(); !strings.HasPrefix(got, "applied renewSession conn 1/2") || !strings.Contains(got, c.want) || strings.Contains(got, " row ") {
				t.Errorf("the hook heard %q, want %q and no session", got, c.want)
			}
			if after := dump(t, m.Machine); after != before {
				t.Errorf("the state changed:\n%s\nwas:\n%s", after, before)
			}
			m.entry(a.make("/two", 0))
			if got := m.hook.last(); !strings.HasPrefix(got, "applied create conn 1/1 err 0") {
				t.Errorf("the owner's next write: %q", got)
			}
		})
	}
}

func TestAConnectThatHasSeenJustWhatIsAppliedIsTaken(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/one", 0))
	m.entry(a.on(2).connect(proto.OpRenewSession, m.Zxid()))
	if got := m.hook.last(); !strings.Contains(got, " row ") {
		t.Errorf("renewal: %q", got)
	}
	m.entry(newClient(11, 3).connect(proto.OpCreateSession, m.Zxid()))
	if got := m.hook.last(); !strings.Contains(got, " row ") {
		t.Errorf("creation: %q", got)
	}
	before := dump(t, m.Machine)
	m.entry(newClient(12, 4).connect(proto.OpCreateSession, m.Zxid()+1))
	if got := m.hook.last(); !strings.HasSuffix(got, "zxid ahead") {
		t.Errorf("a creation that is ahead: %q", got)
	}
	if after := dump(t, m.Machine); after != before {
		t.Errorf("a creation that is ahead changed the state:\n%s\nwas:\n%s", after, before)
	}
}

func TestASessionIDThatIsTakenIsRefused(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/one", proto.CreateEphemeral))
	before := dump(t, m.Machine)
	thief := newClient(10, 2)
	thief.password = []byte("another password")
	m.entry(thief.create())
	if got := m.hook.last(); !strings.HasPrefix(got, "applied createSession conn 1/2 err -110") || strings.Contains(got, " row ") {
		t.Errorf("the hook heard %q, want NodeExists and no session", got)
	}
	if after := dump(t, m.Machine); after != before {
		t.Errorf("the state changed:\n%s\nwas:\n%s", after, before)
	}
}
