package tree

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// benchNodes is the size of the tree that benchmarks run on: a thousand
// directories /app/dNNN of a thousand nodes with 100 bytes each, as in the
// comparison of layouts in DESIGN.md.
const benchNodes = 1_000_000

var benchData = make([]byte, 100)

func benchPath(i int) string { return fmt.Sprintf("/app/d%03d/node-%010d", i%1000, i) }

func benchTree(b *testing.B, n int) *Tree {
	b.Helper()
	t := New()
	apply := func(path string) {
		body := (&proto.CreateRequest{Path: path, Data: benchData, ACL: proto.OpenACL}).Append(nil, proto.OpCreate)
		if res, _ := t.Apply(Txn{Zxid: 1, TimeMillis: 1}, proto.OpCreate, body, nil); res.Err != proto.ErrOK {
			b.Fatal(path, res.Err)
		}
	}
	apply("/app")
	for d := range min(n, 1000) {
		apply(fmt.Sprintf("/app/d%03d", d))
	}
	for i := range n {
		apply(benchPath(i))
	}
	return t
}

func BenchmarkMillionNodes(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	t := benchTree(b, benchNodes)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perNode := float64(after.HeapAlloc-before.HeapAlloc) / benchNodes

	rng := rand.New(rand.NewPCG(1, 1))
	paths := make([]string, 1<<16)
	sets := make([][]byte, len(paths))
	for i := range paths {
		paths[i] = benchPath(rng.IntN(benchNodes))
		sets[i] = (&proto.SetDataRequest{Path: paths[i], Data: benchData, Version: -1}).Append(nil)
	}
	changes := make([]Change, 0, 8)

	b.Run("collect", func(b *testing.B) {
		cpu := markCPU()
		for b.Loop() {
			runtime.GC()
		}
		b.ReportMetric((markCPU()-cpu)*1e3/float64(b.N), "mark-ms/op")
		b.ReportMetric(perNode, "heap-B/node")
	})
	b.Run("lookup", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if t.find(paths[i&(len(paths)-1)]) == none {
				b.Fatal("not found")
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, _, code := t.Get(Reader{}, paths[i&(len(paths)-1)]); code != proto.ErrOK {
				b.Fatal(code)
			}
		}
	})
	set := func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			t.Apply(Txn{Zxid: proto.Zxid(i), TimeMillis: 1}, proto.OpSetData, sets[i&(len(sets)-1)], changes)
		}
	}
	b.Run("set", set)
	b.Run("create and delete", func(b *testing.B) {
		create := (&proto.CreateRequest{Path: "/app/d500/fresh", Data: benchData, ACL: proto.OpenACL}).Append(nil, proto.OpCreate)
		remove := (&proto.PathVersion{Path: "/app/d500/fresh", Version: -1}).Append(nil)
		for i := 0; b.Loop(); i++ {
			t.Apply(Txn{Zxid: proto.Zxid(i), TimeMillis: 1}, proto.OpCreate, create, changes)
			t.Apply(Txn{Zxid: proto.Zxid(i), TimeMillis: 1}, proto.OpDelete, remove, changes)
		}
	})
	b.Run("freeze", func(b *testing.B) {
		for b.Loop() {
			t.Freeze().Release()
		}
	})
	b.Run("set while a view lives", func(b *testing.B) {
		v := t.Freeze()
		defer v.Release()
		set(b)
	})
	b.Run("walk a view", func(b *testing.B) {
		v := t.Freeze()
		defer v.Release()
		for b.Loop() {
			if err := v.Nodes(func(string, []byte, []proto.ACL, proto.StatPersisted) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMapOfPaths is what the layout is compared with: a map of full paths
// to nodes that have their own map of children, as Apache's server has it.
func BenchmarkMapOfPaths(b *testing.B) {
	type flat struct {
		data     []byte
		acl      *ACLSet
		stat     proto.StatPersisted
		children map[string]struct{}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	nodes := map[string]*flat{}
	world := &ACLSet{}
	for d := range 1000 {
		nodes[fmt.Sprintf("/app/d%03d", d)] = &flat{acl: world, children: map[string]struct{}{}}
	}
	for i := range benchNodes {
		path := benchPath(i)
		nodes[path] = &flat{data: slices.Clone(benchData), acl: world, stat: proto.StatPersisted{Czxid: proto.Zxid(i)}}
		nodes[path[:9]].children[path[10:]] = struct{}{}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("collect", func(b *testing.B) {
		cpu := markCPU()
		for b.Loop() {
			runtime.GC()
		}
		b.ReportMetric((markCPU()-cpu)*1e3/float64(b.N), "mark-ms/op")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/benchNodes, "heap-B/node")
	})
	rng := rand.New(rand.NewPCG(1, 1))
	paths := make([]string, 1<<16)
	for i := range paths {
		paths[i] = benchPath(rng.IntN(benchNodes))
	}
	b.Run("lookup", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if nodes[paths[i&(len(paths)-1)]] == nil {
				b.Fatal("not found")
			}
		}
	})
}

// markCPU returns the CPU seconds that the collector has spent marking.
func markCPU() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}}
	metrics.Read(s)
	sum := 0.0
	for _, v := range s {
		sum += v.Value.Float64()
	}
	return sum
}
