package ensemble

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// ensemble is a number of server processes of one kind.
type ensemble struct {
	t       *testing.T
	start   func(testing.TB, peer.Options) *peer.Server
	specs   map[int]string // host:port:port of each server, with its client address
	servers map[int]*peer.Server
	config  map[string]string
	defines map[string]string
}

const superUser, superPassword = "super", "secret"

// newEnsemble makes one that has no server yet.
func newEnsemble(t *testing.T, start func(testing.TB, peer.Options) *peer.Server) *ensemble {
	return &ensemble{t: t, start: start, specs: map[int]string{}, servers: map[int]*peer.Server{}, defines: map[string]string{}, config: map[string]string{
		"tickTime": "500", "initLimit": "20", "syncLimit": "10", "reconfigEnabled": "true", "standaloneEnabled": "false",
		"4lw.commands.whitelist": "*", "maxClientCnxns": "0",
	}}
}

// spec is a server's text in a server line, drawn when it is first asked for.
func (e *ensemble) spec(id int, role string) string {
	if e.specs[id] == "" {
		e.specs[id] = fmt.Sprintf("127.0.0.1:%d:%d:ROLE;127.0.0.1:%d", peer.FreePort(e.t), peer.FreePort(e.t), peer.FreePort(e.t))
	}
	return strings.Replace(e.specs[id], "ROLE", role, 1)
}

func (e *ensemble) line(id int, role string) string {
	return fmt.Sprintf("server.%d=%s", id, e.spec(id, role))
}

// add starts a server whose file lists the given ones as participants.
func (e *ensemble) add(id int, listed ...int) {
	e.t.Helper()
	dir := filepath.Join(e.t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)), 0o644); err != nil {
		e.t.Fatal(err)
	}
	var lines []string
	for _, one := range listed {
		lines = append(lines, e.line(one, "participant"))
	}
	config := maps.Clone(e.config)
	_, config["clientPort"], _ = net.SplitHostPort(strings.SplitAfter(e.spec(id, "participant"), ";")[1])
	sum := sha1.Sum([]byte(superUser + ":" + superPassword))
	defines := maps.Clone(e.defines)
	defines["zookeeper.DigestAuthenticationProvider.superDigest"] = superUser + ":" + base64.StdEncoding.EncodeToString(sum[:])
	s := e.start(e.t, peer.Options{
		Config: config, Lines: lines, DataDir: dir, NoWait: true,
		Defines: defines,
		JVMArgs: []string{"-Xmx128m"},
	})
	e.servers[id] = s
	e.t.Cleanup(func() {
		if e.t.Failed() {
			text := s.Log()
			e.t.Logf("the end of server %d's log:\n%s", id, text[max(0, len(text)-3000):])
		}
	})
}

// form starts servers that know each other and waits until they serve.
func (e *ensemble) form(ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		e.add(id, ids...)
	}
	for _, id := range ids {
		e.awaitMode(id, "leader", "follower")
	}
}

// patience bounds what an ensemble may need; it only ends a broken test.
const patience = 90 * time.Second

func (e *ensemble) eventually(what string, ok func() bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun := time.Now()
	defer func() {
		if took := time.Since(begun); took > patience/6 {
			e.t.Logf("it took %v: %s", took.Round(time.Second), what)
		}
	}()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			e.t.Fatalf("did not happen: %s", what)
		case <-poll.C:
		}
	}
}

func (e *ensemble) mode(id int) string {
	text, err := peer.Word(e.servers[id].Address, "srvr")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(text, "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

func (e *ensemble) awaitMode(id int, modes ...string) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("server %d is one of %v", id, modes), func() bool {
		now := e.mode(id)
		for _, m := range modes {
			if m == now {
				return true
			}
		}
		return false
	})
}

// leader is the server that leads; follower one of those that do not.
func (e *ensemble) leader() (leader int) {
	e.t.Helper()
	leader = -1
	e.eventually("one of the servers leads", func() bool {
		for id := range e.servers {
			if e.mode(id) == "leader" {
				leader = id
			}
		}
		return leader >= 0
	})
	return leader
}

// client is a session at one server.
type client struct {
	t    *testing.T
	conn *peer.Conn
	xid  int32
}

func (e *ensemble) connect(id int) *client {
	e.t.Helper()
	c := &client{t: e.t}
	e.eventually(fmt.Sprintf("server %d takes a client", id), func() bool {
		conn, err := peer.Open(e.servers[id].Address)
		if err != nil {
			return false
		}
		if r, err := conn.Connect(proto.ConnectRequest{TimeoutMillis: 30000, Password: make([]byte, 16)}, patience); err != nil || r.SessionID == 0 {
			_ = conn.Close()
			return false
		}
		c.conn = conn
		return true
	})
	e.t.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// connectSuper is connect for the super user.
func (e *ensemble) connectSuper(id int) *client {
	e.t.Helper()
	c := e.connect(id)
	auth := proto.AuthPacket{Scheme: "digest", Auth: []byte(superUser + ":" + superPassword)}
	if err := c.conn.SendRequest(proto.XidAuth, proto.OpAuth, auth.Append(nil)); err != nil {
		e.t.Fatal(err)
	}
	if _, err := c.conn.Receive(patience); err != nil {
		e.t.Fatal(err)
	}
	return c
}

func (c *client) call(op proto.OpCode, body []byte) (proto.ReplyHeader, []byte, error) {
	c.xid++
	return c.conn.Call(c.xid, op, body, patience)
}

// change is a reconfig with "" for null.
type change struct {
	joining, leaving, members string
	version                   int64
}

func null(s string) string {
	if s == "" {
		return proto.NullString
	}
	return s
}

func (x change) body() []byte {
	r := proto.ReconfigRequest{Joining: null(x.joining), Leaving: null(x.leaving), NewMembers: null(x.members), CurConfigID: x.version}
	return r.Append(nil)
}

// reconfig asks for a change and returns the text and the error.
func (c *client) reconfig(x change) (string, proto.ErrCode) {
	c.t.Helper()
	if x.version == 0 {
		x.version = -1
	}
	h, body, err := c.call(proto.OpReconfig, x.body())
	if err != nil {
		c.t.Fatalf("reconfig %+v: %v", x, err)
	}
	if h.Err != proto.ErrOK {
		if len(body) > 0 {
			c.t.Errorf("reconfig %+v: error %v with a body", x, h.Err)
		}
		return "", h.Err
	}
	d := proto.NewDecoder(body)
	text, st := string(d.Buffer()), d.Stat()
	if d.Err() != nil || len(d.Rest()) > 0 {
		c.t.Errorf("reconfig %+v: the reply is no text with a Stat: %x", x, body)
	}
	if want := fmt.Sprintf("version=%x", int64(h.Zxid)); !strings.HasSuffix(text, want) || st.Mzxid != h.Zxid ||
		st.Version != -1 || st.Czxid != 0 || st.CVersion != 0 || st.AVersion != -1 || int(st.DataLength) != len(text) {
		c.t.Errorf("reconfig %+v: zxid %v, Stat %+v, text %q", x, h.Zxid, st, text)
	}
	return text, h.Err
}

// config reads /zookeeper/config.
func (c *client) config(watch bool) string {
	c.t.Helper()
	h, body, err := c.call(proto.OpGetData, (&proto.PathWatch{Path: proto.PathConfig, Watch: watch}).Append(nil))
	if err != nil || h.Err != proto.ErrOK {
		c.t.Fatalf("reading %s: %v, %v", proto.PathConfig, h.Err, err)
	}
	d := proto.NewDecoder(body)
	return string(d.Buffer())
}

var versionLine = regexp.MustCompile(`version=[0-9a-f]+`)

// plain is a membership text without what differs from run to run.
func (e *ensemble) plain(text string) string {
	for id, spec := range e.specs {
		for _, role := range []string{"participant", "observer"} {
			text = strings.ReplaceAll(text, strings.Replace(spec, "ROLE", role, 1), fmt.Sprintf("SPEC%d:%s", id, role))
		}
	}
	return versionLine.ReplaceAllString(text, "version=V")
}
