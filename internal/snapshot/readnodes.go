package snapshot

import (
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

// Nodes are decoded by a goroutine of their own and handed to the sink by the
// caller's: undoing the format, with its checksums, takes about as long as what
// the sink makes of it, and a server with a million nodes is started in half the
// time. They go over in batches, for a hand-over costs more than a small node.
const (
	// aheadNodes and aheadBytes end a batch: 256 nodes, or 256 KiB of data.
	aheadNodes = 256
	aheadBytes = 256 << 10
	// aheadBatches may wait for the sink; one more is being filled and one read.
	aheadBatches = 2
)

// aheadNode is one node on its way to the sink.
type aheadNode struct {
	path string
	data []byte
	acl  []proto.ACL
	stat proto.StatPersisted
}

// readNodes hands all nodes to the sink and tells how many there were.
func readNodes(src *source, sink Sink, acls map[int64][]proto.ACL, ours bool) (nodes int64, err error) {
	d := nodeDecoder{
		src: src, acls: acls, ours: ours, stop: make(chan struct{}),
		batches: make(chan []aheadNode, aheadBatches), used: make(chan []aheadNode, aheadBatches+2),
	}
	go d.run()
	for batch := range d.batches {
		for i := 0; i < len(batch) && err == nil; i++ {
			n := &batch[i]
			if err = sink.Node(n.path, n.data, n.acl, n.stat); err != nil {
				close(d.stop)
			}
			nodes++
		}
		clear(batch)
		d.used <- batch[:0]
	}
	if err == nil {
		err = d.err
	}
	return nodes, err
}

// nodeDecoder decodes nodes ahead of the sink.
type nodeDecoder struct {
	src  *source // its own until batches is closed
	acls map[int64][]proto.ACL
	ours bool

	batches chan []aheadNode // capacity aheadBatches; closed at the end of the nodes
	used    chan []aheadNode // empty batches, for reuse; room for all that there are
	stop    chan struct{}    // closed when the sink wants no more
	err     error            // set before batches is closed
}

// run is the decoder's goroutine. It ends at the end of the nodes, at the first
// error, or when the sink wants no more.
func (d *nodeDecoder) run() {
	defer close(d.batches)
	var batch []aheadNode
	bytes := 0
	for first := true; ; first = false {
		n, ok := d.next(first)
		if ok {
			batch, bytes = append(batch, n), bytes+len(n.data)
		}
		if len(batch) > 0 && (!ok || len(batch) == aheadNodes || bytes >= aheadBytes) {
			select {
			case d.batches <- batch:
			case <-d.stop:
				return
			}
			batch, bytes = d.empty(), 0
		}
		if !ok {
			return
		}
	}
}

// empty returns a batch to fill.
func (d *nodeDecoder) empty() []aheadNode {
	select {
	case b := <-d.used:
		return b
	default:
		return make([]aheadNode, 0, aheadNodes)
	}
}

// next decodes one node. At the end of the nodes, and with an error, which it
// leaves in d.err, there is none.
func (d *nodeDecoder) next(first bool) (n aheadNode, ok bool) {
	src := d.src
	n.path = src.text("a node's path")
	switch {
	case src.err != nil:
		d.err = src.err
		return n, false
	case n.path == endOfNodes && !first:
		return n, false
	case first && n.path == "":
		n.path = proto.PathRoot
	case first || !writablePath(n.path, false):
		d.err = src.corrupt("a node's path", fmt.Sprintf("%q", n.path))
		return n, false
	}
	n.data = src.buffer("a node's data")
	m := src.small("a node's metadata", 8+proto.StatPersistedLen)
	key := m.Long()
	n.stat = m.StatPersisted()
	if d.err = src.err; d.err != nil {
		return n, false
	}
	if n.acl, ok = d.acls[key]; !ok && d.ours {
		d.err = src.corrupt(n.path, fmt.Sprintf("its ACL list %d is not in the table", key))
		return n, false
	}
	return n, true
}
