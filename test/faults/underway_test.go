package faults

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// While a change of the membership is under way, here because the server that
// joins is sent much over a slow link, another one gets ReconfigInProgress (−14),
// whoever asks for it and where; everything else is served. The first one is
// finished, and then the next is taken.
func TestASecondReconfigIsRefusedWhileOneIsUnderWay(t *testing.T) {
	t.Parallel()
	e := start(t, options{members: byReconfig})
	w := newWorld(e, 1)
	leader := e.leader(e.ids...)
	filler := w.mustDial(leader)
	data := bytes.Repeat([]byte("x"), 1<<20-1000)
	for n := range 12 {
		must(filler.Create(context.Background(), fmt.Sprintf("/large-%d", n), data, proto.CreatePersistent))(t)
	}
	filler.Drop()

	members := e.ids
	newcomer := e.guests()[0]
	e.net.join(t, newcomer, e.freeAddress())
	e.name(newcomer, participant, "")
	narrow := map[pair]link{}
	for _, id := range members {
		narrow[pair{id, newcomer}] = link{bytesPerSecond: 512 << 10}
	}
	e.net.set(narrow)
	e.add(newcomer)
	e.eventually("the newcomer waits to be added", func() bool {
		return strings.Contains(e.reason(newcomer), "waits for the leader to add it")
	})

	asker := w.mustDial(leader)
	before := must(configOf(asker))(t)
	line := fmt.Sprintf("server.%d=%s", newcomer, e.lines[newcomer])
	first := asker.Do(proto.OpReconfig, reconfigBody(line, "", -1))
	for _, id := range members {
		c := w.mustDial(id)
		var code proto.ErrCode
		e.eventually(fmt.Sprintf("server %d has the change under way", id), func() bool {
			// A version that is none changes nothing if it is too early.
			_, err := c.Do(proto.OpReconfig, reconfigBody("", "1", 1)).Wait(context.Background())
			code = client.Code(err)
			return code != proto.ErrBadVersion
		})
		if code != proto.ErrReconfigInProgress {
			t.Errorf("another change by an old version at server %d: %v", id, code)
		}
		if _, err := c.Do(proto.OpReconfig, reconfigBody("", fmt.Sprint(members[0]), -1)).Wait(context.Background()); client.Code(err) != proto.ErrReconfigInProgress {
			t.Errorf("a removal at server %d: %v", id, err)
		}
		must(c.Create(context.Background(), fmt.Sprintf("/meanwhile-%d", id), nil, proto.CreatePersistent))(t)
		if text := must(configOf(c))(t); text != before {
			t.Errorf("server %d shows a change that is under way:\n%s", id, text)
		}
		c.Drop()
	}

	e.net.heal()
	reply := must(first.Wait(context.Background()))(t)
	if text := string(proto.NewDecoder(reply).Buffer()); !strings.Contains(text, line) {
		t.Errorf("the first change is answered with\n%s", text)
	}
	if _, err := asker.Do(proto.OpReconfig, reconfigBody("", fmt.Sprint(newcomer), -1)).Wait(context.Background()); err != nil {
		t.Errorf("the next change: %v", err)
	}
	asker.Drop()
}

// configOf is what /zookeeper/config says.
func configOf(c *client.Conn) (string, error) {
	text, _, err := c.Get(context.Background(), proto.PathConfig, false)
	return string(text), err
}

// reconfigBody is a request; version −1 is any.
func reconfigBody(joining, leaving string, version int64) []byte {
	r := proto.ReconfigRequest{Joining: joining, Leaving: leaving, NewMembers: proto.NullString, CurConfigID: version}
	if joining == "" {
		r.Joining = proto.NullString
	}
	if leaving == "" {
		r.Leaving = proto.NullString
	}
	return r.Append(nil)
}
