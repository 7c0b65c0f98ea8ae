package state

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

const reconfigOn = proto.SwitchReconfig | proto.SwitchEnsemble | proto.SwitchSkipACL

var threeServers = proto.Membership{Members: []proto.Member{
	{ID: 1, Addresses: []proto.PeerAddress{{Host: "a", QuorumPort: 1, ElectionPort: 2}}, ClientHost: "0.0.0.0", ClientPort: 3},
	{ID: 2, Addresses: []proto.PeerAddress{{Host: "b", QuorumPort: 1, ElectionPort: 2}}, ClientHost: "0.0.0.0", ClientPort: 3},
	{ID: 3, Addresses: []proto.PeerAddress{{Host: "c", QuorumPort: 1, ElectionPort: 2}}, ClientHost: "0.0.0.0", ClientPort: 3},
}}

// ofThree is the state of one of three servers, with a client.
func ofThree(t *testing.T, switches uint32) (*machine, *client) {
	t.Helper()
	m := newMachine(t)
	m.switches = switches
	m.entry(own(proto.OpReconfig, 0, PublishBody(threeServers)))
	a := newClient(10, 1)
	m.entry(a.create())
	m.hook.lines = nil
	return m, a
}

func leave(id string, version int64) []byte {
	r := proto.ReconfigRequest{Joining: proto.NullString, Leaving: id, NewMembers: proto.NullString, CurConfigID: version}
	return r.Append(nil)
}

func (m *machine) configText() string { return string(m.tree.ConfigText()) }

func TestTheFirstMembershipGetsAVersionOnlyWhereReconfigIsAllowed(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches uint32
		version  string
	}{
		{"allowed", reconfigOn, "version=100000000"},
		{"not allowed", proto.SwitchEnsemble, "version=0"},
	} {
		m, _ := ofThree(t, c.switches)
		if text := m.configText(); !strings.HasSuffix(text, c.version) {
			t.Errorf("%s: %q, want %s", c.name, text, c.version)
		}
		if m.zxid != proto.MakeZxid(1, 1) { // the client's session took one
			t.Errorf("%s: zxid %v", c.name, m.zxid)
		}
	}
}

func TestAConfiguredMembershipDoesNotUndoAReconfig(t *testing.T) {
	m, a := ofThree(t, reconfigOn)
	m.entry(a.command(proto.OpReconfig, leave("3", -1)))
	m.entry(own(proto.OpReconfig, 0, FinishBody(m.reconfig.ID)))
	before := m.configText()
	m.entry(own(proto.OpReconfig, 0, PublishBody(threeServers)))
	if m.configText() != before {
		t.Errorf("%q, want %q", m.configText(), before)
	}
}

// A change takes one zxid, answers once, and one-shot watches fire once.
func TestAReconfigIsOneChangeToItsClients(t *testing.T) {
	m, a := ofThree(t, reconfigOn)
	box := &outbox{session: 10}
	r := ReadRequest{Header: proto.RequestHeader{Xid: 1, Type: proto.OpGetData}, Body: watchBody(proto.PathConfig, true), Identities: anyone}
	m.Read(box, &r, nil)
	before := m.zxid
	m.entry(a.command(proto.OpReconfig, leave("3", int64(proto.MakeZxid(1, 0)))))
	if m.reconfig == nil || m.zxid != before || len(m.hook.lines) != 0 {
		t.Fatalf("under way %v, zxid %v, said %v", m.reconfig, m.zxid, m.hook.lines)
	}
	id := m.reconfig.ID
	b := newClient(11, 2)
	m.entry(b.create(), b.command(proto.OpReconfig, leave("2", -1)))
	if last := m.hook.lines[len(m.hook.lines)-1]; !strings.Contains(last, "err -14") {
		t.Errorf("a second one meanwhile: %s", last)
	}
	m.hook.lines = nil
	before = m.zxid
	m.entry(own(proto.OpReconfig, 0, AcceptBody(id)))
	m.entry(own(proto.OpReconfig, 0, FinishBody(id+1000)))
	if m.reconfig == nil || !m.reconfig.Accepted || len(m.hook.lines) != 0 {
		t.Fatalf("after accept and a step of another change: %v, said %v", m.reconfig, m.hook.lines)
	}
	m.entry(own(proto.OpReconfig, 0, FinishBody(id)), own(proto.OpReconfig, 0, FinishBody(id)))
	want := "server.1=a:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:participant;0.0.0.0:3\nversion=100000004"
	if m.configText() != want || m.reconfig != nil || m.zxid != before+1 {
		t.Errorf("%q at %v, still under way: %v", m.configText(), m.zxid, m.reconfig)
	}
	if len(m.hook.lines) != 1 || !strings.Contains(m.hook.lines[0], "applied reconfig conn") || !strings.Contains(m.hook.lines[0], "err 0") {
		t.Errorf("said %q, want one answer", m.hook.lines)
	}
	events := 0
	for _, it := range box.items {
		if it.Xid == proto.XidNotification {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d events, want 1", events)
	}
}

func TestAnAbandonedReconfigIsAnsweredAndChangesNothing(t *testing.T) {
	m, a := ofThree(t, reconfigOn)
	before := m.configText()
	m.entry(a.command(proto.OpReconfig, leave("3", -1)))
	m.entry(own(proto.OpReconfig, 0, AbandonBody(m.reconfig.ID, proto.ErrNewConfigNoQuorum)))
	if m.configText() != before || m.reconfig != nil {
		t.Errorf("%q, under way %v", m.configText(), m.reconfig)
	}
	if len(m.hook.lines) != 1 || !strings.Contains(m.hook.lines[0], "err -13") {
		t.Errorf("said %q", m.hook.lines)
	}
	m.entry(a.command(proto.OpReconfig, leave("3", -1)))
	if m.reconfig == nil {
		t.Error("the next one does not begin")
	}
}

// A change under way outlives a snapshot, and the client that asked is answered
// by whoever finishes it.
func TestAReconfigUnderWayIsInTheSnapshot(t *testing.T) {
	m, a := ofThree(t, reconfigOn)
	m.entry(a.command(proto.OpReconfig, leave("3", -1)))
	m.entry(own(proto.OpReconfig, 0, AcceptBody(m.reconfig.ID)))
	again := newMachine(t)
	again.switches = reconfigOn
	if err := again.Restore(bytes.NewReader(frozen(t, m.Machine))); err != nil {
		t.Fatal(err)
	}
	if again.reconfig == nil || !again.reconfig.Accepted || again.reconfig.ID != m.reconfig.ID ||
		again.reconfig.Next.String() != m.reconfig.Next.String() {
		t.Fatalf("restored %+v, want %+v", again.reconfig, m.reconfig)
	}
	for _, one := range []*machine{m, again} {
		one.hook.lines = nil
		if err := one.Apply(99, m.lastTerm, 5, reconfigOn, [][]byte{own(proto.OpReconfig, 0, FinishBody(m.reconfigID(again)))}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := dump(t, again.Machine), dump(t, m.Machine); got != want {
		t.Errorf("finished after a restart:\n%s", firstDifference(got, want))
	}
	if strings.Join(again.hook.lines, "\n") != strings.Join(m.hook.lines, "\n") {
		t.Errorf("said %q, want %q", again.hook.lines, m.hook.lines)
	}
}

// reconfigID is the change that either of two machines has under way.
func (m *machine) reconfigID(other *machine) uint64 {
	if m.reconfig != nil {
		return m.reconfig.ID
	}
	return other.reconfig.ID
}

// What a reconfig may not ask is answered by apply, in Apache's order.
func TestAReconfigIsJudgedByWhatTheLogSays(t *testing.T) {
	full := func(members string) []byte {
		r := proto.ReconfigRequest{Joining: proto.NullString, Leaving: proto.NullString, NewMembers: members, CurConfigID: -1}
		return r.Append(nil)
	}
	join := func(joining string) []byte {
		r := proto.ReconfigRequest{Joining: joining, Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1}
		return r.Append(nil)
	}
	const standalone = reconfigOn | proto.SwitchStandalone
	const noRight = proto.SwitchReconfig | proto.SwitchEnsemble
	text := func(r proto.ReconfigRequest) []byte { return r.Append(nil) }
	for _, c := range []struct {
		name     string
		switches uint32
		body     []byte
		want     proto.ErrCode
	}{
		{"disabled", proto.SwitchEnsemble, leave("3", -1), proto.ErrReconfigDisabled},
		{"a server alone", proto.SwitchReconfig, leave("3", -1), proto.ErrUnimplemented},
		{"a record that is cut short", reconfigOn, []byte{0, 0}, proto.ErrMarshalling},
		{"another version", reconfigOn, leave("3", 5), proto.ErrBadVersion},
		{"one participant is left, with standaloneEnabled", standalone, leave("2,3", -1), proto.ErrBadArguments},
		{"nobody is left", reconfigOn, leave("1,2,3", -1), proto.ErrBadArguments},
		{"a full list of observers", reconfigOn, full("server.1=a:1:2:observer;3"), proto.ErrMarshalling},
		{"a full list of one and an observer, with standaloneEnabled", standalone, full("server.1=a:1:2;3,server.2=b:1:2:observer;3"), proto.ErrMarshalling},
		{"several addresses in a full list, not enabled", reconfigOn, full("server.1=a:1:2|d:1:2;3,server.2=b:1:2;3"), proto.ErrBadArguments},
		{"several addresses with different roles", reconfigOn | proto.SwitchMultiAddress, join("server.4=d:1:2:observer|e:1:2:participant;7"), proto.ErrBadArguments},
		{"several addresses, one of which is another server's", reconfigOn | proto.SwitchMultiAddress, join("server.4=d:1:2|b:1:9;7"), proto.ErrBadArguments},
		{"a full list with a group", reconfigOn, full("server.1=a:1:2;3\ngroup.1=1"), proto.ErrBadArguments},
		{"a number that is too large", reconfigOn, join("server.256=d:1:2;3"), proto.ErrBadArguments},
		{"an address of another server", reconfigOn, join("server.4=A:2:9;7"), proto.ErrBadArguments},
		{"a number that is no number", reconfigOn, join("server.x=d:1:2;3"), proto.ErrMarshalling},
		{"without the right to", noRight, leave("3", -1), proto.ErrNoAuth},
		// Of two reasons the one that Apache looks at first is told.
		{"disabled, and alone", 0, leave("x", 5), proto.ErrReconfigDisabled},
		{"a server alone, and another version", proto.SwitchReconfig, leave("x", 5), proto.ErrUnimplemented},
		{"another version, and a number that is none", noRight, leave("x", 5), proto.ErrBadVersion},
		{"leaving before joining", noRight, text(proto.ReconfigRequest{Joining: "server.4", Leaving: "x", NewMembers: proto.NullString, CurConfigID: -1}), proto.ErrMarshalling},
		{"a full list before the others", noRight, text(proto.ReconfigRequest{Joining: "server.4", Leaving: "x", NewMembers: "nothing", CurConfigID: -1}), proto.ErrBadArguments},
		{"no server line, without the right to", noRight, join("server.4"), proto.ErrBadArguments},
		{"an address of another server, without the right to", noRight, join("server.999=A:2:9;7"), proto.ErrBadArguments},
		{"nobody is left, without the right to", noRight, leave("1,2,3", -1), proto.ErrBadArguments},
		// What only we refuse comes last.
		{"a number that is too large, without the right to", noRight, join("server.999=d:1:2:observer;3"), proto.ErrNoAuth},
		{"a number below 0, without the right to", noRight, join("server.-9=d:1:2:observer;3"), proto.ErrNoAuth},
		{"a full list with a group, without the right to", noRight, full("server.1=a:1:2;3\ngroup.1=1"), proto.ErrNoAuth},
		{"one participant with too large a number, with standaloneEnabled", standalone &^ proto.SwitchSkipACL, full("server.999=d:1:2;3"), proto.ErrBadArguments},
	} {
		m, a := ofThree(t, c.switches)
		got := proto.ErrCode(1)
		m.hook.onApplied = func(_ *proto.TxnHeader, o *Outcome) bool { got = o.Result.Err; return false }
		m.entry(a.command(proto.OpReconfig, c.body))
		if got != c.want || m.reconfig != nil {
			t.Errorf("%s: %v, want %v; under way: %v", c.name, got, c.want, m.reconfig)
		}
	}
}

// What a reconfig may ask for is what the leader's switch said when it was
// proposed, so that all replicas take or refuse it.
func TestAReconfigGivesAMemberSeveralAddresses(t *testing.T) {
	m, a := ofThree(t, reconfigOn|proto.SwitchMultiAddress)
	m.entry(a.command(proto.OpReconfig, (&proto.ReconfigRequest{
		Joining: "server.4=e:1:2|d:3:4:observer;7", Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1}).Append(nil)))
	if m.reconfig == nil {
		t.Fatal("it is not under way")
	}
	if one, _ := m.reconfig.Next.Get(4); one.String() != "d:3:4|e:1:2:observer;0.0.0.0:7" {
		t.Errorf("the member is %s", one)
	}
}
