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

// Target is one running server, or an ensemble. It runs one script at a time.
type Target struct {
	Name string

	// anonymous is set where the server knows no digests: scripts then need
	// skipACL=yes, or leave nothing that the control connection may not remove.
	anonymous bool

	// sites are the servers. Those of an ensemble stand in the order of their
	// roles, the leader first, as seen when the script began.
	sites []*site
	// members are the addresses in the server lines of an ensemble, by number.
	members []string

	runs  int // scripts begun: the number in their root's name
	marks int
}

func superDigest() string {
	sum := sha1.Sum([]byte(superCredentials))
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// errControl is returned when the control connection gets an answer that
// makes no sense.
var errControl = errors.New("oracle: the control connection was refused")

// create makes a node as super; one that exists is fine.
func (t *Target) create(path string) (proto.ReplyHeader, error) {
	req := proto.CreateRequest{Path: path, Data: []byte{}, ACL: proto.OpenACL}
	h, _, err := t.call(proto.OpCreate, req.Append(nil, proto.OpCreate))
	if err == nil && h.Err != proto.ErrOK && h.Err != proto.ErrNodeExists {
		err = fmt.Errorf("%w: create %s: %v", errControl, path, h.Err)
	}
	return h, err
}

// begin makes the script's root node and returns it with its zxid.
func (t *Target) begin() (root string, base int64, err error) {
	if err := t.open(); err != nil {
		return "", 0, err
	}
	if err := t.sortByRole(); err != nil {
		return "", 0, err
	}
	t.runs++
	root = fmt.Sprintf("/o%06d", t.runs)
	h, err := t.create(root)
	if err == nil && h.Err != proto.ErrOK {
		err = fmt.Errorf("%w: the root %s exists", errControl, root)
	}
	if err == nil {
		_, err = t.settle()
	}
	return root, int64(h.Zxid), err
}

// end closes what the script left open: connections, sessions, nodes.
func (t *Target) end(r *runner) error {
	for _, c := range r.conns {
		r.forget(c)
	}
	for _, s := range t.sites {
		if s.down {
			if err := s.revive(t.anonymous); err != nil {
				return err
			}
		}
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
	c, err := peer.Open(t.sites[0].addr())
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
	if _, err := t.settle(); err != nil {
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
