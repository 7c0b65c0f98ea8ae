package tree

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// A node of 100 bytes is to cost less than 320 of the process's memory, of which
// some 25 are the runtime's.
func TestANodeTakesNoMoreMemoryThanIsWrittenDown(t *testing.T) {
	const classBytes = 16 << 10 // the size class that a chunk is to fill
	if size := reflect.TypeFor[chunk]().Size(); size > classBytes || size < classBytes-reflect.TypeFor[node]().Size() {
		t.Errorf("a chunk has %d bytes of %d", size, classBytes)
	}
	const nodes, directories, most = 100_000, 100, 280
	data := make([]byte, 100)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	tree := New()
	create := func(path string) {
		body := (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL}).Append(nil, proto.OpCreate)
		if res, _ := tree.Apply(Txn{Zxid: 1, TimeMillis: 1}, proto.OpCreate, body, nil); res.Err != proto.ErrOK {
			t.Fatal(path, res.Err)
		}
	}
	for d := range directories {
		create(fmt.Sprintf("/d%03d", d))
	}
	for i := range nodes {
		create(fmt.Sprintf("/d%03d/node-%010d", i%directories, i))
	}
	perNode := float64(heap()-before) / nodes
	if perNode > most {
		t.Errorf("%.1f bytes of heap for a node, %d before", perNode, most)
	} else {
		t.Logf("%.1f bytes of heap for a node, of %d", perNode, most)
	}
	runtime.KeepAlive(tree)
}
