package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// Hashes from a small range make long runs of full slots that wrap around the
// end; after every removal each entry must still be found from its home.
func TestIndexFindsEntriesThroughCollisions(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if *seedFlag != 0 {
		seed = *seedFlag
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x := newIndex()
	has := func(h uint64, i uint32) bool {
		s := x.shard(h)
		if len(s.slots) == 0 {
			return false
		}
		for p := s.home(uint32(h >> 32)); s.slots[p] != 0; p = s.after(p) {
			if s.slots[p] == h>>32<<32|uint64(i) {
				return true
			}
		}
		return false
	}
	want := map[uint32]uint64{}
	next := uint32(1)
	for step := range 3000 {
		if len(want) < 40 && rng.IntN(2) == 0 {
			h := uint64(rng.IntN(16))<<60 | uint64(rng.IntN(2)) // few homes, up to the end
			x.add(h, next)
			want[next] = h
			next++
		} else {
			for i, h := range want {
				x.remove(h, i)
				x.remove(h, i) // not there any more: nothing happens
				delete(want, i)
				if has(h, i) {
					t.Fatalf("step %d: %d is still found", step, i)
				}
				break
			}
		}
		for i, h := range want {
			if !has(h, i) {
				t.Fatalf("step %d: %d with hash %x is lost", step, i, h)
			}
		}
	}
	count := 0
	for i := range x.shards {
		count += x.shards[i].count
	}
	if count != len(want) {
		t.Errorf("%d entries are counted, %d are there", count, len(want))
	}
	newIndex().remove(5, 1)
}

func TestAPathIsComparedToTheRoot(t *testing.T) {
	s := newScript()
	for _, l := range []string{"create /a x", "create /a/b x", "create /a/b/c x"} {
		s.run(l)
	}
	i := s.tree.find("/a/b/c")
	for path, want := range map[string]bool{
		"/a/b/c": true, "/a/x/c": false, "/x/a/b/c": false, "a/b/c": false, "/b/c": false, "c": false, "": false, "/a/bb/c": false, "/a/b/cc": false,
	} {
		if got := s.tree.hasPath(i, path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestReapableStopsAtItsLimit(t *testing.T) {
	s := newScript()
	for i := range 10 {
		s.run(fmt.Sprintf("ttl /t%d x flags=5 ttl=1", i))
	}
	for limit, want := range map[int]int{0: 0, 3: 3, 10: 10, 11: 10} {
		if got := len(s.tree.Reapable(1<<40, 0, limit)); got != want {
			t.Errorf("limit %d: %d nodes, want %d", limit, got, want)
		}
	}
}

func TestIterationStopsWhenTheReaderDoes(t *testing.T) {
	s := newScript()
	for _, l := range []string{"create /a x flags=1", "create /b x", "session 2", "create /c x flags=1"} {
		s.run(l)
	}
	kids, _, _ := s.tree.Children(Reader{}, proto.PathRoot)
	for range kids.All() {
		break
	}
	for id := range s.tree.SessionsWithEphemerals() {
		if id != 1 {
			t.Errorf("first session is %v", id)
		}
		break
	}
}
