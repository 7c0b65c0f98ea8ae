package ensemble

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// TestTheSameReconfigsGetTheSameAnswers runs one list of changes on Apache's
// server and on ours.
func TestTheSameReconfigsGetTheSameAnswers(t *testing.T) { both(t, transcript) }

// transcript runs the list and returns a line for each answer.
func transcript(e *ensemble) (lines []string) {
	e.form(1, 2, 3)
	leader := e.leader()
	var followers []int
	for id := 1; id <= 3; id++ {
		if id != leader {
			followers = append(followers, id)
		}
	}
	one, two := followers[0], followers[1]
	say := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		for place, id := range map[string]int{"LEADER": leader, "ONE": one, "TWO": two} {
			text = strings.ReplaceAll(text, fmt.Sprintf("server.%d=SPEC%d", id, id), place)
		}
		// Which server leads differs from run to run, and so does the order.
		parts := strings.Split(text, "\n")
		if len(parts) > 1 {
			slices.Sort(parts)
		}
		lines = append(lines, strings.Join(parts, " | "))
	}
	ask := func(c *client, name string, x change) {
		text, code := c.reconfig(x)
		say("%s: %v\n%s", name, code, e.plain(text))
	}

	anybody := e.connect(leader)
	say("at the start\n%s", e.plain(anybody.config(false)))
	ask(anybody, "without the right to", change{leaving: fmt.Sprint(two)})
	// Numbers and groups that ours does not have are no reason before that one.
	ask(anybody, "a large number, without the right to", change{joining: "server.999=127.0.0.1:1:2:observer;3"})
	ask(anybody, "a group, without the right to", change{members: strings.Join([]string{e.line(1, "participant"),
		e.line(2, "participant"), e.line(3, "participant"), "group.1=1:2:3"}, "\n")})
	refusals := refused(e)
	for _, x := range refusals[:len(refusals)-2] { // whether the new ones are there, ours asks later
		ask(anybody, x.name+", without the right to", x.change)
	}
	for _, id := range []int{leader, one} {
		c := e.connectSuper(id)
		for _, x := range refusals {
			ask(c, x.name, x.change)
		}
	}

	watcher := e.connect(one)
	watcher.config(true)
	super := e.connectSuper(leader)
	ask(super, "nothing changes", change{})
	say("the watcher hears: %s", events(e.t, watcher))
	ask(super, "a participant becomes an observer", change{joining: e.line(two, "observer")})
	e.awaitMode(two, "observer")
	ask(super, "an observer becomes a participant", change{joining: e.line(two, "participant")})
	e.awaitMode(two, "follower")
	ask(super, "a participant goes", change{leaving: fmt.Sprint(two)})
	ask(super, "and comes back", change{joining: e.line(two, "participant")})
	e.awaitMode(two, "follower")
	ask(super, "a full list without one", change{members: e.line(leader, "participant") + "," + e.line(one, "participant")})
	ask(super, "a full list with it", change{members: strings.Join([]string{
		e.line(leader, "participant"), e.line(one, "participant"), e.line(two, "participant")}, "\n")})
	e.awaitMode(two, "follower")

	e.add(4, leader, one, two, 4)
	var code proto.ErrCode
	e.eventually("server 4 is added", func() bool {
		var text string
		text, code = super.reconfig(change{joining: e.line(4, "participant")})
		if code == proto.ErrOK {
			say("a new one joins\n%s", e.plain(text))
		}
		return code == proto.ErrOK
	})
	e.awaitMode(4, "follower")
	say("at the new one\n%s", e.plain(e.connect(4).config(false)))
	ask(super, "two go at once", change{leaving: fmt.Sprintf("%d,%d", two, 4)})
	say("at a follower\n%s", e.plain(e.connect(one).config(false)))
	return lines
}

// refused are changes that are not made, the same on every server.
func refused(e *ensemble) []struct {
	name   string
	change change
} {
	down := func(id int) string { return e.line(id, "participant") }
	return []struct {
		name   string
		change change
	}{
		{"another version", change{leaving: "3", version: 77}},
		{"no server line", change{joining: "rubbish"}},
		{"no client port", change{joining: "server.4=127.0.0.1:1:2"}},
		{"too few parts", change{joining: "server.4=127.0.0.1:1;3"}},
		{"a port that is no number", change{joining: "server.4=127.0.0.1:x:2;3"}},
		{"a port that is none", change{joining: "server.4=127.0.0.1:70000:2;3"}},
		{"the same port twice", change{joining: "server.4=127.0.0.1:7:7;3"}},
		{"a role that is none", change{joining: "server.4=127.0.0.1:7:8:king;3"}},
		{"an id that is no number", change{joining: "server.x=127.0.0.1:7:8;3"}},
		{"a leaving that is no number", change{leaving: "x"}},
		{"all leave", change{leaving: "1,2,3"}},
		{"an address of another server", change{joining: "server.4=10.0.0.1:7:8;3,server.5=10.0.0.1:7:9;4"}},
		{"another key", change{members: "tickTime=5"}},
		{"nobody in a full list", change{members: ","}},
		{"observers alone", change{members: e.line(1, "observer")}},
		{"no majority of the new ones is there", change{joining: down(7) + "," + down(8) + "," + down(9)}},
		{"nobody of a full list is there", change{members: down(7) + "," + down(8)}},
	}
}

// events are the notifications that come before a ping's answer.
func events(t *testing.T, c *client) string {
	t.Helper()
	var heard []string
	for len(heard) == 0 {
		b, err := c.conn.Receive(patience)
		if err != nil {
			t.Fatalf("waiting for an event: %v", err)
		}
		d := proto.NewDecoder(b)
		if d.ReplyHeader().Xid == proto.XidNotification {
			e := d.WatcherEvent()
			heard = append(heard, fmt.Sprintf("%v %s", e.Type, e.Path))
		}
	}
	for {
		b, err := c.conn.Receive(300 * time.Millisecond)
		if errors.Is(err, peer.ErrTimeout) {
			return strings.Join(heard, ", ")
		}
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, fmt.Sprintf("%x", b))
	}
}
