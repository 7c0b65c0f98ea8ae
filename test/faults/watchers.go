package faults

import (
	"fmt"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// watcher follows one node with one-shot data watches, over connections.
type watcher struct {
	*session
	path string
	// armed tells that a watch is set that has not fired; seen is the mzxid of
	// the node when it was set, 0 if there was none.
	armed bool
	mzxid proto.Zxid
}

// useWatches is a worker.
func useWatches(s *session) {
	w := &watcher{session: s, path: fmt.Sprintf("/w/%d", s.number%2)}
	conns := 0
	for {
		c := s.connected()
		if c == nil {
			return
		}
		if s.conns != conns {
			conns = s.conns
			if w.armed && !w.again(c) {
				continue
			}
		}
		if s.rng.IntN(4) == 0 {
			_, _ = s.do(proto.OpSetData, setBody(w.path, []byte(fmt.Sprint(s.world.now())), -1)) // any fate will do
		} else {
			w.look(c)
		}
		if !s.world.rest(time.Duration(s.rng.IntN(20)) * time.Millisecond) {
			return
		}
	}
}

// again tells a new connection of the watch that the client believes to have.
func (w *watcher) again(c *client.Conn) bool {
	r := proto.SetWatches{RelativeZxid: w.mzxid, Data: []string{w.path}}
	_, err := w.wait(c.Do(proto.OpSetWatches, r.Append(nil, false)))
	return err == nil
}

// look reads the node. What the read shows and what events came must fit: the
// event of a change comes before any answer that shows the change.
func (w *watcher) look(c *client.Conn) {
	arming := !w.armed
	if fired := w.events(c); arming && fired > 0 {
		w.world.wrong("worker %d: %d events on %s at server %d and no watch set", w.number, fired, w.path, w.server)
	} else if w.fired(fired) {
		return
	}
	call, err := w.wait(c.Do(proto.OpGetData, readBody(w.path, arming)))
	if err != nil {
		return
	}
	d := proto.NewDecoder(call.Reply)
	d.Buffer()
	now := d.Stat().Mzxid
	if arming {
		w.armed, w.mzxid = true, now
		w.world.count("watches set")
		return
	}
	if !w.fired(w.events(c)) && now != w.mzxid {
		w.world.wrong("worker %d: server %d shows %s changed at %v, but the watch set at %v has not fired",
			w.number, w.server, w.path, now, w.mzxid)
		w.armed = false
	}
}

// fired notes that a watch has fired.
func (w *watcher) fired(times int) bool {
	if times == 0 {
		return false
	}
	if times > 1 {
		w.world.wrong("worker %d: %d events of one watch on %s at server %d", w.number, times, w.path, w.server)
	}
	w.world.count("watches fired")
	w.armed = false
	return true
}

// events counts and takes what has come.
func (w *watcher) events(c *client.Conn) (n int) {
	for {
		select {
		case _, ok := <-c.Events():
			if !ok {
				return n
			}
			n++
		default:
			return n
		}
	}
}
