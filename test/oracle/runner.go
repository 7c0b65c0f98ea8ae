package oracle

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// patience is how long the runner waits for a frame or a close that must come.
// A server that keeps it waiting longer hangs, which is a difference.
const patience = 10 * time.Second

// ItemKind says what an Item of a transcript is.
type ItemKind string

// The kinds of items.
const (
	KindConnect ItemKind = "connect" // the answer to a connect request
	KindFrame   ItemKind = "frame"   // a reply or a notification
	KindClose   ItemKind = "close"   // the server closed the connection
	KindSilence ItemKind = "silence" // an answer is missing after patience
	KindText    ItemKind = "text"    // what a four-letter word said
)

// Item is one thing that came from a server, raw.
type Item struct {
	Step  int // index into the script
	Conn  string
	Kind  ItemKind
	Frame []byte       // payload
	Op    proto.OpCode // of the request that a reply answers
	Exch  string       // the operation's name, or the step's verb
}

// Transcript is all that one server answered to a script.
type Transcript struct {
	Server string
	// Bases are the zxids that distances are counted from: of the write before
	// the first step, and of the first write after each restart.
	Bases []int64
	Root  string
	// Members are the addresses that an ensemble's servers have among each
	// other: they become names.
	Members []string
	Items   []Item
	// Closing holds the steps in which a session ended: the order of the
	// events that it caused is not compared.
	Closing map[int]bool
}

// session is what a client keeps of its session.
type session struct {
	id      int64
	passwd  []byte
	timeout int32
	over    bool // closed or expired
}

// pending is a request whose reply has not come.
type pending struct {
	xid  int32
	op   proto.OpCode
	name string
	hide bool // the runner's own: not in the transcript
}

// conn is one connection's client side.
type conn struct {
	name    string
	tcp     *peer.Conn
	sess    *session
	xid     int32
	queue   []pending
	pings   int // sent and not answered
	unfence bool
	corked  bool
	held    []byte
	exch    string // the last operation sent, for closes
}

// runner drives one server through one script.
type runner struct {
	target *Target
	script Script
	step   int
	conns  map[string]*conn
	at     map[string]int      // by connection name: the server, counted from 1 at the script's turn
	sess   map[string]*session // by the connection name that made it last
	all    []*session
	marks  map[string]int64
	// closing tells that closeSession was sent and no fence has come yet.
	closing bool
	broken  error // what ended the run: a server that does not come along
	last    int64 // highest zxid of any reply so far
	values  values
	out     Transcript
}

// Run drives a server through a script and returns its transcript. The error
// is about the run itself (the server is gone), never about an answer.
func (t *Target) Run(script Script) (Transcript, error) {
	root, base, err := t.begin()
	if err != nil {
		return Transcript{}, fmt.Errorf("%s: before the script: %w", t.Name, err)
	}
	r := &runner{
		target: t, script: script, conns: map[string]*conn{}, sess: map[string]*session{}, at: map[string]int{},
		marks: map[string]int64{}, last: base,
		out: Transcript{Server: t.Name, Bases: []int64{base}, Root: root, Members: t.members, Closing: map[int]bool{}},
	}
	r.values = values{root: root, zxid: r.zxid}
	for i := range script.Steps {
		r.step = i
		if err := errors.Join(r.do(script.Steps[i]), r.broken); err != nil {
			return r.out, fmt.Errorf("%s: step %d (%s): %w", t.Name, i, script.Steps[i], err)
		}
	}
	r.step = len(script.Steps)
	r.fence()
	if err := t.end(r); err != nil {
		return r.out, fmt.Errorf("%s: after the script: %w", t.Name, err)
	}
	return r.out, nil
}

// add appends to the transcript.
func (r *runner) add(it Item) {
	it.Step = r.step
	r.out.Items = append(r.out.Items, it)
}

// fence settles every connection. Those with requests under way and the step's
// own come first, one after the other, so that what was asked has been done;
// then all others, whose pings travel together.
//
// In an ensemble a reply says only that its own server has applied the write.
// So between the two all servers are waited for, and the second round takes all
// connections: what one brings to the others is then in their way.
func (r *runner) fence() {
	if r.closing {
		r.out.Closing[r.step] = true
		r.closing = false
	}
	var rest []*conn
	ensemble := len(r.target.sites) > 1
	for _, name := range sortedKeys(r.conns) {
		c := r.conns[name]
		if len(c.queue) == 0 && name != stepAt(r.script, r.step).Conn() {
			rest = append(rest, c)
			continue
		}
		r.ping(c)
		r.settle(c)
		if ensemble && r.conns[name] == c {
			rest = append(rest, c)
		}
	}
	if _, err := r.target.settle(); err != nil {
		r.broken = err
		return
	}
	for _, c := range rest {
		r.ping(c)
	}
	for _, c := range rest {
		r.settle(c)
	}
}

func (r *runner) fenced(c *conn) bool { return c.sess != nil && !c.unfence && !c.corked }

func (r *runner) ping(c *conn) {
	if !r.fenced(c) {
		return
	}
	c.pings++
	c.queue = append(c.queue, pending{xid: proto.XidPing, op: proto.OpPing, name: "ping", hide: true})
	// A write error is the server's close, which settle will read.
	_ = c.tcp.SendRequest(proto.XidPing, proto.OpPing, nil)
}

// settle reads a connection until all pings are answered or it is closed.
func (r *runner) settle(c *conn) {
	for r.fenced(c) && c.pings > 0 {
		if !r.receive(c, patience) {
			return
		}
	}
}

// receive reads one frame and adds it to the transcript. It returns false when
// the connection is gone.
func (r *runner) receive(c *conn, wait time.Duration) bool {
	b, err := c.tcp.Receive(wait)
	if err != nil {
		kind := KindSilence
		if errors.Is(err, peer.ErrClosed) {
			kind = KindClose
		}
		r.add(Item{Conn: c.name, Kind: kind, Exch: c.exch})
		r.forget(c)
		return false
	}
	it, hide := r.match(c, b)
	if !hide {
		r.add(it)
	}
	if closes(it) {
		// The real server may still answer a ping behind this reply, so the
		// close is waited for.
		c.pings = 0
		r.awaitClose(c)
		return false
	}
	return true
}

// closes tells whether a reply is one behind which the server closes.
func closes(it Item) bool {
	if it.Kind != KindFrame || it.Exch == "event" {
		return false
	}
	d := proto.NewDecoder(it.Frame)
	h := d.ReplyHeader()
	switch h.Err {
	case proto.ErrUnimplemented:
		return h.Zxid == -1
	case proto.ErrAuthFailed, proto.ErrSessionClosedRequireSASLAuth:
		return true
	}
	return it.Op == proto.OpCloseSession && h.Err == proto.ErrOK
}

// match finds the request that a frame answers and notes what the runner
// itself needs from it.
func (r *runner) match(c *conn, b []byte) (it Item, hide bool) {
	it = Item{Conn: c.name, Kind: KindFrame, Frame: b, Op: proto.OpNotification, Exch: "event"}
	if len(c.queue) > 0 && c.queue[0].op == proto.OpCreateSession && len(b) > 16 {
		it.Kind, it.Exch = KindConnect, c.queue[0].name
		c.queue = c.queue[1:]
		return it, false
	}
	d := proto.NewDecoder(b)
	h := d.ReplyHeader()
	if d.Err() != nil {
		it.Exch = "malformed"
		return it, false
	}
	if h.Xid == proto.XidNotification && (len(c.queue) == 0 || c.queue[0].xid != proto.XidNotification) {
		return it, false
	}
	if h.Xid == proto.XidPing && c.pings > 0 {
		c.pings--
	}
	i := slices.IndexFunc(c.queue, func(p pending) bool { return p.xid == h.Xid })
	if i < 0 {
		it.Exch = "unasked"
		return it, false
	}
	p := c.queue[i]
	c.queue = slices.Delete(c.queue, i, i+1)
	it.Op, it.Exch = p.op, p.name
	if int64(h.Zxid) > r.last {
		r.last = int64(h.Zxid)
	}
	if p.op == proto.OpCloseSession && h.Err == proto.ErrOK && c.sess != nil {
		c.sess.over = true
	}
	return it, p.hide
}

// forget closes our end; the session lives on until it is resumed or expires.
func (r *runner) forget(c *conn) {
	c.tcp.Close()
	delete(r.conns, c.name)
}

// zxid evaluates a zxid expression on this server.
func (r *runner) zxid(expr string) (int64, bool) {
	return evalZxid(expr, r.last, r.out.Bases[0], r.marks)
}
