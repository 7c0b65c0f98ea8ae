package oracle

import (
	"fmt"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// expire ends a session by silence. An ephemeral node of that session beside
// the script's nodes, watched from the control connection, tells when. Unless
// the connection is to stay, the session gets the shortest timeout first, so
// that scripts can use long ones, which a slow machine does not let expire.
func (r *runner) expire(s Step) error {
	name := s.Conn()
	sess := r.sess[name]
	c := r.conns[name]
	if sess == nil || sess.over {
		return nil
	}
	gone, err := r.target.watchEnd(r, name, c, sess)
	if err != nil {
		return err
	}
	r.out.Closing[r.step] = true
	if c = r.conns[name]; c != nil && s.token(2) == "live" {
		r.awaitClose(c)
	} else if !sess.over {
		r.abandon(name, c, sess)
	}
	if err := gone(); err != nil {
		return err
	}
	sess.over = true
	r.fence()
	return nil
}

// watchEnd puts a marker node into a session and returns a function that waits
// until the session's end has removed it.
func (t *Target) watchEnd(r *runner, name string, c *conn, s *session) (gone func() error, err error) {
	if c == nil || !r.fenced(c) {
		if c, err = r.resumeHidden(name, c, s); c == nil || err != nil {
			return func() error { return nil }, err
		}
	}
	t.marks++
	path := fmt.Sprintf("%s/m%06d-%04d", markDir, t.runs, t.marks%10000)
	req := proto.CreateRequest{Path: path, ACL: proto.OpenACL, Flags: proto.CreateEphemeral}
	code, ok := r.hidden(c, proto.OpCreate, req.Append(nil, proto.OpCreate))
	if !ok {
		return func() error { return nil }, nil
	}
	if code != proto.ErrOK {
		return nil, errNoMarker(code)
	}
	if _, err := t.settle(); err != nil {
		return nil, err
	}
	if h, _, err := t.call(proto.OpExists, (&proto.PathWatch{Path: path, Watch: true}).Append(nil)); err != nil || h.Err != proto.ErrOK {
		return nil, fmt.Errorf("%w: watch %s: %v, %v", errControl, path, h.Err, err)
	}
	return func() error { return t.awaitDeleted(path, s.wait()) }, nil
}

// resumeHidden reconnects an expiring session without a trace in the
// transcript. It returns nil when the session has ended already.
func (r *runner) resumeHidden(name string, old *conn, s *session) (*conn, error) {
	if old != nil {
		r.forget(old)
	}
	if err := r.dial(name); err != nil {
		return nil, err
	}
	c := r.conns[name]
	req := proto.ConnectRequest{TimeoutMillis: s.timeout, SessionID: proto.SessionID(s.id), Password: s.passwd}
	resp, err := c.tcp.Connect(req, patience)
	if err != nil || resp.SessionID == 0 {
		r.forget(c)
		s.over = true
		return nil, nil
	}
	c.sess = s
	return c, nil
}

// hidden makes a request of the runner's own on a script's connection. ok is
// false when the server closed it instead.
func (r *runner) hidden(c *conn, op proto.OpCode, body []byte) (code proto.ErrCode, ok bool) {
	const xid = 0x6f000000 // far from what scripts use
	c.queue = append(c.queue, pending{xid: xid, op: op, name: op.String(), hide: true})
	_ = c.tcp.SendRequest(xid, op, body)
	for r.conns[c.name] == c {
		b, err := c.tcp.Receive(patience)
		if err != nil {
			r.add(Item{Conn: c.name, Kind: KindClose, Exch: c.exch})
			r.forget(c)
			return 0, false
		}
		it, hide := r.match(c, b)
		if !hide {
			r.add(it)
			continue
		}
		if h := proto.NewDecoder(b).ReplyHeader(); h.Xid == xid {
			return h.Err, true
		}
	}
	return 0, false
}

// awaitDeleted waits for the deletion event of a path on the control
// connection.
func (t *Target) awaitDeleted(path string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		b, err := t.sites[0].control.Receive(time.Until(deadline))
		if err != nil {
			return fmt.Errorf("waiting for the end of a session: %w", err)
		}
		d := proto.NewDecoder(b)
		if h := d.ReplyHeader(); h.Xid != proto.XidNotification {
			continue
		}
		if e := d.WatcherEvent(); e.Path == path && e.Type == proto.EventNodeDeleted {
			// The real server closes the session's connections behind the event;
			// it comes to the next request when it has done so.
			_, _, err := t.call(proto.OpExists, (&proto.PathWatch{Path: "/"}).Append(nil))
			return err
		}
	}
	return fmt.Errorf("the session has not ended after %v", limit)
}

// shortest is the timeout of sessions that are to expire, in milliseconds; the
// servers raise it to their minimum.
const shortest = 1

// abandon resumes a session with the shortest timeout and drops it.
func (r *runner) abandon(name string, c *conn, sess *session) {
	was := sess.timeout
	sess.timeout = shortest
	if c, _ = r.resumeHidden(name, c, sess); c != nil {
		r.spread(c)
		r.forget(c)
	}
	sess.timeout = was
}

// spread keeps a connection of an ensemble talking for some ticks. A real
// follower reports to the leader whom it has heard, and with which timeout, with
// the leader's next ping: the last report of the server where the session was
// before still has the longer timeout, and must not be the last that comes.
func (r *runner) spread(c *conn) {
	if len(r.target.sites) == 1 {
		return
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for range 8 {
		said := len(r.out.Items)
		if _, ok := r.hidden(c, proto.OpExists, (&proto.PathWatch{Path: "/"}).Append(nil)); !ok {
			// It has expired already, as the machine stood still for its timeout:
			// the close is of the runner's own connection.
			r.out.Items = r.out.Items[:said]
			return
		}
		<-poll.C
	}
}

// wait bounds how long the end of a session may take: its timeout, twice
// (Apache rounds up to a tick), and what a loaded machine adds.
func (s *session) wait() time.Duration {
	return 2*time.Duration(s.timeout)*time.Millisecond + 2*patience
}

// errNoMarker is what a run fails with when its own bookkeeping was refused.
func errNoMarker(code proto.ErrCode) error {
	return fmt.Errorf("the server refused the runner's own marker: %v", code)
}
