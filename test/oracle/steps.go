package oracle

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// do runs one step. A step whose connection does not exist does nothing: the
// shrinker takes steps away without looking at what others need.
func (r *runner) do(s Step) error {
	c := r.conns[s.Conn()]
	switch s.Verb() {
	case "dial":
		r.place(s)
		return r.dial(s.Conn())
	case "connect":
		return r.connect(s)
	case "mark":
		r.marks[s.Conn()] = r.last
		return nil
	case "word":
		return r.word(s)
	case "fence":
		r.fence()
		return nil
	}
	switch s.Verb() {
	case "expire":
		return r.expire(s)
	case "down", "up":
		return r.power(s)
	case "restart":
		return r.restart(s.Conn() == "kill")
	}
	if c == nil {
		return nil
	}
	switch s.Verb() {
	case "call", "send", "ask":
		return r.send(c, s)
	case "frame", "raw":
		return r.raw(c, s)
	case "cork":
		c.corked = true
	case "uncork":
		c.corked = false
		_ = c.tcp.SendRaw(c.held)
		c.held = nil
		r.fence()
	case "drop":
		r.forget(c)
	case "await":
		r.await(c, s)
	}
	return nil
}

// place notes at which server a connection is to be: that of its at=, or else
// that of its name.
func (r *runner) place(s Step) {
	r.at[s.Conn()] = home(s.Conn())
	if n := parseArgs(s.Tokens[min(2, len(s.Tokens)):]).num("at", 0); n > 0 {
		r.at[s.Conn()] = int(n)
	}
}

// home is the place of a connection that a script does not put elsewhere: a is
// at the first server, b at the second, and so on.
func home(name string) int { return int(name[0]-'a') + 1 }

// siteOf returns the server at which a connection is.
func (r *runner) siteOf(name string) *site {
	sites := r.target.sites
	return sites[(r.at[name]-1+r.script.Turn)%len(sites)]
}

func (r *runner) dial(name string) error {
	if old := r.conns[name]; old != nil {
		r.forget(old)
	}
	tcp, err := peer.Open(r.siteOf(name).addr())
	if err != nil {
		return err
	}
	r.conns[name] = &conn{name: name, tcp: tcp, exch: "dial"}
	return nil
}

// connect sends the connect request, on a connection that `dial` opened or on
// a new one, and reads its answer.
func (r *runner) connect(s Step) error {
	a := parseArgs(s.Tokens[2:])
	c := r.conns[s.Conn()]
	r.place(s)
	if c == nil || c.sess != nil || c.unfence {
		err := r.dial(s.Conn())
		if errors.Is(err, peer.ErrClosed) {
			r.add(Item{Conn: s.Conn(), Kind: KindClose, Exch: "connect"})
			return nil
		}
		if err != nil {
			return err
		}
		c = r.conns[s.Conn()]
	}
	req, sess := r.connectRequest(s.Conn(), a)
	c.exch = "connect"
	body := req.Append(nil)
	if n := int(a.num("cut", 0)); n > 0 {
		body = body[:max(0, len(body)-n)]
	}
	if p, ok := a.named["pad"]; ok {
		b, _ := hex.DecodeString(p)
		body = append(body, b...)
	}
	_ = c.tcp.Send(body)
	r.answer(c, sess)
	r.fence()
	return nil
}

// timeout is that of a session which does not say, in milliseconds: long enough
// for a script, which takes longer with more servers.
func (r *runner) timeout() int64 {
	if len(r.target.sites) > 1 {
		return 55000
	}
	return 30000
}

// connectRequest builds the request; sess is the session that it resumes.
func (r *runner) connectRequest(name string, a args) (proto.ConnectRequest, *session) {
	req := proto.ConnectRequest{TimeoutMillis: int32(a.num("timeout", r.timeout())), Password: make([]byte, proto.PasswordLen)}
	req.ProtocolVersion = int32(a.num("version", 0))
	z, _ := r.zxid(a.or("zxid", "0"))
	req.LastZxidSeen = proto.Zxid(z)
	var sess *session
	if of, ok := a.named["session"]; ok {
		sess = r.sess[of]
		if n, err := strconv.ParseInt(of, 0, 64); err == nil {
			req.SessionID = proto.SessionID(n)
		} else if sess != nil {
			req.SessionID = proto.SessionID(sess.id)
			req.Password = sess.passwd
		}
	}
	switch a.named["passwd"] {
	case "wrong":
		wrong := append([]byte{}, req.Password...)
		if len(wrong) == 0 {
			wrong = make([]byte, proto.PasswordLen)
		}
		wrong[len(wrong)-1] ^= 0x55
		req.Password = wrong
	case "zero":
		req.Password = make([]byte, proto.PasswordLen)
	case "null":
		req.Password = nil
	case "empty":
		req.Password = []byte{}
	case "short":
		req.Password = []byte{1, 2, 3}
	}
	switch a.or("ro", "0") {
	case "none":
	case "1":
		req.HasReadOnly, req.ReadOnly = true, true
	default:
		req.HasReadOnly = true
	}
	return req, sess
}

// answer reads the answer to a connect request.
func (r *runner) answer(c *conn, resumed *session) {
	b, err := c.tcp.Receive(patience)
	if err != nil {
		kind := KindSilence
		if errors.Is(err, peer.ErrClosed) {
			kind = KindClose
		}
		r.add(Item{Conn: c.name, Kind: kind, Exch: "connect"})
		r.forget(c)
		return
	}
	r.add(Item{Conn: c.name, Kind: KindConnect, Frame: b, Exch: "connect"})
	resp, err := proto.DecodeConnectResponse(b)
	if err != nil || resp.SessionID == 0 {
		r.awaitClose(c) // refused: the server's close follows
		return
	}
	if resumed == nil || resumed.id != int64(resp.SessionID) {
		resumed = &session{id: int64(resp.SessionID)}
		r.all = append(r.all, resumed)
	}
	resumed.passwd, resumed.timeout = resp.Password, resp.TimeoutMillis
	c.sess = resumed
	r.sess[c.name] = resumed
}

// send sends a request; ask reads up to its answer, and call fences behind it.
func (r *runner) send(c *conn, s Step) error {
	c.xid++
	req, err := r.values.encode(s.Tokens[2:], c.xid)
	if err != nil {
		return err
	}
	if r.spared(req.op, req.body) {
		return nil
	}
	c.exch = s.Op()
	if req.op == proto.OpCloseSession {
		r.closing = true
	}
	p := pending{xid: req.xid, op: req.op, name: s.Op()}
	if req.op == proto.OpPing {
		p.xid = proto.XidPing
	}
	if p.xid == proto.XidPing {
		c.pings++
	}
	c.queue = append(c.queue, p)
	frame := proto.AppendInt(proto.AppendInt(nil, req.xid), int32(req.op))
	r.write(c, append(frame, req.body...))
	if s.Verb() != "send" && !c.corked {
		// The answer first, the fence then: a ping that meets a closing
		// socket could cost the answer.
		for len(c.queue) > 0 && r.conns[c.name] == c {
			r.receive(c, patience)
		}
		if s.Verb() == "call" && changesOthers(req.op) {
			r.fence()
		}
	}
	return nil
}

// changesOthers tells whether an operation can bring something to another
// connection. Behind the others no fence is needed: should one bring something
// all the same, the next fence shows it.
func changesOthers(op proto.OpCode) bool {
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren, proto.OpGetChildren2, proto.OpSync, proto.OpPing,
		proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpMultiRead, proto.OpAuth, proto.OpSetWatches, proto.OpSetWatches2,
		proto.OpGetEphemerals, proto.OpGetAllChildrenNumber, proto.OpAddWatch, proto.OpWhoAmI:
		return false
	}
	return true
}

func (r *runner) write(c *conn, payload []byte) {
	b := append(proto.AppendInt(nil, int32(len(payload))), payload...)
	if c.corked {
		c.held = append(c.held, b...)
		return
	}
	_ = c.tcp.SendRaw(b)
}

// raw sends bytes of the script's own making.
func (r *runner) raw(c *conn, s Step) error {
	b, err := hex.DecodeString(s.token(2))
	if err != nil {
		return err
	}
	c.exch = s.Verb()
	if s.Verb() == "frame" {
		if len(b) >= 8 {
			d := proto.NewDecoder(b)
			h := d.RequestHeader()
			if r.spared(h.Type, d.Rest()) {
				return nil
			}
			c.queue = append(c.queue, pending{xid: h.Xid, op: h.Type, name: "frame"})
		}
		r.write(c, b)
		r.fence()
		return nil
	}
	c.unfence = true
	_ = c.tcp.SendRaw(b)
	return nil
}

// await reads until the server closes the connection, or until the event of a
// node's deletion has come; what comes before it belongs to this step too.
func (r *runner) await(c *conn, s Step) {
	if s.token(2) == "close" {
		r.awaitClose(c)
		return
	}
	path := r.values.str(s.token(3))
	// A server that was held up gives sessions their full timeout again.
	for r.receive(c, 3*patience) {
		last := r.out.Items[len(r.out.Items)-1]
		d := proto.NewDecoder(last.Frame)
		d.ReplyHeader()
		if e := d.WatcherEvent(); last.Exch == "event" && e.Type == proto.EventNodeDeleted && e.Path == path {
			r.fence()
			return
		}
	}
}

func (r *runner) awaitClose(c *conn) {
	for r.receive(c, patience) {
	}
}

// power kills one server of an ensemble, or starts it again. The connections
// that it had are closed; the sessions live on.
func (r *runner) power(s Step) error {
	n, err := strconv.Atoi(s.Conn())
	if err != nil || n < 1 || n > len(r.target.sites) {
		return nil // a server alone, or one that there is not
	}
	at := r.target.sites[(n-1+r.script.Turn)%len(r.target.sites)]
	switch {
	case s.Verb() == "up" && at.down:
		err = at.revive(r.target.anonymous)
	case s.Verb() == "down" && !at.down && at != r.target.sites[0]:
		at.kill()
		for _, name := range sortedKeys(r.conns) {
			if r.siteOf(name) == at {
				r.awaitClose(r.conns[name])
			}
		}
	}
	if err == nil {
		r.fence()
	}
	return err
}

// restart ends the server, by SIGKILL or SIGTERM, and starts it on the same
// data. The connections are gone, the sessions live on.
func (r *runner) restart(kill bool) error {
	for _, c := range r.conns {
		r.forget(c)
	}
	base, err := r.target.restart(kill)
	r.out.Bases = append(r.out.Bases, base)
	r.last = base
	return err
}

// word runs a four-letter word on a connection of its own. Its text is for the
// admin room's tests; here only whether there is one counts.
func (r *runner) word(s Step) error {
	word := s.Conn()
	r.place(Step{Tokens: append([]string{"word", "a"}, s.Tokens[2:]...)})
	text, err := peer.Word(r.siteOf("a").addr(), word)
	said := "nothing"
	if err == nil && text != "" {
		said = "something"
	}
	r.add(Item{Conn: "word", Kind: KindText, Frame: []byte(said), Exch: word})
	return nil
}

// evalZxid evaluates a number, last, base or @mark, with +n or -n behind it.
func evalZxid(expr string, last, base int64, marks map[string]int64) (int64, bool) {
	if n, err := strconv.ParseInt(expr, 0, 64); err == nil {
		return n, true
	}
	name, off := expr, int64(0)
	if i := strings.LastIndexAny(expr, "+-"); i > 0 {
		n, err := strconv.ParseInt(expr[i:], 10, 64)
		if err != nil {
			return 0, false
		}
		name, off = expr[:i], n
	}
	switch {
	case name == "last":
		return last + off, true
	case name == "base":
		return base + off, true
	case strings.HasPrefix(name, "@"):
		if z, ok := marks[name[1:]]; ok {
			return z + off, true
		}
		return base + off, true
	}
	return 0, false
}
