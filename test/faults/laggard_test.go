package faults

import (
	"context"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// A client that has seen a change is never shown what was before, by a server
// that is cut off and serves its other clients from what it has (case 50). With
// sessions of the usual kind the log's order sees to that: the server can give
// none before it has caught up. Local sessions it could give, and for them it
// looks at what the client has seen.
func TestAServerThatIsBehindDoesNotServeWhoHasSeenMore(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		options  options
		readOnly bool // it is cut off both ways, until it is in read-only mode
		usual    bool // sessions
	}{
		{"usual sessions", options{config: map[string]string{"syncLimit": "60", "maxSessionTimeout": "60000"}}, false, true},
		{"local sessions", options{config: map[string]string{"syncLimit": "60", "localSessionsEnabled": "true"}}, false, false},
		{"read-only mode", options{config: map[string]string{"localSessionsEnabled": "true"},
			defines: map[string]string{"readonlymode.enabled": "true"}}, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, row.options)
			w := newWorld(e, 1)
			w.prepare()
			leader := e.leader(e.ids...)
			behind := e.others(leader)[0]
			connect := func(seen proto.Zxid, patience time.Duration) (*client.Conn, error) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				return client.Dial(ctx, e.address(behind), client.Options{Timeout: time.Minute, LastZxid: seen, ReadOnly: row.readOnly})
			}
			early := must(connect(0, patience))(t)
			defer func() { early.Drop() }()
			must(early.Exists(context.Background(), "/w", false))(t)
			if row.readOnly {
				e.cut([]int{behind}, e.others(behind), false)
				e.eventually("it is in read-only mode", func() bool { return field(e.srvr(behind), "Mode") == "read-only" })
			} else {
				for _, other := range e.others(behind) {
					e.cutOneWay(other, behind)
				}
			}
			c := w.mustDial(leader)
			create(t, c, "/w/50", proto.CreatePersistent)
			seen := c.LastZxid()
			c.Drop()

			// What makes it the server that this is about: it shows others the past.
			showsThePast := func() {
				t.Helper()
				if !row.usual {
					early.Drop()
					e.eventually("the server that is behind takes who has seen nothing", func() (ok bool) {
						var err error
						early, err = connect(0, time.Second)
						return err == nil
					})
				}
				if _, err := early.Exists(context.Background(), "/w/50", false); client.Code(err) != proto.ErrNoNode {
					t.Fatalf("the server is not behind, or serves nobody: %v", err)
				}
			}
			showsThePast()
			waiting := make(chan error, 1)
			go func() { // whoever is patient gets no answer, or one of a server that has caught up
				c, err := connect(seen, patience)
				if err == nil {
					defer c.Drop()
					_, err = c.Exists(context.Background(), "/w/50", false)
				}
				waiting <- err
			}()
			for range 3 {
				c, err := connect(seen, tick)
				if err == nil {
					_, err := c.Exists(context.Background(), "/w/50", false)
					t.Errorf("a server that is behind took a client that has seen %v, and showed it %v", seen, err)
					c.Drop()
				}
			}
			showsThePast()
			e.net.heal()
			if err := <-waiting; client.Code(err) == proto.ErrNoNode {
				t.Errorf("a client that has seen %v was shown what was before", seen)
			}
			e.eventually("it takes the client once it has caught up", func() bool {
				c, err := connect(seen, time.Second)
				if err != nil {
					return false
				}
				defer c.Drop()
				if _, err := c.Exists(context.Background(), "/w/50", false); client.Code(err) == proto.ErrNoNode {
					t.Error("the client sees an older state")
				}
				return true
			})
			w.finish()
		})
	}
}
