package snapshot

import (
	"bytes"
	"io"
	"runtime"
	"strconv"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// many yields n nodes of 100 bytes under a thousand parents, with two ACL
// lists, and takes no memory for it.
func many(n int) func(NodeFunc) error {
	data := make([]byte, 100)
	acls := [][]proto.ACL{proto.OpenACL, digestACL("anna", 31)}
	return func(yield NodeFunc) error {
		if err := yield("/", nil, proto.OpenACL, proto.StatPersisted{}); err != nil {
			return err
		}
		path := make([]byte, 0, 64)
		for i := range n {
			path = strconv.AppendInt(append(path[:0], "/node-"...), int64(i), 10)
			if err := yield(string(path), data, acls[i%2], proto.StatPersisted{Czxid: proto.Zxid(i)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// allocated is what fn allocates, in bytes.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A snapshot is written beside a running server: its memory must not grow with
// the tree. What is left per node is the path that this test makes, 16 bytes.
func TestWritingTakesNoMemoryPerNode(t *testing.T) {
	write := func(n int) func() {
		return func() {
			if err := Write(io.Discard, Content{Nodes: many(n), Extension: []byte{}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	few, lots := allocated(write(1000)), allocated(write(101000))
	if perNode := float64(lots-few) / 100000; perNode > 2*16+8 {
		t.Errorf("%.1f bytes for each node, want no more than the two paths made here", perNode)
	}
}

// counting is a Sink that keeps nothing.
type counting struct{ nodes int }

func (c *counting) Session(Session) error { return nil }

func (c *counting) Node(string, []byte, []proto.ACL, proto.StatPersisted) error {
	c.nodes++
	return nil
}

func BenchmarkWrite(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		if err := Write(io.Discard, Content{Nodes: many(100000), Extension: []byte{}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	file := mustWrite(b, Content{Nodes: many(100000), Extension: []byte{}})
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for range b.N {
		if _, err := Read(bytes.NewReader(file), &counting{}); err != nil {
			b.Fatal(err)
		}
	}
}
