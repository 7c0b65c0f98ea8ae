package oracle

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// words are the four-letter words whose text has one shape on both servers
// while the same sessions are open, and how the shape is taken.
var words = []struct {
	word  string
	shape func(line string) string
}{
	{"ruok", masked}, {"srvr", masked}, {"stat", masked}, {"isro", masked}, {"gtmk", masked}, {"cons", masked}, {"dump", masked},
	{"wchs", masked}, {"wchc", masked}, {"wchp", masked}, {"srst", masked}, {"crst", masked}, {"dirs", masked},
	{"conf", keyBefore("=")}, {"mntr", mntrLine},
}

var (
	hexNumber = regexp.MustCompile(`0x[0-9a-f]+`)
	// byFollower matches the keys that a real leader has for each follower.
	byFollower = regexp.MustCompile(`_[0-9]+_(learner_handler_qp_|ack_latency)`)
	number     = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)
)

// masked is a line without its numbers.
func masked(line string) string {
	if strings.HasPrefix(line, "Zookeeper version: ") {
		return "Zookeeper version: " // row version-text
	}
	return number.ReplaceAllString(hexNumber.ReplaceAllString(line, "0x#"), "#")
}

func keyBefore(end string) func(string) string {
	return func(line string) string {
		key, _, _ := strings.Cut(line, end)
		return masked(key)
	}
}

// mntrLine is a key, and the role behind the one key that tells it. Numbers by
// namespace are there once a namespace was used, and those by follower only in
// Apache's leaders (row metrics-of-other-stages).
func mntrLine(line string) string {
	key, value, _ := strings.Cut(line, "\t")
	switch {
	case key == "zk_server_state":
		return key + " " + value
	case strings.Contains(key, "_per_namespace"), byFollower.MatchString(key):
		return ""
	}
	return masked(key)
}

// shapeOf is the set of a text's lines, sorted.
func shapeOf(text string, shape func(string) string) []string {
	var all []string
	for _, line := range strings.Split(text, "\n") {
		all = append(all, shape(line))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// compareWords asks each server of both ensembles, role by role, for each word.
func compareWords(t *testing.T, pair *Pair) {
	for _, target := range []*Target{pair.Real, pair.Ours} {
		if _, _, err := target.begin(); err != nil {
			t.Fatal(err)
		}
		for _, s := range target.sites {
			// An ephemeral node and a watch of each server, for dump and wchs.
			node := proto.CreateRequest{Path: "/words-", ACL: proto.OpenACL, Flags: proto.CreateEphemeralSequential}
			watch := proto.PathWatch{Path: "/", Watch: true}
			if _, _, err := s.call(proto.OpCreate, node.Append(nil, proto.OpCreate)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.call(proto.OpGetData, watch.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := target.settle(); err != nil {
			t.Fatal(err)
		}
	}
	for i, role := range []string{"leader", "follower", "another follower"} {
		for _, w := range words {
			t.Run(w.word+" of a "+role, func(t *testing.T) {
				var shapes [2][]string
				for k, target := range []*Target{pair.Real, pair.Ours} {
					text, err := peer.Word(target.sites[i].addr(), w.word)
					if err != nil {
						t.Fatal(err)
					}
					shapes[k] = shapeOf(text, w.shape)
				}
				for _, line := range shapes[0] {
					if !slices.Contains(shapes[1], line) {
						t.Errorf("only the real server says %q", line)
					}
				}
				for _, line := range shapes[1] {
					if w.word == "mntr" {
						break // it may say more
					}
					if !slices.Contains(shapes[0], line) {
						t.Errorf("only ours says %q", line)
					}
				}
			})
		}
	}
}
