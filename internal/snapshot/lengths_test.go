package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Wherever the ends of the buffer fall, in a length, in data, in a node's metadata or
// in a seal, a snapshot is read back.
func TestAFieldMayLieAcrossEveryBoundaryOfTheBuffer(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), bufferSize/16+10)
	for n := bufferSize - 420; n <= bufferSize+10; n += 3 { // each field of three bytes or more
		c := smallContent()
		nodes := append([]node{{"/", data[:n], proto.OpenACL, proto.StatPersisted{}}}, smallNodes()[1:]...)
		c.Nodes = each(nodes)
		got, trailer, err := readAll(mustWrite(t, c))
		if err != nil || !reflect.DeepEqual(got.nodes, nodes) || trailer.Zxid != c.Zxid || !bytes.Equal(trailer.Extension, c.Extension) {
			t.Fatalf("with %d bytes in the root: %d nodes, %v", n, len(got.nodes), err)
		}
	}
}

// Nodes go to the sink in batches, bounded by number and by bytes.
func TestNodesAroundTheEndOfABatchAllReachTheSink(t *testing.T) {
	many := make([]node, 0, 3*aheadNodes+2)
	for i := range cap(many) {
		many = append(many, node{fmt.Sprintf("/n%d", i), []byte{byte(i)}, proto.OpenACL, proto.StatPersisted{Version: int32(i)}})
	}
	many[0].path = proto.PathRoot
	for batches := 1; batches <= 3; batches++ {
		for d := -1; d <= 1; d++ {
			for _, last := range []int{0, 1, aheadBytes - 2, aheadBytes, aheadBytes + 1} {
				nodes := many[:batches*aheadNodes+d]
				end := &nodes[len(nodes)-1]
				former := *end
				end.data = make([]byte, last)
				c := smallContent()
				c.Nodes = each(nodes)
				got, _, err := readAll(mustWrite(t, c))
				if err != nil || !reflect.DeepEqual(got.nodes, nodes) {
					t.Errorf("%d nodes, the last with %d bytes: %d nodes, %v", len(nodes), last, len(got.nodes), err)
				}
				*end = former
			}
		}
	}
	stop := errors.New("enough")
	for _, wants := range []int{0, 1, aheadNodes - 1, aheadNodes, aheadNodes + 1, 2 * aheadNodes, 3*aheadNodes - 1, 3 * aheadNodes, 3*aheadNodes + 1} {
		c := smallContent()
		c.Nodes = each(many)
		sink := &stopping{left: wants, err: stop}
		if _, err := Read(bytes.NewReader(mustWrite(t, c)), sink); !errors.Is(err, stop) || sink.left != 0 {
			t.Fatalf("a sink that takes %d nodes: %v", wants, err)
		}
	}
}

// stopping is a sink that takes a number of nodes.
type stopping struct {
	left int
	err  error
}

func (s *stopping) Session(Session) error { return nil }

func (s *stopping) Node(string, []byte, []proto.ACL, proto.StatPersisted) error {
	if s.left == 0 {
		return s.err
	}
	s.left--
	return nil
}
