package faults

import (
	"fmt"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// A watch kind is how one of the three one-shot watches is set, and what of the
// node it follows: the zxid that it changes at, 0 if there is no node.
type watchKind struct {
	name   string
	op     proto.OpCode
	root   string // what it watches lies below
	at     func(call *client.Call) proto.Zxid
	change func(w *watcher) // makes some change that fires it, or none
}

var watchKinds = []watchKind{
	{"data", proto.OpGetData, "/w/", func(call *client.Call) proto.Zxid {
		d := proto.NewDecoder(call.Reply)
		d.Buffer()
		return d.Stat().Mzxid
	}, func(w *watcher) {
		_, _ = w.do(proto.OpSetData, setBody(w.path, fmt.Append(nil, w.world.now()), -1)) // any fate will do
	}},
	{"exists", proto.OpExists, "/w/x", func(call *client.Call) proto.Zxid {
		if call.Header.Err == proto.ErrNoNode {
			return 0
		}
		return proto.NewDecoder(call.Reply).Stat().Mzxid
	}, func(w *watcher) {
		if w.rng.IntN(2) == 0 {
			_, _ = w.do(proto.OpCreate, createBody(w.path, nil, proto.CreatePersistent)) // it may exist
		} else {
			_, _ = w.do(proto.OpDelete, deleteBody(w.path, -1)) // it may not
		}
	}},
	{"children", proto.OpGetChildren2, "/w/", func(call *client.Call) proto.Zxid {
		d := proto.NewDecoder(call.Reply)
		d.Strings()
		return d.Stat().Pzxid
	}, func(w *watcher) {
		child := w.path + "/child"
		if w.rng.IntN(2) == 0 {
			_, _ = w.do(proto.OpCreate, createBody(child, nil, proto.CreatePersistent)) // it may exist
		} else {
			_, _ = w.do(proto.OpDelete, deleteBody(child, -1)) // it may not
		}
	}},
}

// watcher follows one node with one-shot watches of one kind, over connections.
type watcher struct {
	*session
	kind watchKind
	path string
	// armed tells that a watch is set that has not fired; at is what it followed
	// stood at then.
	armed bool
	at    proto.Zxid
	// set is the newest zxid that the client had seen when it set the watch:
	// what it asks a new connection to go on from.
	set proto.Zxid
}

// useWatches is a worker.
func useWatches(s *session) {
	kind := watchKinds[s.number%len(watchKinds)]
	w := &watcher{session: s, kind: kind, path: fmt.Sprintf("%s%d", kind.root, s.number%2)}
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
			kind.change(w)
		} else {
			w.look(c)
		}
		if !s.world.rest(time.Duration(s.rng.IntN(20)) * time.Millisecond) {
			return
		}
	}
}

// again tells a new connection of the watch that the client believes to have,
// in the list that client libraries would put it in.
func (w *watcher) again(c *client.Conn) bool {
	r := proto.SetWatches{RelativeZxid: w.set, Data: []string{}, Exist: []string{}, Child: []string{}}
	switch {
	case w.kind.op == proto.OpGetChildren2:
		r.Child = []string{w.path}
	case w.at == 0:
		r.Exist = []string{w.path}
	default:
		r.Data = []string{w.path}
	}
	_, err := w.wait(c.Do(proto.OpSetWatches, r.Append(nil, false)))
	if err != nil && c.Err() == nil && w.conn == c {
		w.world.wrong("worker %d: server %d answered setWatches with %v", w.number, w.server, err)
	}
	return err == nil
}

// look reads the node. What the read shows and what events came must fit: the
// event of a change comes before any answer that shows the change.
func (w *watcher) look(c *client.Conn) {
	arming := !w.armed
	if fired := w.events(c); arming && fired > 0 {
		w.world.wrong("worker %d: %d events of a %s watch on %s at server %d and no watch set", w.number, fired, w.kind.name, w.path, w.server)
	} else if w.fired(fired) {
		return
	}
	call, err := w.wait(c.Do(w.kind.op, readBody(w.path, arming)))
	if err != nil && (w.kind.op != proto.OpExists || call.Header.Err != proto.ErrNoNode) {
		return
	}
	now := w.kind.at(call)
	if arming {
		w.armed, w.at, w.set = true, now, call.Header.Zxid
		w.world.count("watches set")
		return
	}
	if !w.fired(w.events(c)) && now != w.at {
		w.world.wrong("worker %d: server %d shows that %s is at %v, but the %s watch that was set at %v has not fired",
			w.number, w.server, w.path, now, w.kind.name, w.at)
		w.armed = false
	}
}

// fired notes that a watch has fired.
func (w *watcher) fired(times int) bool {
	if times == 0 {
		return false
	}
	if times > 1 {
		w.world.wrong("worker %d: %d events of one %s watch on %s at server %d", w.number, times, w.kind.name, w.path, w.server)
	}
	w.world.count(w.kind.name + " watches fired")
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
