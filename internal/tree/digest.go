package tree

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// The tree digest is Apache's, version 2: the sum over all nodes of the CRC-32
// of path ‖ data ‖ stat. Nodes below /zookeeper/ are left out, and the root's
// path counts as empty. CRC-32 can be continued, so each node keeps the CRC of
// path ‖ data, and a change of stat costs 60 bytes however large the data are.

const digestStatLen = 60

// pathDataCRC returns the CRC-32 of path ‖ data.
func (t *Tree) pathDataCRC(path string, data []byte) uint32 {
	var crc uint32
	crc, t.scratch = pathDataCRC(t.scratch, path, data)
	return crc
}

// pathDataCRC uses scratch, which it returns, grown.
func pathDataCRC(scratch []byte, path string, data []byte) (uint32, []byte) {
	if path == proto.PathRoot {
		path = ""
	}
	scratch = append(scratch[:0], path...)
	return crc32.Update(crc32.ChecksumIEEE(scratch), crc32.IEEETable, data), scratch
}

// term returns the node's term of the digest. It uses scratch, which it
// returns, grown: an array of its own would escape to the heap at each call.
func (n *node) term(scratch []byte) (uint32, []byte) {
	b := slices.Grow(scratch[:0], digestStatLen)[:digestStatLen]
	s := &n.stat
	binary.BigEndian.PutUint64(b[0:], uint64(s.Czxid))
	binary.BigEndian.PutUint64(b[8:], uint64(s.Mzxid))
	binary.BigEndian.PutUint64(b[16:], uint64(s.Pzxid))
	binary.BigEndian.PutUint64(b[24:], uint64(s.Ctime))
	binary.BigEndian.PutUint64(b[32:], uint64(s.Mtime))
	binary.BigEndian.PutUint32(b[40:], uint32(s.Version))
	binary.BigEndian.PutUint32(b[44:], uint32(s.CVersion))
	binary.BigEndian.PutUint32(b[48:], uint32(s.AVersion))
	binary.BigEndian.PutUint64(b[52:], uint64(s.EphemeralOwner))
	return crc32.Update(s.crc, crc32.IEEETable, b), b
}

// edit returns node i for a change of stat or data; seal must follow.
func (t *Tree) edit(i uint32) *node {
	n := t.mut(i)
	t.digest -= uint64(n.sum)
	return n
}

// seal brings the digest up to date after a change of node n.
func (t *Tree) seal(n *node, path string) {
	n.sum = 0
	if !outsideDigest(path) {
		n.sum, t.scratch = n.term(t.scratch)
	}
	t.digest += uint64(n.sum)
}

func outsideDigest(path string) bool {
	return strings.HasPrefix(path, proto.PathZooKeeper+"/")
}

// Digest returns the tree digest, kept up to date by every write.
func (t *Tree) Digest() uint64 { return t.digest }

// DigestFull computes the tree digest anew from every node. It only reads.
func (t *Tree) DigestFull() uint64 { return digestOf(t.chunks) }

// DigestFull computes the digest of the view from every node.
func (v *View) DigestFull() uint64 { return digestOf(v.chunks) }

func digestOf(chunks []*chunk) uint64 {
	var sum uint64
	var scratch []byte
	_ = walk(chunks, func(path string, n *node) error {
		if !outsideDigest(path) {
			c := node{stat: n.stat}
			c.stat.crc, scratch = pathDataCRC(scratch, path, n.data)
			var term uint32
			term, scratch = c.term(scratch)
			sum += uint64(term)
		}
		return nil
	})
	return sum
}
