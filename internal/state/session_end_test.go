package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/watch"
)

func TestAnExpiryOfAnOlderGenerationDoesNothing(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/one", proto.CreateEphemeral))
	b := a.on(2)
	m.entry(b.renew())
	before := dump(t, m.Machine)
	heard := len(m.hook.lines)
	m.entry(expire(a.session, 1), expire(a.session, 3), expire(a.session, 0), expire(99, 1),
		own(proto.OpExpireSession, a.session, nil))
	if after := dump(t, m.Machine); after != before {
		t.Errorf("the state changed:\n%s\nwas:\n%s", after, before)
	}
	if len(m.hook.lines) != heard {
		t.Errorf("the hook heard %q", m.hook.lines[heard:])
	}
	m.entry(expire(a.session, 2))
	if got, want := m.hook.last(), "closed 0xa of conn 1/2"; got != want {
		t.Errorf("the hook heard %q, want %q", got, want)
	}
	if got, want := m.Zxid(), proto.MakeZxid(1, 3); got != want {
		t.Errorf("zxid %v, want %v: an expiry takes one", got, want)
	}
	m.entry(expire(a.session, 2)) // proposed twice
	if got, want := m.Zxid(), proto.MakeZxid(1, 3); got != want {
		t.Errorf("zxid %v after the second, want still %v", got, want)
	}
}

// Case 34: whoever learns of the end, by the hook or by an event, finds row and
// ephemerals gone, all of them.
func TestTheEndOfASessionAndOfItsEphemeralsIsOneStep(t *testing.T) {
	for _, expired := range []bool{true, false} {
		t.Run(fmt.Sprint("expired ", expired), func(t *testing.T) {
			m := newMachine(t)
			a := newClient(10, 1)
			m.entry(a.create(), a.make("/svc", 0))
			paths := []string{"/svc/1", "/svc/2", "/svc/3", "/top"}
			for _, p := range paths {
				m.entry(a.make(p, proto.CreateEphemeral))
			}
			look := func(moment string) {
				if m.table.Get(a.session) != nil {
					t.Errorf("%s: the row is there", moment)
				}
				for _, p := range paths {
					if _, found := m.tree.Stat(p); found {
						t.Errorf("%s: %s is there", moment, p)
					}
				}
			}
			w := &witness{at: func(e proto.WatcherEvent) { look(e.Type.String() + " " + e.Path) }}
			m.Watches().AddRecursive("/", w)
			m.Watches().AddChild("/svc", w)
			m.hook.onClosed = func(proto.SessionID) { look("SessionClosed") }
			m.hook.onApplied = func(*proto.TxnHeader, *Outcome) bool { look("Applied"); return false }
			before := m.Zxid()
			if expired {
				m.entry(expire(a.session, 1))
			} else {
				m.entry(a.command(proto.OpCloseSession, nil))
			}
			if m.Zxid() != before+1 {
				t.Errorf("zxid %v, want one more than %v", m.Zxid(), before)
			}
			want := []string{
				"NodeDeleted /svc/1", "NodeChildrenChanged /svc", "NodeDeleted /svc/2", "NodeDeleted /svc/3", "NodeDeleted /top"}
			if !slices.Equal(w.saw, want) {
				t.Errorf("events %q, want %q", w.saw, want)
			}
			wantLines := []string{"closed 0xa of conn 1/1"}
			if !expired {
				wantLines = []string{"closed 0xa of conn 0/0", "applied closeSession conn 1/1 err 0"}
			}
			got := m.hook.lines[len(m.hook.lines)-len(wantLines):]
			for i := range got {
				if !strings.HasPrefix(got[i], wantLines[i]) {
					t.Errorf("the hook heard %q, want %q", got, wantLines)
				}
			}
		})
	}
}

// witness is a watcher that looks in at the moment of an event.
type witness struct {
	saw []string
	at  func(proto.WatcherEvent)
}

func (w *witness) Notify(e proto.WatcherEvent, _ proto.Zxid, _ watch.ACL) {
	w.saw = append(w.saw, e.Type.String()+" "+e.Path)
	w.at(e)
}
func (w *witness) Gone() bool { return false }

// Case 34: a client that is told 'expired' and re-registers at once never finds
// its own old node in the way.
func TestAnExpiredClientCanRegisterAgainAtOnce(t *testing.T) {
	m := newMachine(t)
	boss := newClient(1, 1)
	m.entry(boss.create(), boss.make("/svc", 0))
	old := newClient(10, 10)
	m.entry(old.create(), old.make("/svc/1", proto.CreateEphemeral))
	for i := range uint64(500) {
		next := newClient(proto.SessionID(11+i), 11+i)
		m.entry(expire(old.session, 1), old.renew(), next.create(), next.make("/svc/1", proto.CreateEphemeral))
		lines := m.hook.lines[len(m.hook.lines)-4:]
		for j, want := range []string{"applied renewSession", "moved", "applied createSession", "applied create"} {
			if !strings.HasPrefix(lines[j], want) {
				t.Fatalf("round %d: the hook heard %q", i, lines)
			}
		}
		if !strings.Contains(lines[0], "err -112") || !strings.Contains(lines[3], "err 0") {
			t.Fatalf("round %d: the hook heard %q", i, lines)
		}
		old = next
	}
}

// Case 19: an ephemeral handed over in one multi outlives its former owner.
func TestAnEphemeralHandedOverInAMultiOutlivesItsFormerOwner(t *testing.T) {
	m := newMachine(t)
	a, b := newClient(10, 1), newClient(11, 2)
	m.entry(a.create(), b.create(), a.make("/svc", 0), a.make("/svc/1", proto.CreateEphemeral))
	m.entry(b.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
		{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/svc/1", Version: -1}},
		{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/svc/1", ACL: proto.OpenACL, Flags: proto.CreateEphemeral}},
	})), expire(a.session, 1))
	m.View(func(v View) {
		s, found := v.Tree.Stat("/svc/1")
		if !found || s.EphemeralOwner != int64(b.session) {
			t.Errorf("/svc/1 is there %t with owner %x, want owner %v", found, s.EphemeralOwner, b.session)
		}
	})
}

func TestAWriteOfASessionThatIsOverIsRefusedAndTakesAZxid(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), expire(a.session, 1))
	before := m.Zxid()
	m.entry(a.make("/late", 0), a.command(proto.OpCloseSession, nil), a.command(proto.OpSync, deleteBody("/x")))
	for i, l := range m.hook.lines[len(m.hook.lines)-3:] {
		if !strings.Contains(l, "err -112") {
			t.Errorf("command %d: the hook heard %q", i, l)
		}
	}
	if got := m.Zxid(); got != before+2 {
		t.Errorf("zxid %v, want %v: the sync takes none", got, before+2)
	}
	m.View(func(v View) {
		if _, found := v.Tree.Stat("/late"); found {
			t.Error("/late is there")
		}
	})
}

func TestACloseThatTheServerItselfProposesNeedsNoSession(t *testing.T) {
	m := newMachine(t)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/one", proto.CreateEphemeral))
	m.entry(own(proto.OpCloseSession, a.session, nil), own(proto.OpCloseSession, a.session, nil))
	m.View(func(v View) {
		if v.Table.Len() != 0 || v.Tree.EphemeralCount() != 0 {
			t.Errorf("%d sessions, %d ephemerals", v.Table.Len(), v.Tree.EphemeralCount())
		}
	})
}
