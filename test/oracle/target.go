package oracle

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// superCredentials is what the control connection authenticates with; scripts
// use it too, with the scheme digest.
const superCredentials = "super:oracle"

// markDir holds the ephemeral nodes that tell when a session has ended. It is
// the same on both servers and outlives scripts.
const markDir = "/.mark"

// controlTimeout is the control session's, in milliseconds: the longest that
// the servers grant here, so that it survives between scripts.
const controlTimeout = 60000

// Target is one running server. It runs one script at a time.
type Target struct {
	Name string
	Addr string

	// anonymous is set where the server knows no digests: scripts then need
	// skipACL=yes, or leave nothing that the control connection may not remove.
	anonymous bool

	server  *peer.Server
	control *peer.Conn
	session proto.ConnectResponse // the control connection's, 0 before the first
	xid     int32
	runs    int // scripts begun: the number in their root's name
	marks   int
}

func superDigest() string {
	sum := sha1.Sum([]byte(superCredentials))
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// errControl is returned when the control connection gets an answer that
// makes no sense.
var errControl = errors.New("oracle: the control connection was refused")

// call makes a request on the control connection.
func (t *Target) call(op proto.OpCode, body []byte) (proto.ReplyHeader, []byte, error) {
	t.xid++
	return t.control.Call(t.xid, op, body, 3*patience)
}

// open makes the control connection if there is none that answers.
func (t *Target) open() error {
	if t.control != nil {
		if _, _, err := t.call(proto.OpExists, (&proto.PathWatch{Path: "/"}).Append(nil)); err == nil {
			return nil
		}
		t.control.Close()
		t.control = nil
	}
	c, err := peer.Open(t.Addr)
	if err != nil {
		return err
	}
	t.control = c
	req := proto.ConnectRequest{TimeoutMillis: controlTimeout, Password: make([]byte, proto.PasswordLen), HasReadOnly: true}
	if t.session.SessionID != 0 {
		// The same session goes on: one that expired later would take a zxid.
		req.SessionID, req.Password = t.session.SessionID, t.session.Password
	}
	resp, err := c.Connect(req, 3*patience)
	if err != nil || resp.SessionID == 0 {
		return fmt.Errorf("%w: connect: %+v, %v", errControl, resp, err)
	}
	t.session = resp
	if !t.anonymous {
		auth := proto.AuthPacket{Scheme: "digest", Auth: []byte(superCredentials)}
		if h, _, err := c.Call(proto.XidAuth, proto.OpAuth, auth.Append(nil), patience); err != nil || h.Err != proto.ErrOK {
			return fmt.Errorf("%w: auth: %+v, %v", errControl, h, err)
		}
	}
	if _, err := t.create(markDir); err != nil {
		return err
	}
	return nil
}

// create makes a node as super; one that exists is fine.
func (t *Target) create(path string) (proto.ReplyHeader, error) {
	req := proto.CreateRequest{Path: path, Data: []byte{}, ACL: proto.OpenACL}
	h, _, err := t.call(proto.OpCreate, req.Append(nil, proto.OpCreate))
	if err == nil && h.Err != proto.ErrOK && h.Err != proto.ErrNodeExists {
		err = fmt.Errorf("%w: create %s: %v", errControl, path, h.Err)
	}
	return h, err
}

// restart ends the server and starts it on the same data, and returns the zxid
// of the first write after that.
func (t *Target) restart(kill bool) (base int64, err error) {
	if kill {
		t.server.Kill(t.server.TB())
	} else {
		t.server.Stop(t.server.TB())
	}
	t.server.Restart(t.server.TB())
	if err := t.open(); err != nil {
		return 0, err
	}
	req := proto.SetDataRequest{Path: markDir, Version: -1}
	h, _, err := t.call(proto.OpSetData, req.Append(nil))
	if err == nil && h.Err != proto.ErrOK {
		err = fmt.Errorf("%w: setData %s: %v", errControl, markDir, h.Err)
	}
	return int64(h.Zxid), err
}

// begin makes the script's root node and returns it with its zxid.
func (t *Target) begin() (root string, base int64, err error) {
	if err := t.open(); err != nil {
		return "", 0, err
	}
	t.runs++
	root = fmt.Sprintf("/o%06d", t.runs)
	h, err := t.create(root)
	if err == nil && h.Err != proto.ErrOK {
		err = fmt.Errorf("%w: the root %s exists", errControl, root)
	}
	return root, int64(h.Zxid), err
}

// end closes what the script left open: connections, sessions, nodes.
func (t *Target) end(r *runner) error {
	for _, c := range r.conns {
		r.forget(c)
	}
	for _, s := range r.all {
		if !s.over {
			if err := t.endSession(s); err != nil {
				return err
			}
		}
	}
	return t.empty("/")
}

// endPatience is how long a session that a script left open may be refused its
// end. A server that goes on refusing throttles connections for good: the
// session then stays, and its configuration has that one script.
const endPatience = 3 * time.Second

// endSession resumes a session and closes it. A server that limits connections
// may not have noticed yet that the script's are closed, so it is asked again.
func (t *Target) endSession(s *session) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(endPatience); ; <-poll.C {
		err := t.tryEndSession(s)
		switch {
		case !errors.Is(err, peer.ErrClosed):
			return err
		case time.Now().After(deadline):
			return nil
		}
	}
}

func (t *Target) tryEndSession(s *session) error {
	c, err := peer.Open(t.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	req := proto.ConnectRequest{TimeoutMillis: s.timeout, SessionID: proto.SessionID(s.id), Password: s.passwd}
	resp, err := c.Connect(req, 3*patience)
	if err != nil {
		return err
	}
	if resp.SessionID == 0 {
		return nil // it had ended by itself
	}
	_, _, err = c.Call(1, proto.OpCloseSession, nil, 3*patience)
	return err
}

// empty removes all that scripts made below a node.
func (t *Target) empty(path string) error {
	_, body, err := t.call(proto.OpGetChildren, (&proto.PathWatch{Path: path}).Append(nil))
	if err != nil {
		return err
	}
	for _, name := range proto.NewDecoder(body).Strings() {
		child := strings.TrimSuffix(path, "/") + "/" + name
		if child == markDir {
			continue
		}
		if err := t.empty(child); err != nil {
			return err
		}
		if child == proto.PathZooKeeper || child == proto.PathQuota || child == proto.PathConfig {
			continue
		}
		h, _, err := t.call(proto.OpDelete, (&proto.PathVersion{Path: child, Version: -1}).Append(nil))
		if err != nil {
			return err
		}
		if h.Err != proto.ErrOK && h.Err != proto.ErrNoNode {
			return fmt.Errorf("%w: delete %s: %v", errControl, child, h.Err)
		}
	}
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
		b, err := t.control.Receive(time.Until(deadline))
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

// apacheOnly are settings that only make the real server faster to test.
var apacheOnly = map[string]string{"zookeeper.forceSync": "no"}

// options turns a script's config line into server options.
func options(config string) peer.Options {
	o := peer.Options{
		Config: map[string]string{
			"tickTime": "200", "maxSessionTimeout": "60000", "maxClientCnxns": "0",
			"4lw.commands.whitelist": "*",
		},
		Defines: map[string]string{
			"zookeeper.extendedTypesEnabled":                     "true",
			"zookeeper.DigestAuthenticationProvider.superDigest": superDigest(),
			"znode.container.checkIntervalMs":                    "1000000000",
			"zookeeper.admin.enableServer":                       "false",
		},
	}
	for _, f := range strings.Fields(config) {
		k, v, _ := strings.Cut(f, "=")
		if d, ok := strings.CutPrefix(k, "-D"); ok {
			o.Defines[d] = v
		} else {
			o.Config[k] = v
		}
	}
	return o
}

// Configs returns the different config lines of scripts, in order.
func Configs(scripts []Script) []string {
	var out []string
	for _, s := range scripts {
		if !slices.Contains(out, s.Config) {
			out = append(out, s.Config)
		}
	}
	return out
}

// leftovers describes the nodes that scripts can change for good.
func (t *Target) leftovers() (string, error) {
	if err := t.open(); err != nil {
		return "", err
	}
	var out string
	for _, path := range []string{"/", proto.PathZooKeeper, proto.PathQuota, proto.PathConfig} {
		h, body, err := t.call(proto.OpGetData, (&proto.PathWatch{Path: path}).Append(nil))
		if err != nil {
			return "", err
		}
		d := proto.NewDecoder(body)
		data, s := d.Buffer(), d.Stat()
		out += fmt.Sprintf("%s %v %q %d %d %d %d\n", path, h.Err, data, s.Version, s.CVersion, s.AVersion, s.NumChildren)
	}
	return out, nil
}
