package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Any bytes give a result: no panic, no half-done work, no broken index.
func FuzzApply(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, l := range strings.Split(string(text), "\n") {
			switch name, _, _ := strings.Cut(l, " "); name {
			case "create", "create2", "container", "ttl", "delete", "set", "setacl":
				op, body := parseRequest(l)
				f.Add(int32(op), body)
			}
		}
	}
	f.Add(int32(proto.OpMulti), encodeMulti([]string{"create /a x", "set /a y", "delete /a"}))
	f.Add(int32(proto.OpDeleteContainer), AppendReap(nil, Reap{Path: "/c", Czxid: 1, Mzxid: 1}))
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		s := newScript()
		for _, l := range []string{"container /c x", "create /a x", "create /zookeeper/quota/a x", "create /zookeeper/quota/a/zookeeper_limits x"} {
			s.run(l)
		}
		before, digest := dumpTree(s.tree), s.tree.Digest()
		res, changes := s.tree.Apply(s.txn(), proto.OpCode(op), body, nil)
		if res.Failed() && (len(changes) > 0 || s.tree.Digest() != digest || dumpTree(s.tree) != before) {
			t.Errorf("%+v changed the tree", res)
		}
		AppendResult(nil, proto.OpCode(op), &res)
		checkInvariants(t, s.tree)
		if next, err := rebuild(s.tree); err != nil || next.Digest() != s.tree.Digest() {
			t.Errorf("rebuilt: %v", err)
		}
	})
}
