package faults

import (
	"bufio"
	"net"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// lie is what a liar answers to one request.
type lie struct {
	events int // that come before the answer
	zxid   proto.Zxid
	err    proto.ErrCode
	body   []byte
}

// liarsSession is the session that a liar gives who asks for a new one.
const liarsSession proto.SessionID = 7

// liar is a server that answers, request by request, what a test tells it to:
// the checks that clients make while they work find what is wrong with it.
type liar struct {
	lies []lie
	// over refuses all sessions that a client names, other answers each of them
	// with another one.
	over, other bool
}

// world returns a run whose one server is the liar.
func (l *liar) world(t *testing.T) *world {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	next := make(chan lie, len(l.lies))
	for _, lie := range l.lies {
		next <- lie
	}
	close(next)
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(socket, next)
		}
	}()
	return newWorld(&ensemble{t: t, ids: []int{1}, servers: map[int]*peer.Server{1: {Address: listener.Addr().String()}}}, 0)
}

// serve ends the connection where the lies do.
func (l *liar) serve(socket net.Conn, next <-chan lie) {
	defer func() { _ = socket.Close() }()
	in := bufio.NewReader(socket)
	frame, err := proto.ReadFrame(in, nil, 1<<20)
	if err != nil {
		return
	}
	asked, err := proto.DecodeConnectRequest(frame)
	if err != nil {
		return
	}
	answer := proto.ConnectResponse{SessionID: asked.SessionID, TimeoutMillis: int32(sessionTimeout.Milliseconds()), Password: make([]byte, proto.PasswordLen)}
	switch {
	case asked.SessionID == 0:
		answer.SessionID = liarsSession
	case l.over:
		answer.SessionID, answer.TimeoutMillis = 0, 0
	case l.other:
		answer.SessionID++
	}
	if _, err := socket.Write(proto.EndFrame(answer.Append(proto.BeginFrame(nil)), 0)); err != nil {
		return
	}
	for {
		frame, err := proto.ReadFrame(in, frame[:0], 1<<20)
		if err != nil {
			return
		}
		d := proto.NewDecoder(frame)
		xid := d.Int()
		var out []byte
		frameOf := func(h proto.ReplyHeader, body []byte) {
			begun := len(out)
			out = append(proto.AppendReplyHeader(proto.BeginFrame(out), h), body...)
			out = proto.EndFrame(out, begun)
		}
		if xid == proto.XidPing {
			frameOf(proto.ReplyHeader{Xid: xid}, nil)
		} else {
			lie, more := <-next
			if !more {
				return
			}
			for range lie.events {
				frameOf(proto.ReplyHeader{Xid: proto.XidNotification, Zxid: -1},
					proto.AppendWatcherEvent(nil, proto.WatcherEvent{Type: proto.EventNodeDataChanged, State: proto.StateSyncConnected, Path: "/x"}))
			}
			frameOf(proto.ReplyHeader{Xid: xid, Zxid: lie.zxid, Err: lie.err}, lie.body)
		}
		if _, err := socket.Write(out); err != nil {
			return
		}
	}
}

// client is a session of a run, connected.
func (w *world) client() *session {
	s := &session{world: w, number: 1, rng: random(1, 1), over: map[proto.SessionID]bool{}}
	s.connectTo(door{1, w.e.address(1)})
	return s
}

// The checks that clients make while they work, and those that ask servers at
// the end, must be able to fail: a server that lies is found out.
func TestTheChecksFindOutAServerThatLies(t *testing.T) {
	at := func(zxid proto.Zxid) []byte {
		return proto.AppendStat(nil, &proto.Stat{Mzxid: zxid, Pzxid: zxid})
	}
	data := func(zxid proto.Zxid) []byte { return append(proto.AppendBuffer(nil, nil), at(zxid)...) }
	children := func(zxid proto.Zxid) []byte { return append(proto.AppendStrings(nil, nil), at(zxid)...) }
	none := lie{err: proto.ErrNoNode}
	// watch looks so many times at a node through watches of a kind.
	watch := func(kind, times int) func(*world) {
		return func(w *world) {
			s := w.client()
			defer s.drop()
			watching := &watcher{session: s, kind: watchKinds[kind], path: "/x"}
			for range times {
				watching.look(s.conn)
			}
		}
	}
	checkLiving := func(ended bool) func(*world) {
		return func(w *world) {
			w.notes.ephemerals[9] = map[string]bool{"/e/x": true}
			w.notes.ended[9] = ended
			w.checkLiving()
		}
	}
	checkEnded := func(w *world) {
		s := w.client()
		defer s.drop()
		s.over[9] = true
		if !s.checkEnded() {
			w.wrong("it could not look")
		}
	}
	names := func(names ...string) []byte { return proto.AppendStrings(nil, names) }
	readPair := func(w *world) { s := w.client(); defer s.drop(); s.readPair() }
	pair := func(a, b string) (body []byte) {
		for _, value := range []string{a, b} {
			body = proto.AppendMultiHeader(body, proto.MultiHeader{Type: proto.OpGetData})
			body = append(proto.AppendBuffer(body, []byte(value)), at(1)...)
		}
		return proto.AppendMultiHeader(body, proto.MultiHeader{Type: -1, Done: true, Err: -1})
	}
	twice := func(w *world) {
		s := w.client()
		defer s.drop()
		for range 2 {
			_, _ = s.do(proto.OpExists, readBody("/x", false))
		}
	}
	for _, c := range []struct {
		name  string
		liar  liar
		run   func(*world)
		wants string // part of the problem; "" for none
	}{
		{"a data watch that has nothing to say", liar{lies: []lie{{body: data(1)}, {body: data(1)}}}, watch(0, 2), ""},
		{"a data watch that fires", liar{lies: []lie{{body: data(1)}, {events: 1, body: data(2)}}}, watch(0, 2), ""},
		{"a data watch that does not fire", liar{lies: []lie{{body: data(1)}, {body: data(2)}}}, watch(0, 2), "the data watch that was set at 0x1 has not fired"},
		{"a data watch that fires twice", liar{lies: []lie{{body: data(1)}, {events: 2, body: data(2)}}}, watch(0, 2), "2 events of one data watch"},
		{"an exists watch that fires for a new node", liar{lies: []lie{none, {events: 1, body: at(2)}}}, watch(1, 2), ""},
		{"an exists watch that misses a new node", liar{lies: []lie{none, {body: at(2)}}}, watch(1, 2), "the exists watch that was set at 0x0 has not fired"},
		{"an exists watch that misses a deletion", liar{lies: []lie{{body: at(2)}, none}}, watch(1, 2), "the exists watch that was set at 0x2 has not fired"},
		{"a children watch that fires", liar{lies: []lie{{body: children(1)}, {events: 1, body: children(2)}}}, watch(2, 2), ""},
		{"a children watch that does not fire", liar{lies: []lie{{body: children(1)}, {body: children(2)}}}, watch(2, 2), "the children watch that was set at 0x1 has not fired"},
		{"a one-shot watch that fires again later", liar{lies: []lie{{body: data(1)}, {events: 1, body: data(2)}, {events: 1, body: at(2)}}}, func(w *world) {
			s := w.client()
			defer s.drop()
			watching := &watcher{session: s, kind: watchKinds[0], path: "/x"}
			watching.look(s.conn)
			watching.look(s.conn)
			_, _ = s.do(proto.OpExists, readBody("/x", false)) // brings the event
			watching.look(s.conn)
		}, "1 events of a data watch on /x at server 1 and no watch set"},
		{"watches that a new connection does not take", liar{lies: []lie{{err: proto.ErrSystemError}}}, func(w *world) {
			s := w.client()
			defer s.drop()
			(&watcher{session: s, kind: watchKinds[0], path: "/x"}).again(s.conn)
		}, "answered setWatches with"},
		{"an ephemeral of a session that lives", liar{lies: []lie{{}, {body: at(1)}}}, checkLiving(false), ""},
		{"an ephemeral that is lost, of a session that lives", liar{lies: []lie{{}, none}}, checkLiving(false), "/e/x is lost although its session lives"},
		{"an ephemeral that is gone with its session", liar{lies: []lie{{}, none}, over: true}, checkLiving(false), ""},
		{"an ephemeral without a living session", liar{lies: []lie{{}, {body: at(1)}}}, checkLiving(true), "/e/x exists, but its session is over"},
		{"an ephemeral that cannot be looked at", liar{lies: []lie{{}, {err: proto.ErrNoAuth}}}, checkLiving(false), "look at /e/x"},
		{"another session's ephemeral", liar{lies: []lie{{body: names("0000000000000008-1")}}}, checkEnded, ""},
		{"an ephemeral of a session that the client was told is over", liar{lies: []lie{{body: names("0000000000000009-1")}}}, checkEnded,
			"shows 0000000000000009-1 although it has said that its session is over"},
		{"a pair that fits", liar{lies: []lie{{body: pair("1.1", "1.1")}}}, readPair, ""},
		{"half of a multi", liar{lies: []lie{{body: pair("1.2", "1.1")}}}, readPair, "shows half of a multi"},
		{"a multi that has failed and is in effect", liar{lies: []lie{{body: pair("bad 1.1", "bad 1.1")}}}, readPair, "shows half of a multi"},
		{"zxids that rise", liar{lies: []lie{{zxid: 8, body: at(1)}, {zxid: 9, body: at(1)}}}, twice, ""},
		{"zxids that fall", liar{lies: []lie{{zxid: 9, body: at(1)}, {zxid: 8, body: at(1)}}}, twice, "with zxid 0x8 after the client had seen 0x9"},
		{"another session than was asked for", liar{other: true}, func(w *world) {
			s := &session{world: w, rng: random(1, 1), id: 9, password: make([]byte, proto.PasswordLen)}
			defer s.drop()
			s.connectTo(door{1, w.e.address(1)})
		}, "answered session 0x9 with session 0xa"},
		{"a node that only one of the servers' clients sees", liar{lies: []lie{{body: data(1)}, {body: names("a")}, none, none}}, func(w *world) {
			w.dump(1)
		}, "dump /a"},
	} {
		w := c.liar.world(t)
		c.run(w)
		w.mustHaveFound(t, c.name, c.wants)
	}
}
