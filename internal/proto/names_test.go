package proto

import (
	"math"
	"testing"
)

func TestWhatAPersistedOwnerStandsFor(t *testing.T) {
	for _, c := range []struct {
		owner int64
		kind  OwnerKind
		ttl   int64
		wire  int64
	}{
		{0, OwnerNone, 0, 0},
		{1, OwnerSession, 0, 1},
		{0x0100_0033_2a7f_0000, OwnerSession, 0, 0x0100_0033_2a7f_0000},
		{-0x0200_0000_0000_0000, OwnerSession, 0, -0x0200_0000_0000_0000}, // server 254
		{ContainerOwner, OwnerContainer, 0, 0},
		{TTLOwner(1), OwnerTTL, 1, 0},
		{TTLOwner(MaxTTLMillis), OwnerTTL, MaxTTLMillis, 0},
		{-1, OwnerTTL, MaxTTLMillis, 0},
	} {
		kind, ttl := ClassifyOwner(c.owner)
		if kind != c.kind || ttl != c.ttl {
			t.Errorf("%x: kind %d, ttl %d, want %d and %d", uint64(c.owner), kind, ttl, c.kind, c.ttl)
		}
		st := StatPersisted{EphemeralOwner: c.owner}
		if got := st.Wire(0, 0).EphemeralOwner; got != c.wire {
			t.Errorf("%x: clients see %x, want %x", uint64(c.owner), uint64(got), uint64(c.wire))
		}
	}
}

func TestClientsSeeCreatesAndDeletesInCversion(t *testing.T) {
	for _, c := range []struct{ persisted, children, want int32 }{
		{0, 0, 0}, {0, 1, -1}, {0, 2, -2}, {3, 1, 5}, {3, 3, 3}, {math.MaxInt32, 1, -3},
	} {
		st := StatPersisted{CVersion: c.persisted}
		if got := st.Wire(0, int(c.children)).CVersion; got != c.want {
			t.Errorf("persisted %d with %d children: %d, want %d", c.persisted, c.children, got, c.want)
		}
	}
}

func TestZxidsAreMadeOfEpochAndCounter(t *testing.T) {
	for _, c := range []struct {
		epoch, counter uint32
		text           string
	}{{0, 0, "0x0"}, {1, 0, "0x100000000"}, {1, 0xffffffff, "0x1ffffffff"}, {0xffffffff, 2, "0xffffffff00000002"}} {
		z := MakeZxid(c.epoch, c.counter)
		if z.Epoch() != c.epoch || z.Counter() != c.counter || z.String() != c.text {
			t.Errorf("%+v became %v with epoch %d and counter %d", c, z, z.Epoch(), z.Counter())
		}
	}
	if got := SessionID(-1).String(); got != "0xffffffffffffffff" {
		t.Errorf("session %s", got)
	}
}

func TestAPathIsSplitAtItsLastSlash(t *testing.T) {
	for _, c := range []struct {
		path, parent, name string
		ok                 bool
	}{
		{"/a", "/", "a", true}, {"/a/b", "/a", "b", true}, {"/a/", "/a", "", true}, {"//", "/", "", true},
		{"/", "", "", false}, {"", "", "", false}, {"a", "", "", false}, {"a/b", "a", "b", true},
	} {
		parent, name, ok := SplitPath(c.path)
		if parent != c.parent || name != c.name || ok != c.ok {
			t.Errorf("%q: %q, %q, %t", c.path, parent, name, ok)
		}
	}
}

// The codes and names that clients and tools know.
func TestNumbersAndNamesOfTheProtocol(t *testing.T) {
	for code, want := range map[ErrCode]string{
		0: "ok", -4: "ConnectionLoss", -5: "MarshallingError", -6: "Unimplemented", -8: "BadArguments", -101: "NoNode", -102: "NoAuth",
		-103: "BadVersion", -108: "NoChildrenForEphemerals", -110: "NodeExists", -111: "Directory not empty", -112: "Session expired",
		-114: "InvalidACL", -115: "AuthFailed", -118: "Session moved", -121: "No such watcher", -123: "Reconfig is disabled",
		-125: "Quota has exceeded", -127: "Op throttled due to high load", -999: "Unknown error -999",
	} {
		if got := code.String(); got != want {
			t.Errorf("error %d is %q, want %q", code, got, want)
		}
	}
	for op, want := range map[OpCode]struct {
		name, stat string
		write      bool
	}{
		1: {"create", "CREA", true}, 4: {"getData", "GETD", false}, 9: {"sync", "SYNC", true}, 11: {"ping", "PING", false}, 14: {"multi", "MULT", true},
		22: {"multiRead", "MLTR", false}, 103: {"getEphemerals", "GETE", false}, 107: {"whoAmI", "HOMI", false}, -11: {"closeSession", "CLOS", true},
		999: {"unknown 999", "NA", false}, 10: {"unknown 10", "NA", false},
	} {
		if op.String() != want.name || op.StatName() != want.stat || op.IsWrite() != want.write {
			t.Errorf("op %d: %q, %q, write %t", op, op, op.StatName(), op.IsWrite())
		}
	}
	for e, want := range map[EventType]string{-1: "None", 1: "NodeCreated", 2: "NodeDeleted", 3: "NodeDataChanged", 4: "NodeChildrenChanged", 9: "Unknown"} {
		if got := e.String(); got != want {
			t.Errorf("event %d is %q, want %q", e, got, want)
		}
	}
}

func TestWhoAmIShowsNoSecrets(t *testing.T) {
	for id, want := range map[ID]string{
		{Scheme: "digest", ID: "ben:PC0Z"}: "ben", {Scheme: "digest", ID: ":PC0Z"}: "", {Scheme: "ip", ID: "::1"}: "::1",
		{Scheme: "sasl", ID: "u@R"}: "u@R", {Scheme: "x509", ID: "CN=u"}: "CN=u", {Scheme: "super"}: "", {Scheme: "none", ID: "x"}: "",
	} {
		if got := id.UserName(); got != want {
			t.Errorf("%+v: %q, want %q", id, got, want)
		}
	}
}
