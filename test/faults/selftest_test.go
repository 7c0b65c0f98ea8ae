package faults

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// Each check must be able to fail: it is shown what it is there to find.
func TestTheChecksFindWhatTheyAreFor(t *testing.T) {
	ok := registerOutput{known: true}
	set := func(from, to int64, value string, version int32) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: registerInput{op: proto.OpSetData, value: value, version: -1},
			Output: registerOutput{known: true, version: version}}
	}
	create := porcupine.Operation{Call: 0, Return: 1, Input: registerInput{op: proto.OpCreate, value: "a"}, Output: ok}
	read := func(from, to int64, value string, version int32) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: registerInput{op: proto.OpGetData, version: -1},
			Output: registerOutput{known: true, value: value, version: version}}
	}
	unknown := set(2, 1<<62, "c", 0)
	unknown.Output = registerOutput{}
	registers := func(history ...porcupine.Operation) func(*world) {
		return func(w *world) { w.notes.registers["/r/x"] = history; w.checkRegisters() }
	}
	for _, c := range []struct {
		name  string
		run   func(*world)
		wants string // part of the problem; "" for none
	}{
		{"a register as it should be", registers(create, set(2, 3, "b", 1), read(4, 5, "b", 1)), ""},
		{"an old value", registers(create, set(2, 3, "b", 1), read(4, 5, "a", 0)), "not linearizable"},
		{"a lost write", registers(create, set(2, 3, "b", 1), set(4, 5, "c", 1)), "not linearizable"},
		{"a request of unknown fate that had its effect", registers(create, unknown, read(4, 5, "c", 1)), ""},
		{"and one that had none", registers(create, unknown, read(4, 5, "a", 0)), ""},
		{"but not both", registers(create, unknown, read(4, 5, "c", 1), read(6, 7, "a", 0)), "not linearizable"},
		{"a whole chain", func(w *world) {
			w.notes.acknowledged["1-1"] = map[int]proto.Zxid{0: 5, 1: 6}
			w.checkChains(map[string]string{"/o/1-1-0": "", "/o/1-1-1": "", "/o/1-1-2": ""})
		}, ""},
		{"a later write without the earlier one", func(w *world) {
			w.checkChains(map[string]string{"/o/1-1-0": "", "/o/1-1-2": ""})
		}, "has 2 without 1"},
		{"a later write behind one that was refused", func(w *world) {
			w.notes.refused["1-1"] = map[int]bool{1: true}
			w.checkChains(map[string]string{"/o/1-1-0": "", "/o/1-1-2": ""})
		}, ""},
		{"a refused write that has its effect", func(w *world) {
			w.notes.refused["1-1"] = map[int]bool{0: true}
			w.checkChains(map[string]string{"/o/1-1-0": ""})
		}, "which was refused"},
		{"a lost acknowledged write", func(w *world) {
			w.notes.acknowledged["1-1"] = map[int]proto.Zxid{0: 5, 1: 6}
			w.checkChains(map[string]string{"/o/1-1-0": ""})
		}, "acknowledged and is lost"},
		{"sequence numbers that fall", func(w *world) {
			w.notes.sequential = map[string]proto.Zxid{"/s/x-1": 9, "/s/x-2": 8}
			w.checkSequence(map[string]string{"/s/x-1": "", "/s/x-2": ""})
		}, "was made before"},
		{"an acknowledged sequential node that is lost", func(w *world) {
			w.notes.sequential = map[string]proto.Zxid{"/s/x-1": 8}
			w.checkSequence(map[string]string{})
		}, "acknowledged and is lost"},
		{"a sequential name that is given twice", func(w *world) {
			w.noteSequential("/s/x-1", 8)
			w.noteSequential("/s/x-1", 9)
		}, "was given twice"},
		{"later writes with earlier zxids", func(w *world) {
			w.notes.acknowledged["1-1"] = map[int]proto.Zxid{0: 6, 1: 5}
			w.checkChains(map[string]string{"/o/1-1-0": "", "/o/1-1-1": ""})
		}, "create 1 has zxid 0x5"},
		{"a create that is refused for no reason", func(w *world) {
			w.noteChain("1-1", &client.Call{Header: proto.ReplyHeader{Err: proto.ErrNodeExists}})
		}, "create 0 was answered with"},
		{"a log that says nothing bad", func(w *world) { w.checkLog("here", "all is well") }, ""},
		{"replicas that diverge by their own word", func(w *world) {
			w.checkLog("here", "level=ERROR the replicas have diverged; ")
		}, "the replicas have diverged"},
		{"a panic", func(w *world) { w.checkLog("here", "panic: no") }, "panic: no"},
		{"digests of the same zxids", func(w *world) {
			w.compareDigests(map[int]map[proto.Zxid]string{1: digestsIn("80: -5\n100: 6\n"), 2: digestsIn("100: 6\n180: 7\n")})
		}, ""},
		{"digests that differ at the same zxid", func(w *world) {
			w.compareDigests(map[int]map[proto.Zxid]string{1: digestsIn("80: -5\n100: 6\n"), 2: digestsIn("80: -5\n100: -6\n")})
		}, "at zxid 0x100 server 1 has the digest 6, server 2 -6"},
		{"command levels that differ", func(w *world) {
			w.compareReplicas(map[int]replica{1: {Level: 1}, 2: {Level: 2}})
		}, "command level"},
		{"sessions that differ", func(w *world) {
			w.compareReplicas(map[int]replica{1: {Sessions: []string{"a"}}, 2: {Sessions: []string{"b"}}})
		}, "has the sessions"},
		{"trees that differ in what no client sees", func(w *world) {
			w.compareReplicas(map[int]replica{1: {Tree: "a"}, 2: {Tree: "b"}})
		}, "has the tree a"},
		{"replicas that differ", func(w *world) {
			w.compare(map[int]map[string]string{1: {"/a": "x"}, 2: {"/a": "y"}})
		}, "server 2 as y"},
		{"a node that one replica alone has", func(w *world) {
			w.compare(map[int]map[string]string{1: {}, 2: {"/a": "y"}})
		}, "server 2 has /a"},
	} {
		w := newWorld(&ensemble{t: t, ids: []int{1, 2}}, 0)
		c.run(w)
		w.mustHaveFound(t, c.name, c.wants)
	}
}

// mustHaveFound requires a problem of which this is a part, or none at all.
func (w *world) mustHaveFound(t *testing.T, name, wants string) {
	t.Helper()
	got := strings.Join(w.problems, "\n")
	if wants == "" && got != "" || !strings.Contains(got, wants) {
		t.Errorf("%s: found %q, want %q", name, got, wants)
	}
}
