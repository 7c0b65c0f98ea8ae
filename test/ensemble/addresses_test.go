package ensemble

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// TestTheSameReconfigsOfSeveralAddressesGetTheSameAnswers has members with two
// addresses each, on Apache's server and on ours.
func TestTheSameReconfigsOfSeveralAddressesGetTheSameAnswers(t *testing.T) {
	both(t, addressTranscript)
}

var number = regexp.MustCompile(`\d{5}`)

// addressTranscript runs the list and returns a line for each answer.
func addressTranscript(e *ensemble) (lines []string) {
	e.defines["zookeeper.multiAddress.enabled"] = "true"
	ports := map[string]string{}
	port := func(name string) string {
		p := fmt.Sprint(peer.FreePort(e.t))
		ports[p] = name
		return p
	}
	// Not in the order in which they are printed.
	spec := func(id int) {
		e.specs[id] = fmt.Sprintf("127.0.0.2:%s:%s|127.0.0.1:%s:%s:ROLE;127.0.0.1:%s",
			port("A"), port("B"), port("C"), port("D"), port("E"))
	}
	for id := 1; id <= 3; id++ {
		spec(id)
	}
	e.form(1, 2, 3)
	plain := func(text string) string {
		text = number.ReplaceAllStringFunc(text, func(p string) string { return ports[p] })
		return strings.ReplaceAll(versionLine.ReplaceAllString(text, "version=V"), "\n", " | ")
	}
	leader := e.leader()
	super := e.connectSuper(leader)
	ask := func(name string, x change) {
		text, code := super.reconfig(x)
		lines = append(lines, fmt.Sprintf("%s: %v | %s", name, code, plain(text)))
	}
	lines = append(lines, "at the start | "+plain(super.config(false)))
	own := regexp.MustCompile(`127\.0\.0\.2:\d+:\d+\|`)
	follower := leader%3 + 1
	ask("different roles", change{joining: "server.4=10.0.0.1:7:8:observer|10.0.0.2:7:8:participant;3"})
	ask("the same ports in both", change{joining: "server.4=10.0.0.1:7:7|10.0.0.2:7:8;3"})
	ask("another member has one of them", change{joining: "server.4=10.0.0.1:7:8|10.0.0.2:7:8;3,server.5=10.0.0.3:7:8|10.0.0.2:7:9;4"})
	ask("nothing changes but the order", change{joining: e.line(follower, "participant")})

	spec(4)
	e.add(4, 1, 2, 3, 4)
	joining := e.line(4, "observer")
	var code proto.ErrCode
	e.eventually("server 4 is added", func() bool {
		var text string
		if text, code = super.reconfig(change{joining: joining}); code == proto.ErrOK {
			lines = append(lines, "one joins | "+plain(text))
		}
		return code == proto.ErrOK
	})
	e.awaitMode(4, "observer")
	lines = append(lines, "at the new one | "+plain(e.connect(4).config(false)))
	e.specs[4] = own.ReplaceAllString(e.specs[4], "")
	ask("an address goes", change{joining: e.line(4, "observer")})
	ask("a full list", change{members: e.line(1, "participant") + "," + e.line(2, "participant") + "," + e.line(3, "participant")})
	return lines
}
