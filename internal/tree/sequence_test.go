package tree

import (
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestASequenceCounterThatRunsLowIsTold(t *testing.T) {
	for _, row := range []struct {
		counter int32
		flags   int32
		low     bool
	}{
		{SequenceLowAt - 1, proto.CreatePersistentSequential, false},
		{SequenceLowAt, proto.CreatePersistentSequential, true},
		{2147483646, proto.CreateEphemeralSequential, true},
		{2147483646, proto.CreatePersistent, false}, // it has no number
	} {
		b := NewBuilder()
		for _, node := range []struct {
			path    string
			counter int32
		}{{"/", 2}, {"/zookeeper", 2}, {"/zookeeper/config", 0}, {"/zookeeper/quota", 0}, {"/q", row.counter}} {
			if err := b.Add(node.path, nil, proto.OpenACL, proto.StatPersisted{CVersion: node.counter}); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := b.Tree()
		if err != nil {
			t.Fatal(err)
		}
		r := proto.CreateRequest{Path: "/q/n-", ACL: proto.OpenACL, Flags: row.flags}
		res, _ := tree.Apply(Txn{Zxid: 1, Session: 7}, proto.OpCreate, r.Append(nil, proto.OpCreate), nil)
		if res.Err != proto.ErrOK || res.SequenceLow != row.low {
			t.Errorf("counter %d, flags %d: %+v", row.counter, row.flags, res)
		}
		multi := proto.AppendMulti(nil, []proto.MultiOp{{Type: proto.OpCreate, Create: r}})
		if res, _ := tree.Apply(Txn{Zxid: 2, Session: 7}, proto.OpMulti, multi, nil); row.flags != proto.CreatePersistent && row.counter < 2147483646 &&
			(res.Failed() || res.SequenceLow != (row.counter+1 >= SequenceLowAt)) {
			t.Errorf("counter %d in a multi: %+v", row.counter, res)
		}
	}
}
