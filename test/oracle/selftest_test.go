package oracle

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// plant changes a transcript as a server with one fault would have made it.
// It returns false when the transcript has no place for it.
type plant func(items []Item) ([]Item, bool)

// on changes the first successful frame of an exchange, at an offset into its
// body (behind the 16 bytes of the reply header) or, if negative, counted from
// its end.
func on(exch string, offset int, change func(b []byte)) plant {
	return func(items []Item) ([]Item, bool) {
		for i, it := range items {
			if it.Kind != KindFrame || it.Exch != exch || len(it.Frame) <= 16 && offset >= 0 {
				continue
			}
			if exch != "event" && !bytes.Equal(it.Frame[12:16], make([]byte, 4)) {
				continue
			}
			at := 16 + offset
			if offset < 0 {
				at = len(it.Frame) + offset
			}
			change(it.Frame[at:])
			items[i] = it
			return items, true
		}
		return items, false
	}
}

func add32(b []byte) { binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+1) }
func add64(b []byte) { binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)+1) }

// where finds the first item that matches.
func where(match func(Item) bool, change func(items []Item, i int) []Item) plant {
	return func(items []Item) ([]Item, bool) {
		i := slices.IndexFunc(items, match)
		if i < 0 {
			return items, false
		}
		return change(items, i), true
	}
}

func exch(name string) func(Item) bool { return func(it Item) bool { return it.Exch == name } }

func remove(items []Item, i int) []Item { return slices.Delete(items, i, i+1) }

func twice(items []Item, i int) []Item { return slices.Insert(items, i, items[i]) }

func frame(change func(b []byte) []byte) func(items []Item, i int) []Item {
	return func(items []Item, i int) []Item {
		items[i].Frame = change(items[i].Frame)
		return items
	}
}

// failed matches a reply that has this error.
func failed(code proto.ErrCode) func(Item) bool {
	return func(it Item) bool {
		return it.Kind == KindFrame && proto.NewDecoder(it.Frame).ReplyHeader().Err == code
	}
}

func setErr(code proto.ErrCode) func(items []Item, i int) []Item {
	return frame(func(b []byte) []byte { binary.BigEndian.PutUint32(b[12:], uint32(code)); return b })
}

// Offsets into a Stat.
const (
	atCzxid, atMzxid, atCtime, atMtime, atVersion, atCversion = 0, 8, 16, 24, 32, 36
	atAversion, atOwner, atLength, atChildren, atPzxid        = 40, 44, 52, 56, 60
)

// difference is a plant with its name.
type difference struct {
	name string
	make plant
}

var planted = []difference{
	{"another error code", where(failed(proto.ErrNoNode), setErr(proto.ErrNoAuth))},
	{"success instead of an error", where(failed(proto.ErrBadVersion), setErr(proto.ErrOK))},
	{"an error instead of success", where(exch("sync"), setErr(proto.ErrNoNode))},
	{"a reply's zxid one too high", where(exch("setData"), frame(func(b []byte) []byte { add64(b[4:]); return b }))},
	{"a failed write that takes no zxid", where(failed(proto.ErrBadVersion), frame(func(b []byte) []byte { b[11]--; return b }))},
	{"an event's zxid missing", where(exch("event"), frame(func(b []byte) []byte { copy(b[4:12], bytes.Repeat([]byte{0xff}, 8)); return b }))},
	{"another xid", where(exch("getData"), frame(func(b []byte) []byte { b[3]++; return b }))},
	{"a missing event", where(exch("event"), remove)},
	{"an event twice", where(exch("event"), twice)},
	{"an event of another type", on("event", 0, add32)},
	{"an event of another state", on("event", 4, add32)},
	{"an event of another path", on("event", -1, func(b []byte) { b[0]++ })},
	{"an event behind its reply", where(exch("setWatches"), func(items []Item, i int) []Item { items[i], items[i-1] = items[i-1], items[i]; return items })},
	{"two events in the other order", func(items []Item) ([]Item, bool) {
		for i := 1; i < len(items); i++ {
			a, b := items[i-1], items[i]
			if a.Exch == "event" && b.Exch == "event" && a.Conn == b.Conn && a.Step == b.Step && !bytes.Equal(a.Frame, b.Frame) {
				items[i-1], items[i] = b, a
				return items, true
			}
		}
		return items, false
	}},
	{"an event at the wrong connection", where(exch("event"), func(items []Item, i int) []Item { items[i].Conn = "c"; return items })},
	{"an event too late", where(exch("event"), func(items []Item, i int) []Item {
		it := items[i]
		it.Step++
		return append(remove(items, i), it)
	})},
	{"a missing reply", where(exch("whoAmI"), remove)},
	{"a reply twice", where(exch("whoAmI"), twice)},
	{"a missing close", where(func(it Item) bool { return it.Kind == KindClose }, remove)},
	{"an extra close", where(exch("whoAmI"), func(items []Item, i int) []Item {
		return slices.Insert(items, i+1, Item{Step: items[i].Step, Conn: items[i].Conn, Kind: KindClose})
	})},
	{"silence instead of a close", where(func(it Item) bool { return it.Kind == KindClose }, func(items []Item, i int) []Item {
		items[i].Kind = KindSilence
		return items
	})},
	{"empty data instead of null", func(items []Item) ([]Item, bool) { return swapData(items, -1, 0) }},
	{"null data instead of empty", func(items []Item) ([]Item, bool) { return swapData(items, 0, -1) }},
	{"another byte of data", on("getData", 4, func(b []byte) { b[0] ^= 1 })},
	{"an extra byte at the end", where(exch("whoAmI"), frame(func(b []byte) []byte { return append(b, 0) }))},
	{"a byte less at the end", where(exch("getACL"), frame(func(b []byte) []byte { return b[:len(b)-1] }))},
	{"a body behind an error", where(failed(proto.ErrNoNode), frame(func(b []byte) []byte { return append(b, 0, 0, 0, 0) }))},
	{"no body where there is an int 0", where(exch("addWatch"), frame(func(b []byte) []byte { return b[:16] }))},
	{"another czxid", on("exists", atCzxid, add64)},
	{"another mzxid", on("exists", atMzxid, add64)},
	{"another pzxid", on("exists", atPzxid, add64)},
	{"a ctime that is not its transaction's", on("exists", atCtime, add64)},
	{"an mtime that is not its transaction's", on("exists", atMtime, add64)},
	{"a time in seconds", func(items []Item) ([]Item, bool) {
		for i := range items {
			if items[i].Exch == "getData" && len(items[i].Frame) > 80 {
				b := items[i].Frame[len(items[i].Frame)-proto.StatLen:]
				for _, at := range []int{atCtime, atMtime} {
					binary.BigEndian.PutUint64(b[at:], binary.BigEndian.Uint64(b[at:])/1000)
				}
				return items, true
			}
		}
		return items, false
	}},
	{"another version", on("setData", atVersion, add32)},
	{"another cversion", on("exists", atCversion, add32)},
	{"another aversion", on("setACL", atAversion, add32)},
	{"another owner", on("exists", atOwner, add64)},
	{"another dataLength", on("setData", atLength, add32)},
	{"another numChildren", on("getChildren2", -proto.StatLen+atChildren, add32)},
	{"another perms", on("getACL", 4, add32)},
	{"ACL entries in the other order", on("getACL", 0, func(b []byte) {
		first, second := slices.Clone(b[4:29]), slices.Clone(b[29:29+4+4+2+4+9])
		copy(b[4:], append(second, first...))
	})},
	{"a child renamed", on("getChildren", -1, func(b []byte) { b[0]++ })},
	{"a child fewer", on("getChildren", 3, func(b []byte) { b[0]-- })},
	{"another number", on("getAllChildrenNumber", 0, add32)},
	{"another result type in a multi", on("multi", 0, add32)},
	{"another error in a multi", on("multi", 5, add32)},
	{"a closing header less", where(exch("multi"), frame(func(b []byte) []byte { return b[:len(b)-9] }))},
	{"a null token that is empty", where(exch("sasl"), frame(func(b []byte) []byte { return append(b[:16], 0, 0, 0, 0) }))},
	{"a connect answer without the readOnly byte", where(exch("connect"), frame(func(b []byte) []byte { return b[:36] }))},
	{"a readOnly byte that was not asked for", func(items []Item) ([]Item, bool) {
		for i, it := range items {
			if it.Kind == KindConnect && len(it.Frame) == 36 {
				items[i].Frame = append(it.Frame, 0)
				return items, true
			}
		}
		return items, false
	}},
	{"another timeout", where(exch("connect"), frame(func(b []byte) []byte { add32(b[4:]); return b }))},
	{"another protocol version", where(exch("connect"), frame(func(b []byte) []byte { add32(b); return b }))},
	{"a new session instead of the old one", lastConnect(func(b []byte) { add64(b[8:]) })},
	{"a new password for an old session", lastConnect(func(b []byte) { b[25]++ })},
	{"an answer instead of a silent close", func(items []Item) ([]Item, bool) {
		for i, it := range items {
			if it.Kind == KindClose && it.Exch == "connect" {
				items[i] = Item{Step: it.Step, Conn: it.Conn, Kind: KindConnect, Exch: "connect", Frame: make([]byte, 37)}
				return items, true
			}
		}
		return items, false
	}},
}

// swapData exchanges the two forms of no data in the first getData that has
// the first one.
func swapData(items []Item, from, to int32) ([]Item, bool) {
	for i, it := range items {
		if it.Exch == "getData" && len(it.Frame) > 20 && int32(binary.BigEndian.Uint32(it.Frame[16:])) == from {
			binary.BigEndian.PutUint32(items[i].Frame[16:], uint32(to))
			return items, true
		}
	}
	return items, false
}

// lastConnect changes the answer to a resumed session.
func lastConnect(change func(b []byte)) plant {
	return func(items []Item) ([]Item, bool) {
		for i := len(items) - 1; i >= 0; i-- {
			if items[i].Kind == KindConnect {
				change(items[i].Frame)
				return items, true
			}
		}
		return items, false
	}
}

// harmless changes are those that must not be found: what is taken out.
var harmless = []struct {
	name string
	make plant
}{
	{"children in another order", on("getChildren", 0, func(b []byte) {
		copy(b[4:], append(slices.Clone(b[9:]), b[4:9]...)[:len(b)-4])
	})},
}

func clone(t Transcript) Transcript {
	t.Items = slices.Clone(t.Items)
	for i := range t.Items {
		t.Items[i].Frame = slices.Clone(t.Items[i].Frame)
	}
	return t
}

// The oracle finds every kind of planted difference, and none where the real
// server is compared with itself.
func TestPlantedDifferencesAreFound(t *testing.T) {
	f, err := os.Open(filepath.Join("corpus", "selftest.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scripts, err := Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	script := scripts[0]
	pair := NewPair(t, script.Config, "apache")
	defer pair.Close()
	var real [2]Transcript
	for i, target := range []*Target{pair.Real, pair.Ours} {
		if real[i], err = target.Run(script); err != nil {
			t.Fatal(err)
		}
	}
	if d := Compare(script, real[0], real[1], Rows, nil); d != nil {
		t.Fatalf("Apache ZooKeeper %s differs from itself: %v", peer.ApacheVersion, d)
	}
	findPlanted(t, script, real[0], real[1], planted)
	for _, p := range harmless {
		t.Run(p.name, func(t *testing.T) {
			changed := clone(real[1])
			items, ok := p.make(changed.Items)
			if !ok {
				t.Fatal("the transcript has no place for it")
			}
			changed.Items = items
			if d := Compare(script, real[0], changed, Rows, nil); d != nil {
				t.Errorf("found: %v", d)
			}
		})
	}
}

// findPlanted plants each difference into one of two transcripts that are alike.
func findPlanted(t *testing.T, script Script, first, second Transcript, all []difference) {
	t.Helper()
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			changed := clone(second)
			items, ok := p.make(changed.Items)
			if !ok {
				t.Fatal("the transcript has no place for it")
			}
			changed.Items = items
			if d := Compare(script, first, changed, Rows, nil); d == nil {
				t.Error("not found")
			}
		})
	}
}

// The real server agrees with itself on any mix of operations: what differs
// between it and zooraft is no accident of the oracle.
func TestTheRealServerAgreesWithItself(t *testing.T) {
	first := uint64(time.Now().UnixNano() % 1e9)
	for i, config := range configs {
		t.Run(name(config), func(t *testing.T) {
			t.Parallel()
			pair := NewPair(t, config, "apache")
			defer pair.Close()
			script := Generate(first+uint64(i), 300, config)
			if d, err := pair.RunTwice(script, nil); d != nil || err != nil {
				t.Errorf("%v %v", d, err)
			}
		})
	}
}
