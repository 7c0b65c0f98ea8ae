package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"weak"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/snapshot"
	"github.com/zooraft/zooraft/internal/tree"
)

// populated is a small state with something of everything.
func populated(t testing.TB) *machine {
	m := newMachine(t)
	m.switches = proto.SwitchExtendedTypes
	a, b := newClient(10, 1), newClient(11, 2)
	ttl := proto.CreateRequest{Path: "/ttl", ACL: proto.OpenACL, Flags: proto.CreatePersistentTTL, TTL: 5000}
	m.entry(a.create(), b.create(), a.make("/a", 0), a.make("/a/e", proto.CreateEphemeral),
		a.command(proto.OpCreate2, createBody("/a/s-", proto.CreatePersistentSequential, "")),
		b.command(proto.OpCreateTTL, ttl.Append(nil, proto.OpCreateTTL)),
		b.command(proto.OpCreateContainer, createBody("/c", proto.CreateContainer, "")))
	m.term = 4
	m.entry(a.on(3).renew(), b.command(proto.OpSetData, setBody("/a", "second")))
	return m
}

func TestARestoredStateIsTheOneThatWasFrozen(t *testing.T) {
	m := populated(t)
	snap := frozen(t, m.Machine)
	other := newMachine(t)
	other.entry(newClient(77, 7).create())
	if err := other.Restore(bytes.NewReader(snap)); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, other.Machine), dump(t, m.Machine); got != want {
		t.Errorf("restored:\n%s\nfrozen:\n%s", got, want)
	}
	if other.hook.resets != 1 || other.hook.restored != 1 {
		t.Errorf("%d resets told, %d of them ended, want 1", other.hook.resets, other.hook.restored)
	}
}

// The last term is part of the state: without it the first entry after a
// restart would begin an epoch at one server and not at another.
func TestTheTermSurvivesARestore(t *testing.T) {
	m := populated(t)
	other := newMachine(t)
	if err := other.Restore(bytes.NewReader(frozen(t, m.Machine))); err != nil {
		t.Fatal(err)
	}
	other.term = m.term
	command := newClient(12, 9).create()
	m.entry(command)
	other.entry(command)
	if m.Zxid() != other.Zxid() {
		t.Errorf("zxid %v after the restore, %v without", other.Zxid(), m.Zxid())
	}
}

// At the start an older snapshot is tried next.
func TestABrokenSnapshotLeavesANewStateAsItWas(t *testing.T) {
	snap := frozen(t, populated(t).Machine)
	m := newMachine(t)
	before, tree, table := dump(t, m.Machine), m.tree, m.table
	refuse := func(name string, bad []byte) {
		if err := m.Restore(bytes.NewReader(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if m.tree != tree || m.table != table {
			t.Fatalf("%s: the state was replaced", name)
		}
	}
	for n := range snap {
		refuse(fmt.Sprintf("cut to %d of %d bytes", n, len(snap)), snap[:n])
	}
	bad := bytes.Clone(snap)
	for i := range bad {
		for _, flip := range []byte{1, 0x80} {
			bad[i] ^= flip
			refuse(fmt.Sprintf("byte %d of %d changed by %x", i, len(snap), flip), bad)
			bad[i] ^= flip
		}
	}
	if after := dump(t, m.Machine); after != before || m.hook.resets != m.hook.restored {
		t.Errorf("%d resets told, %d of them ended, and the state is\n%s\nwas:\n%s", m.hook.resets, m.hook.restored, after, before)
	}
	if err := m.Restore(bytes.NewReader(snap)); err != nil {
		t.Error(err)
	}
}

// A server that runs has no memory for two states: the former one is collected
// before the snapshot is read. Should the snapshot be broken, there is none, and
// nobody is told that there is.
func TestAUsedStateIsLetGoBeforeTheSnapshotIsRead(t *testing.T) {
	snap := frozen(t, populated(t).Machine)
	m := populated(t)
	former := weak.Make(m.tree)
	err := m.Restore(readerFunc(func([]byte) (int, error) {
		if former.Value() != nil {
			t.Error("the former tree is in memory when the snapshot is read")
		}
		return 0, io.ErrUnexpectedEOF
	}))
	if !errors.Is(err, io.ErrUnexpectedEOF) || m.hook.resets != 1 || m.hook.restored != 0 {
		t.Errorf("%d resets told, %d of them ended: %v", m.hook.resets, m.hook.restored, err)
	}
	if err := m.Restore(bytes.NewReader(snap)); err != nil || m.hook.restored != 1 {
		t.Errorf("%d resets ended: %v", m.hook.restored, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// Among them one as Apache's server writes it.
func TestASnapshotOfAnotherProgramIsRefused(t *testing.T) {
	m, reader := populated(t), newMachine(t)
	view := m.tree.Freeze()
	defer view.Release()
	content := snapshot.Content{
		Nodes: func(yield snapshot.NodeFunc) error { return view.Nodes(yield) },
		Zxid:  m.zxid, Digest: m.tree.Digest(),
	}
	for _, c := range []struct {
		name      string
		extension []byte
		digest    uint64
		want      error
	}{
		{"no block of ours", nil, content.Digest, ErrNotOurs},
		{"a block of a later version", proto.AppendInt(nil, extensionLevel+1), content.Digest, nil},
		{"an empty block", []byte{}, content.Digest, nil},
		{"a block that is cut short", extension(m.zxid, m.lastTerm, m.table.Freeze(), nil, 1)[:40], content.Digest, nil},
		{"another digest", extension(m.zxid, m.lastTerm, m.table.Freeze(), nil, 1), content.Digest + 1, ErrDigest},
	} {
		var b bytes.Buffer
		content.Extension, content.Digest = c.extension, c.digest
		if err := snapshot.Write(&b, content); err != nil {
			t.Fatal(err)
		}
		before := dump(t, reader.Machine)
		err := reader.Restore(&b)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		if after := dump(t, reader.Machine); after != before {
			t.Errorf("%s: the state changed", c.name)
		}
	}
}

// Persist runs beside Apply, and writes the state as it was at Freeze. The race
// detector judges the rest.
func TestAFrozenStateStaysAsItWasWhileWritesGoOn(t *testing.T) {
	m := populated(t)
	a := newClient(30, 30)
	m.entry(a.create())
	for i := range 300 {
		m.entry(a.make(fmt.Sprintf("/a/n%d", i), 0))
	}
	for round := range 5 {
		want := dump(t, m.Machine)
		persist, release := m.Freeze()
		var b bytes.Buffer
		done := make(chan error)
		go func() {
			defer release()
			done <- persist(&b)
		}()
		for i := range 300 {
			path := fmt.Sprintf("/a/n%d", (i*7+round)%300)
			m.entry(a.command(proto.OpSetData, setBody(path, fmt.Sprint(round, i))), a.make("/a/t-", proto.CreateEphemeralSequential),
				a.command(proto.OpSetACL, (&proto.SetACLRequest{Path: path, ACL: proto.OpenACL, Version: -1}).Append(nil)))
		}
		next := a.on(a.origin.Conn + 1)
		m.entry(next.renew())
		a = next
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		other := newMachine(t)
		if err := other.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if got := dump(t, other.Machine); got != want {
			t.Fatalf("round %d: the snapshot is not the state at the freeze", round)
		}
	}
}

// Several views may live at a time, each of its own moment.
func TestViewsOfDifferentMomentsDoNotDisturbEachOther(t *testing.T) {
	m := populated(t)
	a := newClient(30, 30)
	m.entry(a.create())
	type moment struct {
		want    string
		persist func() []byte
	}
	var moments []moment
	for i := range 5 {
		m.entry(a.make(fmt.Sprintf("/m%d", i), 0), a.command(proto.OpSetData, setBody("/a", fmt.Sprint(i))))
		want := dump(t, m.Machine)
		persist, release := m.Freeze()
		moments = append(moments, moment{want, func() []byte {
			defer release()
			var b bytes.Buffer
			if err := persist(&b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}})
	}
	for _, i := range []int{3, 0, 4, 1, 2} {
		m.entry(a.command(proto.OpSetData, setBody("/a", "after")))
		other := newMachine(t)
		if err := other.Restore(bytes.NewReader(moments[i].persist())); err != nil {
			t.Fatal(err)
		}
		if got := dump(t, other.Machine); got != moments[i].want {
			t.Errorf("moment %d:\n%s\nwant:\n%s", i, got, moments[i].want)
		}
	}
}

// What apply keeps, it copies: the commands alias the buffer of their entry.
func TestNothingOfAnEntrysBufferIsKept(t *testing.T) {
	m := populated(t)
	a := newClient(40, 40)
	commands := [][]byte{a.create(), a.make("/kept", 0), a.command(proto.OpSetData, setBody("/kept", "some data")),
		a.command(proto.OpSetACL, (&proto.SetACLRequest{Path: "/kept", Version: -1, ACL: []proto.ACL{
			{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "user:hash"}}}}).Append(nil)),
		a.command(proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{
			{Type: proto.OpCreate2, Create: proto.CreateRequest{Path: "/kept/e", Data: []byte("y"), ACL: proto.OpenACL, Flags: proto.CreateEphemeral}}})),
		own(proto.OpDeleteContainer, 0, tree.AppendReap(nil, tree.Reap{Path: "/none"}))}
	m.entry(commands...)
	before := dump(t, m.Machine)
	for _, c := range commands {
		for i := range c {
			c[i] = 0xee
		}
	}
	if after := dump(t, m.Machine); after != before {
		t.Errorf("after the buffer was reused:\n%s\nwas:\n%s", after, before)
	}
}

// A connection must not see the new state without the events between: its
// client would come back and ask only for what happened after that.
func TestNoConnectionSeesTheStateThatReplacedItsOwn(t *testing.T) {
	m := populated(t)
	box := &outbox{session: 10}
	m.read(box, proto.OpGetData, watchBody("/a", true))
	box.take()
	other := populated(t)
	other.entry(newClient(50, 50).create())
	told := false
	m.hook.onReset = func() {
		for i := range m.mu.lanes {
			if m.mu.lanes[i].mu.TryRLock() {
				t.Error("a read could come before the connections are told")
				m.mu.lanes[i].mu.RUnlock()
			}
		}
		box.gone.Store(true)
		told = true
	}
	if err := m.Restore(bytes.NewReader(frozen(t, other.Machine))); err != nil || !told {
		t.Fatalf("told %t, %v", told, err)
	}
	m.Read(box, &ReadRequest{Header: proto.RequestHeader{Type: proto.OpGetData}, Body: watchBody("/a", true), Identities: anyone}, nil)
	if items := box.take(); len(items) != 0 {
		t.Errorf("a connection that is gone was answered: %+v", items)
	}
}
