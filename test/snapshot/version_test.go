package snapshot

import (
	"math"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/tree"
	"github.com/zooraft/zooraft/test/peer"
)

// wraps is what becomes of a node's data version: it starts at the first value
// and goes through the others, one set each. Each set names the version it
// expects, except at −1, which means any; a wrong one must be refused.
var wraps = [][]int32{
	{-2, -1, 0, 1},
	{math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1},
}

func wrapNode(i int) string { return "/w" + string(rune('0'+i)) }

// wrapTree is a tree with one node for each row, seeded at its first version.
func wrapTree() *file {
	f := ourTree(ourSession)
	for i, row := range wraps {
		if err := f.Node(wrapNode(i), []byte("x"), proto.OpenACL, proto.StatPersisted{Version: row[0]}); err != nil {
			panic(err)
		}
	}
	return f
}

// verifyWraps goes through the rows with set, which returns the new version.
func verifyWraps(t *testing.T, set func(path string, expected int32) (int32, proto.ErrCode)) {
	t.Helper()
	for i, row := range wraps {
		for n, version := range row[:len(row)-1] {
			if _, code := set(wrapNode(i), version+7); code != proto.ErrBadVersion {
				t.Errorf("version %d, expecting %d: error %d, want %d", version, version+7, code, proto.ErrBadVersion)
			}
			got, code := set(wrapNode(i), version)
			if code != proto.ErrOK || got != row[n+1] {
				t.Errorf("version %d became %d (error %d), want %d", version, got, code, row[n+1])
			}
		}
	}
}

func TestDataVersionsWrapOnApache(t *testing.T) {
	opts := options(t.TempDir(), nil)
	writeSnapshot(t, opts.DataDir, wrapTree(), ourZxid, []byte{})
	c := connect(t, peer.StartApache(t, opts))
	verifyWraps(t, func(path string, expected int32) (int32, proto.ErrCode) {
		c.xid++
		r := proto.SetDataRequest{Path: path, Data: []byte("y"), Version: expected}
		h, b, err := c.conn.Call(c.xid, proto.OpSetData, r.Append(nil), callTimeout)
		if err != nil {
			t.Fatal(err)
		}
		return proto.NewDecoder(b).Stat().Version, h.Err
	})
}

func TestDataVersionsWrapInOurTree(t *testing.T) {
	b := tree.NewBuilder()
	if err := wrapTree().each(b.Add); err != nil {
		t.Fatal(err)
	}
	tr, err := b.Tree()
	if err != nil {
		t.Fatal(err)
	}
	zxid := ourZxid
	verifyWraps(t, func(path string, expected int32) (int32, proto.ErrCode) {
		zxid++
		r := proto.SetDataRequest{Path: path, Data: []byte("y"), Version: expected}
		result, _ := tr.Apply(tree.Txn{Zxid: zxid}, proto.OpSetData, r.Append(nil), nil)
		return result.Stat.Version, result.Err
	})
}
