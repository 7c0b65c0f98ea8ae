package ensemble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// Operators that count from 0 give a member that number: it forms an ensemble,
// leads or follows, takes sessions, goes, comes back, and changes its role, as
// with Apache's servers (case 64).
func TestAServerWithTheNumberZeroIsAMemberLikeTheOthers(t *testing.T) {
	both(t, func(e *ensemble) (lines []string) {
		say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
		e.form(0, 1, 2)
		plain := func(text string) string { return strings.ReplaceAll(e.plain(text), "\n", " | ") }
		writer, session, text := e.hello(0, proto.ConnectRequest{})
		say("a session at server 0: %s, the first byte %d", text, uint64(session.SessionID)>>56)
		say("a write: %s", writer.ask(proto.OpCreate, create(proto.OpCreate, "/of-zero", proto.CreateEphemeral)))
		super := e.connectSuper(1)
		say("at the start: %s", plain(super.config(false)))
		ask := func(name string, x change) {
			text, code := super.reconfig(x)
			say("%s: %v | %s", name, code, plain(text))
		}
		ask("becomes an observer", change{joining: e.line(0, "observer")})
		e.awaitMode(0, "observer")
		ask("becomes a participant", change{joining: e.line(0, "participant")})
		e.awaitMode(0, "leader", "follower")
		ask("goes", change{leaving: "0"})
		e.eventually("server 0 is added again", func() bool {
			text, code := super.reconfig(change{joining: e.line(0, "participant")})
			if code == proto.ErrOK {
				say("comes back: %s", plain(text))
			}
			return code == proto.ErrOK
		})
		e.awaitMode(0, "leader", "follower")
		c, _, text := e.hello(0, proto.ConnectRequest{SessionID: session.SessionID, Password: session.Password})
		say("its session: %s", text)
		if c != nil {
			say("its ephemeral: %s", c.ask(proto.OpExists, (&proto.PathWatch{Path: "/of-zero"}).Append(nil)))
			say("a write: %s", c.ask(proto.OpCreate, create(proto.OpCreate, "/again", 0)))
		}
		return lines
	})
}
