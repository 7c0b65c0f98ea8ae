package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// checkReplicas compares what clients cannot see: the digests of their trees
// that all servers keep themselves, and of those that can be asked (crooked)
// the session tables and the sum of all nodes, each server's at the same zxid.
func (w *world) checkReplicas() {
	w.e.t.Helper()
	w.compareDigests(w.digests())
	if w.e.controls != nil {
		w.compareReplicas(w.replicas())
	}
}

// digestEvery is how many zxids lie between two digests that a server keeps.
// Source: Apache's.
const digestEvery = 128

// digests are what the servers keep, by server and zxid. There are writes until
// all of them have one of the same zxid, later than everything that was before.
func (w *world) digests() (kept map[int]map[proto.Zxid]string) {
	w.e.t.Helper()
	var begun proto.Zxid
	w.e.eventually("all servers stand at the same zxid", func() bool {
		text, same := w.zxid()
		if same {
			begun = zxidOf(w.e.t, text)
		}
		return same
	})
	w.e.eventually("all servers keep a digest of the same zxid", func() bool {
		kept = map[int]map[proto.Zxid]string{}
		for _, id := range w.e.ids {
			text, err := peer.Word(w.e.address(id), "hash")
			if err != nil {
				return false
			}
			kept[id] = digestsIn(text)
		}
		for zxid := range kept[w.e.ids[0]] {
			if zxid > begun && !slices.ContainsFunc(w.e.ids, func(id int) bool { return kept[id][zxid] == "" }) {
				return true
			}
		}
		w.pass(digestEvery)
		return false
	})
	return kept
}

// zxidOf reads srvr's "0x1000000a".
func zxidOf(t testing.TB, text string) (z proto.Zxid) {
	t.Helper()
	if _, err := fmt.Sscanf(text, "0x%x", &z); err != nil {
		t.Fatalf("the zxid %q: %v", text, err)
	}
	return z
}

// digestsIn reads what the word hash answers: "zxid: digest" in each line.
func digestsIn(text string) map[proto.Zxid]string {
	kept := map[proto.Zxid]string{}
	for _, line := range strings.Split(text, "\n") {
		var zxid proto.Zxid
		var digest string
		if n, err := fmt.Sscanf(line, "%x: %s", &zxid, &digest); err == nil && n == 2 {
			kept[zxid] = digest
		}
	}
	return kept
}

// pass lets so many zxids pass; fewer if the connection ends.
func (w *world) pass(zxids int) {
	w.e.t.Helper()
	c := w.mustDial(w.e.ids[0])
	defer c.Drop()
	var calls []*client.Call
	for range zxids {
		calls = append(calls, c.Do(proto.OpSetData, setBody("/", nil, -1)))
	}
	for _, call := range calls {
		_, _ = call.Wait(context.Background()) // who needs more comes again
	}
}

// compareDigests finds digests that differ at the same zxid.
func (w *world) compareDigests(kept map[int]map[proto.Zxid]string) {
	for i, one := range w.e.ids {
		for _, other := range w.e.ids[i+1:] {
			for zxid, digest := range kept[one] {
				if its := kept[other][zxid]; its != "" && its != digest {
					w.wrong("at zxid %v server %d has the digest %s, server %d %s", zxid, one, digest, other, its)
				}
			}
		}
	}
	w.count("comparisons of digests")
}

// replica is a server's state as a whole.
type replica struct {
	Zxid     int64
	Level    byte
	Tree     string
	Sessions []string
}

// replicas asks all servers for their states at the same zxid.
func (w *world) replicas() map[int]replica {
	w.e.t.Helper()
	replicas := map[int]replica{}
	w.e.eventually("all servers stand at the same zxid", func() bool {
		for _, id := range w.e.ids {
			body, err := w.e.ask(id, "/replica")
			var r replica
			if err != nil || json.Unmarshal(body, &r) != nil {
				return false
			}
			replicas[id] = r
			if r.Zxid != replicas[w.e.ids[0]].Zxid {
				return false
			}
		}
		body, err := w.e.ask(w.e.ids[0], "/replica")
		var again replica
		return err == nil && json.Unmarshal(body, &again) == nil && again.Zxid == replicas[w.e.ids[0]].Zxid
	})
	return replicas
}

func (w *world) compareReplicas(replicas map[int]replica) {
	one := w.e.ids[0]
	for _, id := range w.e.ids[1:] {
		a, b := replicas[one], replicas[id]
		if a.Level != b.Level {
			w.wrong("server %d has command level %d, server %d %d", one, a.Level, id, b.Level)
		}
		if a.Tree != b.Tree {
			w.wrong("server %d has the tree %s, server %d %s", one, a.Tree, id, b.Tree)
		}
		if x, y := strings.Join(a.Sessions, "\n"), strings.Join(b.Sessions, "\n"); x != y {
			w.wrong("server %d has the sessions\n%s\nserver %d\n%s", one, x, id, y)
		}
	}
	w.count("comparisons of replicas")
}
