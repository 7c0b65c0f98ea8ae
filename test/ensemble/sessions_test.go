package ensemble

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// both runs a transcript on Apache's server and on ours and compares them.
func both(t *testing.T, transcript func(*ensemble) []string) {
	t.Helper()
	peer.ApacheClasspath(t)
	var transcripts [2][]string
	t.Run("both", func(t *testing.T) {
		for i, start := range []func(testing.TB, peer.Options) *peer.Server{peer.StartApache, peer.StartZooraft} {
			t.Run([]string{"apache", "zooraft"}[i], func(t *testing.T) {
				t.Parallel()
				transcripts[i] = transcript(newEnsemble(t, start))
			})
		}
	})
	if t.Failed() {
		return
	}
	apache, ours := transcripts[0], transcripts[1]
	t.Logf("%d answers:\n%s", len(apache), strings.Join(apache, "\n"))
	for i := range max(len(apache), len(ours)) {
		if i >= len(apache) || i >= len(ours) || apache[i] != ours[i] {
			t.Fatalf("answer %d differs:\n apache: %s\nzooraft: %s", i, at(apache, i), at(ours, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(ended)"
}

// hello is a connect request, and what came back in words.
func (e *ensemble) hello(id int, r proto.ConnectRequest) (*client, proto.ConnectResponse, string) {
	e.t.Helper()
	conn, err := peer.Open(e.servers[id].Address)
	if err != nil {
		return nil, proto.ConnectResponse{}, "closed"
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	r.TimeoutMillis, r.HasReadOnly = 20000, true
	if r.Password == nil {
		r.Password = make([]byte, proto.PasswordLen)
	}
	if err := conn.Send(r.Append(nil)); err != nil {
		return nil, proto.ConnectResponse{}, "closed"
	}
	b, err := conn.Receive(patience)
	switch {
	case errors.Is(err, peer.ErrClosed):
		return nil, proto.ConnectResponse{}, "closed"
	case err != nil:
		e.t.Fatal(err)
	}
	if len(b) == 16 {
		d := proto.NewDecoder(b)
		return nil, proto.ConnectResponse{}, fmt.Sprintf("a reply header: %v", d.ReplyHeader().Err)
	}
	answer, err := proto.DecodeConnectResponse(b)
	if err != nil {
		e.t.Fatal(err)
	}
	what := "a new session"
	switch answer.SessionID {
	case 0:
		what = "no session"
	case r.SessionID:
		what = "the same session"
	}
	return &client{t: e.t, conn: conn}, answer, fmt.Sprintf("%s, timeout %d, readOnly %v %v", what, answer.TimeoutMillis, answer.HasReadOnly, answer.ReadOnly)
}

// ask sends a request and puts the error into words.
func (c *client) ask(op proto.OpCode, body []byte) string {
	h, reply, err := c.call(op, body)
	if errors.Is(err, peer.ErrClosed) {
		return "closed"
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if op == proto.OpMulti && h.Err == proto.ErrOK {
		d := proto.NewDecoder(reply)
		return fmt.Sprintf("%v, first %v", h.Err, d.MultiHeader().Err)
	}
	return h.Err.String()
}

func create(op proto.OpCode, path string, flags int32) []byte {
	r := proto.CreateRequest{Path: path, ACL: proto.OpenACL, Flags: flags, TTL: -1}
	return r.Append(nil, op)
}

func multi(path string, flags int32) []byte {
	return proto.AppendMulti(nil, []proto.MultiOp{{Type: proto.OpCreate, Create: proto.CreateRequest{Path: path, ACL: proto.OpenACL, Flags: flags}}})
}

// gauge is a number of mntr.
func (e *ensemble) gauge(id int, name string) string {
	text, err := peer.Word(e.servers[id].Address, "mntr")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && key == "zk_"+name {
			return value
		}
	}
	return "(none)"
}

func TestLocalSessionsBehaveAsApaches(t *testing.T) {
	for _, upgrading := range []string{"false", "true"} {
		t.Run("upgrading="+upgrading, func(t *testing.T) {
			t.Parallel()
			both(t, func(e *ensemble) (lines []string) {
				e.config["localSessionsEnabled"], e.config["localSessionsUpgradingEnabled"] = "true", upgrading
				e.form(1, 2, 3)
				say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
				leader := e.leader()
				one, two := leader%3+1, (leader+1)%3+1
				for _, id := range []int{one, leader} {
					c, session, text := e.hello(id, proto.ConnectRequest{})
					say("connect: %s", text)
					root := fmt.Sprintf("/of-%t", id == leader)
					say("a node: %s", c.ask(proto.OpCreate, create(proto.OpCreate, root, 0)))
					say("in a multi: %s", c.ask(proto.OpMulti, multi(root+"/m", 0)))
					say("sessions: local %s, global %s", e.gauge(id, "local_sessions"), e.gauge(id, "global_sessions"))
					say("a sync: %s", c.ask(proto.OpSync, proto.AppendString(nil, "/")))
					again := proto.ConnectRequest{SessionID: session.SessionID, Password: session.Password}
					_, _, text = e.hello(two, again)
					say("at another server: %s", text)
					c, _, text = e.hello(id, again)
					say("at the same server: %s", text)
					say("an ephemeral: %s", c.ask(proto.OpCreate, create(proto.OpCreate, root+"/e", proto.CreateEphemeral)))
					say("another: %s", c.ask(proto.OpCreate2, create(proto.OpCreate2, root+"/f", proto.CreateEphemeralSequential)))
					if upgrading == "true" || id == leader { // else: row local-session-multi of docs/compatibility.md
						say("one in a multi: %s", c.ask(proto.OpMulti, multi(root+"/g", proto.CreateEphemeral)))
					}
					say("sessions: local %s, global %s", e.gauge(id, "local_sessions"), e.gauge(id, "global_sessions"))
					say("a node: %s", c.ask(proto.OpCreate, create(proto.OpCreate, root+"/n", 0)))
					d, _, text := e.hello(two, again)
					say("at another server: %s", text)
					if d != nil && upgrading == "true" {
						say("its close: %s", d.ask(proto.OpCloseSession, nil))
					} else {
						say("its close: %s", c.ask(proto.OpCloseSession, nil))
					}
					f, _, text := e.hello(two, proto.ConnectRequest{})
					say("another client: %s", text)
					e.eventually("the ephemeral is gone", func() bool {
						return f.ask(proto.OpExists, (&proto.PathWatch{Path: root + "/e"}).Append(nil)) == "NoNode"
					})
					say("its close: %s", f.ask(proto.OpCloseSession, nil))
				}
				return lines
			})
		})
	}
}

func TestReadOnlyModeBehavesAsApaches(t *testing.T) {
	for _, local := range []string{"false", "true"} {
		t.Run("localSessions="+local, func(t *testing.T) {
			t.Parallel()
			both(t, func(e *ensemble) (lines []string) {
				e.config["localSessionsEnabled"], e.config["localSessionsUpgradingEnabled"] = local, "true"
				e.config["syncLimit"] = "4"
				e.defines["readonlymode.enabled"] = "true"
				e.form(1, 2, 3)
				say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
				c, global, text := e.hello(1, proto.ConnectRequest{ReadOnly: true})
				say("with a leader: %s", text)
				say("an ephemeral: %s", c.ask(proto.OpCreate, create(proto.OpCreate, "/e", proto.CreateEphemeral)))
				word := func(name string) string {
					text, err := peer.Word(e.servers[1].Address, name)
					if err != nil {
						return err.Error()
					}
					return text
				}
				say("isro: %s", word("isro"))

				e.servers[2].Kill(e.t)
				e.servers[3].Kill(e.t)
				e.eventually("read-only mode begins", func() bool { return e.mode(1) == "read-only" })
				say("isro: %s", word("isro"))
				say("srvr: %t", strings.Contains(word("srvr"), "\nREAD-ONLY mode; serving only read-only clients\n"))
				say("conf: %t", strings.Contains(word("conf"), "membership"))
				_, _, text = e.hello(1, proto.ConnectRequest{})
				say("a client that wants to write: %s", text)
				_, _, text = e.hello(1, proto.ConnectRequest{ReadOnly: true, SessionID: global.SessionID, Password: global.Password})
				say("a session of the ensemble: %s", text)
				_, _, text = e.hello(1, proto.ConnectRequest{ReadOnly: true, SessionID: 77})
				say("a session that is none: %s", text)
				reader, _, text := e.hello(1, proto.ConnectRequest{ReadOnly: true})
				say("a new session: %s", text)
				if reader != nil {
					for _, x := range []struct {
						op   proto.OpCode
						body []byte
					}{
						{proto.OpGetData, (&proto.PathWatch{Path: "/zookeeper/quota", Watch: true}).Append(nil)},
						{proto.OpExists, (&proto.PathWatch{Path: "/e"}).Append(nil)},
						{proto.OpGetChildren2, (&proto.PathWatch{Path: "/"}).Append(nil)},
						{proto.OpCreate, create(proto.OpCreate, "/x", 0)},
						{proto.OpCreate2, create(proto.OpCreate2, "/x", 0)},
						{proto.OpDelete, (&proto.PathVersion{Path: "/e", Version: -1}).Append(nil)},
						{proto.OpSetData, (&proto.SetDataRequest{Path: "/e", Version: -1}).Append(nil)},
						{proto.OpSetACL, (&proto.SetACLRequest{Path: "/e", ACL: proto.OpenACL, Version: -1}).Append(nil)},
						{proto.OpMulti, multi("/x", 0)},
						{proto.OpSync, proto.AppendString(nil, "/")},
						{proto.OpReconfig, change{version: -1}.body()},
						{proto.OpCreateContainer, create(proto.OpCreateContainer, "/x", proto.CreateContainer)},
						{proto.OpPing, nil},
					} {
						say("%v: %s", x.op, reader.ask(x.op, x.body))
					}
					say("closing it: %s", reader.ask(proto.OpCloseSession, nil))
				}
				stays, _, _ := e.hello(1, proto.ConnectRequest{ReadOnly: true})

				e.servers[2].Launch(e.t)
				e.servers[3].Launch(e.t)
				e.eventually("read-only mode ends", func() bool { return slices.Contains([]string{"leader", "follower"}, e.mode(1)) })
				say("isro: %s", word("isro"))
				if stays != nil {
					_, err := stays.conn.Receive(patience)
					say("who stayed: %t", errors.Is(err, peer.ErrClosed))
				}
				d, _, text := e.hello(1, proto.ConnectRequest{ReadOnly: true})
				say("afterwards: %s", text)
				say("a node: %s", d.ask(proto.OpCreate, create(proto.OpCreate, "/y", 0)))
				return lines
			})
		})
	}
}
