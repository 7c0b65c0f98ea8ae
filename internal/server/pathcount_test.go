package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
)

// Each asker has a count of its own, from its question to its end.
func TestRequestsAreCountedByPathWhileSomebodyAsks(t *testing.T) {
	var counts pathCounts
	exists := proto.AppendString(nil, "/a")
	counts.note(proto.OpExists, exists)
	first := counts.begin()
	counts.note(proto.OpExists, exists)
	second := counts.begin()
	multi := proto.AppendMulti(nil, []proto.MultiOp{
		{Type: proto.OpDelete, Version: proto.PathVersion{Path: "/a", Version: -1}},
		{Type: proto.OpCheck, Version: proto.PathVersion{Path: "/b", Version: -1}},
	})
	counts.note(proto.OpMulti, multi)
	counts.note(proto.OpMulti, multi[:5])
	counts.note(proto.OpPing, nil)
	counts.note(proto.OpGetData, []byte{0, 0, 0, 9})
	if got, want := first(), []admin.PathLoad{{Path: "/a", Reads: 1, Writes: 1}, {Path: "/b", Writes: 1}}; !slices.Equal(got, want) {
		t.Errorf("the first: %v, want %v", got, want)
	}
	counts.note(proto.OpExists, exists)
	if got, want := second(), []admin.PathLoad{{Path: "/a", Reads: 1, Writes: 1}, {Path: "/b", Writes: 1}}; !slices.Equal(got, want) {
		t.Errorf("the second: %v, want %v", got, want)
	}
	if counts.running.Load() != nil {
		t.Error("somebody still counts")
	}
}

func TestACountOfPathsIsBounded(t *testing.T) {
	var counts pathCounts
	end := counts.begin()
	for n := range countedPathsMax + 10 {
		counts.note(proto.OpExists, proto.AppendString(nil, fmt.Sprintf("/%d", n)))
	}
	counts.note(proto.OpExists, proto.AppendString(nil, "/7"))
	if all := end(); len(all) != countedPathsMax || all[0] != (admin.PathLoad{Path: "/7", Reads: 2}) {
		t.Errorf("%d paths, the first is %v", len(all), all[0])
	}
}
