package peer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestApacheServesStopsAndKeepsItsDataOverRestarts(t *testing.T) {
	s := StartApache(t, Options{Defines: map[string]string{"zookeeper.forceSync": "no"}})
	text, err := Word(s.Address, "srvr")
	if err != nil || !strings.HasPrefix(text, "Zookeeper version: "+ApacheVersion) {
		t.Fatalf("srvr says %q, %v", text, err)
	}
	create := proto.CreateRequest{Path: "/kept", Data: []byte("x"), ACL: proto.OpenACL}
	call(t, s, proto.OpCreate, create.Append(nil, proto.OpCreate), proto.ErrOK)

	for _, end := range []func(){func() { s.Stop(t) }, func() { s.Kill(t) }} {
		end()
		if _, err := Open(s.Address); err == nil {
			t.Fatalf("%s still listens", s.Address)
		}
		s.Restart(t)
		read := proto.PathWatch{Path: "/kept"}
		call(t, s, proto.OpExists, read.Append(nil), proto.ErrOK)
	}
}

func TestConnTellsACloseFromSilence(t *testing.T) {
	s := StartApache(t, Options{})
	c := Dial(t, s.Address)
	if _, err := c.Receive(50 * time.Millisecond); !errors.Is(err, ErrTimeout) {
		t.Fatalf("a silent server gives %v, want ErrTimeout", err)
	}
	c = Dial(t, s.Address)
	if err := c.SendRaw([]byte{0x7f, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(10 * time.Second); !errors.Is(err, ErrClosed) {
		t.Fatalf("an impossible length gives %v, want ErrClosed", err)
	}
}

func call(t *testing.T, s *Server, op proto.OpCode, body []byte, want proto.ErrCode) {
	t.Helper()
	c := Dial(t, s.Address)
	req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen)}
	if resp, err := c.Connect(req, 10*time.Second); err != nil || resp.SessionID == 0 {
		t.Fatalf("connect: %+v, %v", resp, err)
	}
	h, _, err := c.Call(1, op, body, 10*time.Second)
	if err != nil || h.Err != want {
		t.Fatalf("%v: %+v, %v; want error %v", op, h, err, want)
	}
}
