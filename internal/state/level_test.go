package state

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/snapshot"
)

// supporting is a new machine of a build that supports a level.
func supporting(t testing.TB, level byte) *machine {
	m := newMachine(t)
	m.Support(level)
	return m
}

func raise(level byte) []byte { return own(proto.OpRaiseLevel, 0, RaiseBody(level)) }

// inVersion is a command as a build at that level encodes it.
func inVersion(version byte, command []byte) []byte {
	command[0] = version
	return command
}

func TestTheCommandLevelRisesAndNeverFalls(t *testing.T) {
	m := supporting(t, 3)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/a", 0))
	zxid := m.Zxid()
	for _, c := range []struct {
		name    string
		command []byte
		want    byte
	}{
		{"to what it is", raise(1), 1},
		{"to 2", raise(2), 2},
		{"to 2 again, as a new leader may ask", raise(2), 2},
		{"down", raise(1), 2},
		{"down to nothing", raise(0), 2},
		{"without a level", own(proto.OpRaiseLevel, 0, nil), 2},
		{"to below zero", own(proto.OpRaiseLevel, 0, proto.AppendInt(nil, -1)), 2},
		{"to 3", raise(3), 3},
	} {
		m.entry(c.command)
		if got := m.CommandLevel(); got != c.want {
			t.Errorf("%s: level %d, want %d", c.name, got, c.want)
		}
	}
	if m.Zxid() != zxid {
		t.Errorf("zxid %v, was %v: clients would see that the level was raised", m.Zxid(), zxid)
	}
	// What was encoded before the raise may follow it in the log.
	m.entry(inVersion(3, a.make("/b", 0)), inVersion(1, a.make("/c", 0)), inVersion(2, a.make("/d", 0)))
	m.View(func(v View) {
		for _, path := range []string{"/b", "/c", "/d"} {
			if _, found := v.Tree.Stat(path); !found {
				t.Errorf("%s is missing", path)
			}
		}
	})
}

// An older build is stopped by what it does not support, before the entry's
// first command takes effect, and says both numbers.
func TestAnEntryAboveTheSupportedLevelHasNoEffect(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry func(a *client) [][]byte
		want  error
		says  string
	}{
		{"a raise", func(*client) [][]byte { return [][]byte{raise(2)} }, ErrCommandLevel, "it is 2, and 1 is supported"},
		{"a raise behind a write", func(a *client) [][]byte { return [][]byte{a.make("/x", 0), raise(7)} }, ErrCommandLevel, "it is 7, and 1 is supported"},
		{"a new command behind a write", func(a *client) [][]byte { return [][]byte{a.make("/x", 0), inVersion(2, a.make("/y", 0))} },
			proto.ErrCommandVersion, "version 2, newest known is 1"},
	} {
		m := newMachine(t)
		a := newClient(10, 1)
		m.entry(a.create())
		before, entries := dump(t, m.Machine), m.hook.entries
		err := m.Apply(9, m.term+1, m.now, m.switches, c.entry(a))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if after := dump(t, m.Machine); after != before || m.hook.entries != entries {
			t.Errorf("%s: the state is now\n%s\nwas:\n%s", c.name, after, before)
		}
	}
}

// raised is a state at level 2 with a change of the membership under way if
// that is asked for.
func raised(t *testing.T, changing bool) *machine {
	m := supporting(t, 2)
	a := newClient(10, 1)
	m.entry(a.create(), a.make("/a", proto.CreateEphemeral), raise(2))
	if changing {
		m.reconfig = &Reconfig{ID: 7, Next: proto.Membership{}, Accepted: true, asker: proto.TxnHeader{Session: 10, Cxid: 5}}
	}
	return m
}

func TestTheCommandLevelSurvivesARestore(t *testing.T) {
	for name, changing := range map[string]bool{"plain": false, "while the membership changes": true} {
		m := raised(t, changing)
		other := supporting(t, 2)
		if err := other.Restore(bytes.NewReader(frozen(t, m.Machine))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := dump(t, other.Machine), dump(t, m.Machine); got != want {
			t.Errorf("%s: restored\n%s\nfrozen\n%s", name, got, want)
		}
		if (other.reconfig != nil) != changing || changing && (other.reconfig.ID != 7 || other.reconfig.asker.Cxid != 5) {
			t.Errorf("%s: the change of the membership is %+v", name, other.reconfig)
		}
	}
	back := raised(t, false)
	if err := back.Restore(bytes.NewReader(frozen(t, populated(t).Machine))); err != nil || back.CommandLevel() != 1 {
		t.Errorf("a snapshot without a level: level %d, %v", back.CommandLevel(), err)
	}
}

// An older build refuses a snapshot of a level that it does not support,
// whatever follows the level, and keeps its state.
func TestASnapshotAboveTheSupportedLevelIsRefused(t *testing.T) {
	m := newMachine(t)
	before := dump(t, m.Machine)
	for name, snap := range map[string][]byte{
		"level 2":                     frozen(t, raised(t, false).Machine),
		"with what nobody knows here": withBlock(t, proto.AppendInt(proto.AppendInt(nil, extensionLevel), 9)),
	} {
		err := m.Restore(bytes.NewReader(snap))
		if !errors.Is(err, ErrCommandLevel) || !strings.Contains(err.Error(), "and 1 is supported at most") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := dump(t, m.Machine); after != before || m.hook.resets != m.hook.restored {
		t.Errorf("%d resets told, %d of them ended, and the state is\n%s", m.hook.resets, m.hook.restored, after)
	}
}

// withBlock is a snapshot with any block of ours.
func withBlock(t *testing.T, block []byte) []byte {
	t.Helper()
	view := newMachine(t).tree.Freeze()
	defer view.Release()
	var out bytes.Buffer
	c := snapshot.Content{Nodes: func(yield snapshot.NodeFunc) error { return view.Nodes(yield) }, Extension: block}
	if err := snapshot.Write(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Until the level rises a newer build writes the snapshots of the older one, so
// that the older one can be put back.
func TestANewerBuildWritesTheOldSnapshotsUntilTheLevelRises(t *testing.T) {
	for name, c := range map[string]struct {
		reconfig *Reconfig
		level    byte
		want     int32
	}{
		"plain":                        {nil, 1, extensionPlain},
		"while the membership changes": {&Reconfig{}, 1, extensionReconfig},
		"at level 2":                   {nil, 2, extensionLevel},
	} {
		block := extension(3, 1, nil, c.reconfig, c.level)
		if got := proto.NewDecoder(block).Int(); got != c.want {
			t.Errorf("%s: block version %d, want %d", name, got, c.want)
		}
	}
}
