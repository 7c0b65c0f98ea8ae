package tree

import (
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestTheExpansionOfAMultiIsTheSumOfItsLists(t *testing.T) {
	ids := []proto.ID{{Scheme: "ip", ID: "1.1.1.1"}, {Scheme: "super"}}
	for i := range 8 {
		ids = append(ids, proto.ID{Scheme: []string{"digest", "x509", "sasl"}[i%3], ID: string(rune('a' + i))})
	}
	auth := func(perms int) proto.ACL { return proto.ACL{Perms: int32(perms), ID: proto.ID{Scheme: "auth"}} }
	const fit = maxExpandedACL / 8
	for _, c := range []struct {
		name        string
		ops, inEach int
		same        bool // equal entries in each list
		ids         []proto.ID
		bad         int // −1: fits
	}{
		{"one entry each", fit, 1, false, ids, -1},
		{"one list more", fit + 1, 1, false, ids, fit},
		{"longer lists", fit/4 + 3, 4, false, ids, fit / 4},
		{"equal entries count once", 4, fit, true, ids, -1},
		{"nobody's entries", fit + 1, 1, false, ids[:2], -1},
	} {
		ops := make([]proto.MultiOp, c.ops)
		for i := range ops {
			ops[i] = proto.MultiOp{Type: proto.OpCreate, Create: proto.CreateRequest{Path: "/n", TTL: -1}}
			for k := range c.inEach {
				if c.same {
					k = 0
				}
				ops[i].Create.ACL = append(ops[i].Create.ACL, auth(k))
			}
		}
		body := proto.AppendMulti(nil, ops)
		res, over := OverExpanded(body, c.ids)
		if over != (c.bad >= 0) || over && (len(res.Sub) != c.ops || res.Sub[c.bad].Err != proto.ErrInvalidACL || !res.Failed()) {
			t.Errorf("%s: %v", c.name, over)
		}
		if _, over := OverExpanded(body[:len(body)-1], c.ids); over {
			t.Errorf("%s, cut short: judged", c.name)
		}
	}
}
