package client

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

// fake is a server of one connection that a test scripts by hand.
type fake struct {
	t      *testing.T
	socket net.Conn
	reader *bufio.Reader
}

// serve listens, and runs script with the first connection after its connect
// frame has been read. The test ends only after the script has.
func serve(t *testing.T, script func(f *fake, connect proto.ConnectRequest)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		socket, err := listener.Accept()
		if err != nil {
			return
		}
		defer socket.Close()
		f := &fake{t: t, socket: socket, reader: bufio.NewReader(socket)}
		connect, err := proto.DecodeConnectRequest(f.read())
		if err != nil {
			t.Errorf("connect frame: %v", err)
			return
		}
		script(f, connect)
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// read returns the next frame, or nil at the end of the connection.
func (f *fake) read() []byte {
	frame, err := proto.ReadFrame(f.reader, nil, 1<<20)
	if err != nil {
		return nil
	}
	return frame
}

// request returns the next request's header and body.
func (f *fake) request() (proto.RequestHeader, []byte) {
	d := proto.NewDecoder(f.read())
	return d.RequestHeader(), d.Rest()
}

func (f *fake) send(payload []byte) {
	frame := proto.EndFrame(append(proto.BeginFrame(nil), payload...), 0)
	if _, err := f.socket.Write(frame); err != nil {
		f.t.Logf("fake server: %v", err)
	}
}

func (f *fake) reply(xid int32, zxid proto.Zxid, code proto.ErrCode, body []byte) {
	f.send(append(proto.AppendReplyHeader(nil, proto.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}), body...))
}

func (f *fake) welcome(timeout int32) {
	answer := proto.ConnectResponse{
		TimeoutMillis: timeout, SessionID: 7, Password: []byte("0123456789abcdef"), HasReadOnly: true,
	}
	f.send(answer.Append(nil))
}

// waitEnd reads until the client has closed the connection.
func (f *fake) waitEnd() {
	for f.read() != nil {
	}
}

func dial(t *testing.T, addr string, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

func TestTheHandshakeCarriesTheOptions(t *testing.T) {
	seen := make(chan proto.ConnectRequest, 1)
	addr := serve(t, func(f *fake, connect proto.ConnectRequest) {
		seen <- connect
		f.welcome(6000)
		f.waitEnd()
	})
	c := dial(t, addr, Options{Timeout: 5 * time.Second, Session: 9, Password: []byte("secret"), LastZxid: 12, ReadOnly: true})
	got := <-seen
	if got.TimeoutMillis != 5000 || got.SessionID != 9 || string(got.Password) != "secret" || got.LastZxidSeen != 12 ||
		!got.ReadOnly || !got.HasReadOnly {
		t.Errorf("connect request %+v", got)
	}
	if c.Session() != 7 || c.Timeout() != 6*time.Second || string(c.Password()) != "0123456789abcdef" || c.LastZxid() != 12 {
		t.Errorf("session %v, timeout %v, password %q, zxid %v", c.Session(), c.Timeout(), c.Password(), c.LastZxid())
	}
}

func TestAnOldClientLeavesTheReadOnlyByteOut(t *testing.T) {
	seen := make(chan bool, 1)
	addr := serve(t, func(f *fake, connect proto.ConnectRequest) {
		seen <- connect.HasReadOnly
		f.welcome(6000)
		f.waitEnd()
	})
	dial(t, addr, Options{Old: true})
	if <-seen {
		t.Error("the byte was sent")
	}
}

func TestDialSaysWhyItFailed(t *testing.T) {
	tests := []struct {
		name   string
		script func(f *fake, connect proto.ConnectRequest)
		want   error
	}{
		{"an expired session", func(f *fake, _ proto.ConnectRequest) {
			answer := proto.ConnectResponse{Password: make([]byte, 16)}
			f.send(answer.Append(nil))
		}, ErrExpired},
		{"an answer too short", func(f *fake, _ proto.ConnectRequest) { f.send([]byte{1, 2}) }, ErrProtocol},
		{"a server that never answers", func(f *fake, _ proto.ConnectRequest) { f.waitEnd() }, context.DeadlineExceeded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := Dial(ctx, serve(t, test.script), Options{}); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestRequestsArePipelinedAndAnsweredInOrder(t *testing.T) {
	const calls = 100
	addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
		f.welcome(6000)
		var xids []int32
		for range calls { // all of them before the first answer
			header, _ := f.request()
			xids = append(xids, header.Xid)
		}
		for i, xid := range xids {
			f.reply(xid, proto.Zxid(i+1), proto.ErrOK, proto.AppendInt(nil, int32(i)))
		}
		f.waitEnd()
	})
	c := dial(t, addr, Options{NoPings: true})
	done := make(chan *Call, calls)
	sent := make([]*Call, calls)
	for i := range sent {
		sent[i] = &Call{Op: proto.OpGetData, Body: proto.AppendInt(nil, int32(i)), Done: done}
		c.Go(sent[i])
	}
	for i := range sent {
		call := <-done
		if call != sent[i] || call.Xid != int32(i+1) || call.Err != nil || proto.NewDecoder(call.Reply).Int() != int32(i) {
			t.Fatalf("answer %d: xid %d, error %v, body %x", i, call.Xid, call.Err, call.Reply)
		}
	}
	if c.LastZxid() != calls {
		t.Errorf("last zxid %d", c.LastZxid())
	}
}

func TestAuthAndPingHaveXidsAndQueuesOfTheirOwn(t *testing.T) {
	addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
		f.welcome(6000)
		get, _ := f.request()
		ping, _ := f.request()
		auth, _ := f.request()
		if ping.Xid != proto.XidPing || auth.Xid != proto.XidAuth {
			t.Errorf("xids %d and %d", ping.Xid, auth.Xid)
		}
		f.reply(auth.Xid, 0, proto.ErrOK, nil) // ahead of the others, as Apache does
		f.reply(get.Xid, 5, proto.ErrNoNode, nil)
		f.reply(ping.Xid, 5, proto.ErrOK, nil)
		f.waitEnd()
	})
	c := dial(t, addr, Options{NoPings: true})
	get := c.Do(proto.OpGetData, nil)
	ping := c.Do(proto.OpPing, nil)
	if err := c.AddAuth(t.Context(), "digest", []byte("a:b")); err != nil {
		t.Errorf("auth: %v", err)
	}
	if _, err := get.Wait(t.Context()); Code(err) != proto.ErrNoNode {
		t.Errorf("get: %v", err)
	}
	if _, err := ping.Wait(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func TestEventsComeInOrderAndEndWithTheConnection(t *testing.T) {
	addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
		f.welcome(6000)
		for i, kind := range []proto.EventType{proto.EventNodeCreated, proto.EventNodeDataChanged, proto.EventNodeDeleted} {
			event := proto.WatcherEvent{Type: kind, State: proto.StateSyncConnected, Path: "/a"}
			f.reply(proto.XidNotification, proto.Zxid(i+1), proto.ErrOK, proto.AppendWatcherEvent(nil, event))
		}
	})
	c := dial(t, addr, Options{NoPings: true})
	var got []Event
	for event := range c.Events() {
		got = append(got, event)
	}
	if len(got) != 3 || got[0].Type != proto.EventNodeCreated || got[2].Type != proto.EventNodeDeleted || got[2].Zxid != 3 || got[1].Path != "/a" {
		t.Errorf("events %v", got)
	}
	if !errors.Is(c.Err(), ErrClosed) {
		t.Errorf("error %v", c.Err())
	}
}

func TestTheConnectionEndsWithAReason(t *testing.T) {
	event := proto.AppendWatcherEvent(nil, proto.WatcherEvent{Type: proto.EventNodeCreated, State: 3, Path: "/a"})
	tests := []struct {
		name    string
		options Options
		script  func(f *fake)
		want    error
	}{
		{"the server closes", Options{NoPings: true}, func(f *fake) { f.request() }, ErrClosed},
		{"an answer out of turn", Options{NoPings: true}, func(f *fake) {
			header, _ := f.request()
			f.reply(header.Xid+1, 1, proto.ErrOK, nil)
			f.waitEnd()
		}, ErrProtocol},
		{"an answer to nothing", Options{NoPings: true}, func(f *fake) {
			f.reply(proto.XidPing, 1, proto.ErrOK, nil)
			f.waitEnd()
		}, ErrProtocol},
		{"an answer too short", Options{NoPings: true}, func(f *fake) {
			f.send([]byte{1, 2, 3})
			f.waitEnd()
		}, ErrProtocol},
		{"more events than fit", Options{NoPings: true, EventBuffer: 1}, func(f *fake) {
			f.reply(proto.XidNotification, 1, proto.ErrOK, event)
			f.reply(proto.XidNotification, 2, proto.ErrOK, event)
			f.waitEnd()
		}, ErrEventsFull},
		{"a server that says nothing", Options{}, func(f *fake) { f.waitEnd() }, ErrSilent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
				f.welcome(300)
				test.script(f)
			})
			c := dial(t, addr, test.options)
			call := c.Do(proto.OpGetData, nil)
			if _, err := call.Wait(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("the call's error is %v, want %v", err, test.want)
			}
			<-c.Ended()
			if !errors.Is(c.Err(), test.want) {
				t.Errorf("the connection's error is %v, want %v", c.Err(), test.want)
			}
			if _, err := c.Do(proto.OpGetData, nil).Wait(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("a later call's error is %v, want %v", err, test.want)
			}
		})
	}
}

func TestPingsKeepAnIdleConnection(t *testing.T) {
	pings := make(chan int, 1)
	addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
		f.welcome(90)
		for range 10 { // three timeouts
			header, _ := f.request()
			if header.Type != proto.OpPing {
				t.Errorf("request %v", header)
				return
			}
			f.reply(proto.XidPing, 1, proto.ErrOK, nil)
		}
		pings <- 10
		f.waitEnd()
	})
	c := dial(t, addr, Options{})
	<-pings
	if err := c.Err(); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestCloseEndsTheSessionFirst(t *testing.T) {
	addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
		f.welcome(6000)
		header, _ := f.request()
		if header.Type != proto.OpCloseSession {
			t.Errorf("request %v", header.Type)
		}
		f.reply(header.Xid, 9, proto.ErrOK, nil)
	})
	c := dial(t, addr, Options{NoPings: true})
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTypedOperationsSendTheirRecords(t *testing.T) {
	stat := proto.Stat{Czxid: 3, Version: 4, DataLength: 1}
	statBody := proto.AppendStat(nil, &stat)
	addr := serve(t, func(f *fake, _ proto.ConnectRequest) {
		f.welcome(6000)
		for {
			header, body := f.request()
			d := proto.NewDecoder(body)
			switch header.Type {
			case proto.OpCreate, proto.OpCreateContainer:
				request := d.CreateRequest(header.Type)
				f.reply(header.Xid, 1, proto.ErrOK, proto.AppendString(nil, request.Path+"0"))
			case proto.OpGetData:
				f.reply(header.Xid, 1, proto.ErrOK, append(proto.AppendBuffer(nil, []byte("x")), statBody...))
			case proto.OpSetData:
				f.reply(header.Xid, 1, proto.ErrBadVersion, nil)
			case proto.OpExists:
				f.reply(header.Xid, 1, proto.ErrOK, statBody)
			case proto.OpGetChildren2:
				f.reply(header.Xid, 1, proto.ErrOK, append(proto.AppendStrings(nil, []string{"a", "b"}), statBody...))
			case proto.OpDelete, proto.OpSync:
				f.reply(header.Xid, 1, proto.ErrOK, nil)
			default:
				return
			}
		}
	})
	c, ctx := dial(t, addr, Options{NoPings: true}), t.Context()
	if path, err := c.Create(ctx, "/a", nil, proto.CreatePersistentSequential); err != nil || path != "/a0" {
		t.Errorf("create: %q, %v", path, err)
	}
	if path, err := c.Create(ctx, "/c", nil, proto.CreateContainer); err != nil || path != "/c0" {
		t.Errorf("container: %q, %v", path, err)
	}
	if data, got, err := c.Get(ctx, "/a", true); err != nil || string(data) != "x" || got != stat {
		t.Errorf("get: %q, %+v, %v", data, got, err)
	}
	if _, err := c.Set(ctx, "/a", nil, 2); Code(err) != proto.ErrBadVersion || !strings.Contains(err.Error(), "/a") {
		t.Errorf("set: %v", err)
	}
	if got, err := c.Exists(ctx, "/a", false); err != nil || got != stat {
		t.Errorf("exists: %+v, %v", got, err)
	}
	if names, _, err := c.Children(ctx, "/", false); err != nil || strings.Join(names, ",") != "a,b" {
		t.Errorf("children: %v, %v", names, err)
	}
	if err := errors.Join(c.Delete(ctx, "/a", -1), c.Sync(ctx, "/")); err != nil {
		t.Error(err)
	}
}
