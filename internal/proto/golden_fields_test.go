package proto_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestConnectFramesOfTheRealServer(t *testing.T) {
	frames := goldenFrames(t)
	for _, c := range []struct {
		exchange            string
		request, answer     int // bytes
		hasReadOnly, wanted bool
	}{
		{"connect-44", 44, 36, false, true},
		{"connect-45", 45, 37, true, true},
		{"connect-45-read-only", 45, 37, true, true},
		{"connect-null-password", 29, 37, true, true},
		{"reconnect", 45, 37, true, true},
		{"reconnect-refused", 45, 37, true, false},
	} {
		sent, got := find(t, frames, c.exchange, "connect"), find(t, frames, c.exchange, "connected")
		req, err1 := proto.DecodeConnectRequest(sent.payload)
		resp, err2 := proto.DecodeConnectResponse(got.payload)
		if err1 != nil || err2 != nil || len(sent.payload) != c.request || len(got.payload) != c.answer {
			t.Errorf("%s: %d and %d bytes, want %d and %d, %v, %v", c.exchange, len(sent.payload), len(got.payload), c.request, c.answer, err1, err2)
		}
		if req.HasReadOnly != c.hasReadOnly || resp.HasReadOnly != c.hasReadOnly || resp.ReadOnly || req.TimeoutMillis != 30000 {
			t.Errorf("%s: %+v answered by %+v", c.exchange, req, resp)
		}
		established := resp.SessionID>>56 == 1 && resp.TimeoutMillis == 30000 && !slices.Equal(resp.Password, make([]byte, 16))
		refused := resp.SessionID == 0 && resp.TimeoutMillis == 0 && slices.Equal(resp.Password, make([]byte, 16))
		if len(resp.Password) != proto.PasswordLen || established != c.wanted || refused == c.wanted {
			t.Errorf("%s: answer %+v", c.exchange, resp)
		}
	}
	first, _ := proto.DecodeConnectResponse(find(t, frames, "connect-45", "connected").payload)
	again, _ := proto.DecodeConnectResponse(find(t, frames, "reconnect", "connected").payload)
	if first.SessionID != again.SessionID || !slices.Equal(first.Password, again.Password) {
		t.Errorf("reconnected to %v, want %v", again.SessionID, first.SessionID)
	}
}

func TestReplyHeadersOfTheRealServer(t *testing.T) {
	frames := goldenFrames(t)
	for _, c := range []struct {
		exchange string
		xid      int32
		err      proto.ErrCode
		body     bool
	}{
		{"create", 2, proto.ErrOK, true},
		{"create-exists", 3, proto.ErrNodeExists, false},
		{"create-bad-path", 10, proto.ErrBadArguments, false},
		{"create-cut-short", 11, proto.ErrMarshalling, false},
		{"setData-bad-version", 13, proto.ErrBadVersion, false},
		{"delete", 15, proto.ErrOK, false},
		{"delete-not-empty", 16, proto.ErrNotEmpty, false},
		{"reconfig", 18, proto.ErrReconfigDisabled, false},
		{"multi-failed", 20, proto.ErrOK, true},
		{"multi-with-read", 22, proto.ErrMarshalling, false},
		{"auth", proto.XidAuth, proto.ErrOK, false},
		{"auth-refused", proto.XidAuth, proto.ErrAuthFailed, false},
		{"ping", proto.XidPing, proto.ErrOK, false},
		{"exists-none", 5, proto.ErrNoNode, false},
		{"multiRead-with-write", 19, proto.ErrMarshalling, true},
		{"removeWatches-none", 12, proto.ErrNoWatcher, false},
		{"addWatch-bad-mode", 6, proto.ErrMarshalling, false},
		{"setWatches", proto.XidSetWatches, proto.ErrOK, false},
		{"unknown-op", 1, proto.ErrUnimplemented, false},
	} {
		d := proto.NewDecoder(find(t, frames, c.exchange, "reply").payload)
		h := d.ReplyHeader()
		if h.Xid != c.xid || h.Err != c.err || len(d.Rest()) > 0 != c.body {
			t.Errorf("%s: %+v and %d bytes of body, want xid %d, %v, a body %t", c.exchange, h, len(d.Rest()), c.xid, c.err, c.body)
		}
	}
}

func TestRecordsOfTheRealServer(t *testing.T) {
	frames := goldenFrames(t)
	body := func(exchange string) *proto.Decoder {
		d := proto.NewDecoder(find(t, frames, exchange, "reply").payload)
		d.ReplyHeader()
		return d
	}
	writer, _ := proto.DecodeConnectResponse(find(t, frames, "writer", "connected").payload)
	if got := body("create-sequential").String(); got != "/golden/s-0000000002" {
		t.Errorf("sequential path %q", got)
	}
	d := body("create2")
	if path, st := d.String(), d.Stat(); path != "/golden/two" || st.EphemeralOwner != int64(writer.SessionID) || st.DataLength != 1 || st.Czxid != st.Pzxid || st.Ctime == 0 {
		t.Errorf("create2: %q %+v", path, st)
	}
	for _, exchange := range []string{"createContainer", "createTTL"} {
		d := body(exchange)
		if path, st := d.String(), d.Stat(); st.EphemeralOwner != 0 || st.Czxid == 0 {
			t.Errorf("%s: %q %+v", exchange, path, st)
		}
	}
	if st := body("setData").Stat(); st.Version != 1 || st.DataLength != 8 || st.Mzxid != st.Czxid+7 || st.Pzxid != st.Czxid || st.NumChildren != 0 {
		t.Errorf("setData: %+v", st)
	}
	if st := body("setACL").Stat(); st.AVersion != 1 || st.Version != 0 || st.Mzxid != st.Czxid {
		t.Errorf("setACL: %+v", st)
	}
	if st := body("exists").Stat(); st.CVersion != 8 || st.NumChildren != 6 || st.DataLength != 4 || st.Pzxid <= st.Czxid {
		t.Errorf("exists: %+v", st)
	}
	if data := body("getData-null").Buffer(); data != nil {
		t.Errorf("null data: %q", data)
	}
	if data := body("getData-empty").Buffer(); data == nil || len(data) != 0 {
		t.Errorf("empty data: %v", data)
	}
	wantACL := []proto.ACL{
		{Perms: 31, ID: proto.ID{Scheme: "digest", ID: "ben:PC0ZklqkbevtIFBcBaL/OQ9DLeA="}},
		{Perms: 1, ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}
	if got := body("getACL").ACLs(); !slices.Equal(got, wantACL) {
		t.Errorf("getACL: %+v, want %+v", got, wantACL)
	}
	names := body("getChildren").Strings()
	slices.Sort(names)
	if want := []string{"empty", "m", "null", "s-0000000002", "ttl", "two"}; !slices.Equal(names, want) {
		t.Errorf("getChildren: %q", names)
	}
	if names := body("getChildren-none").Strings(); names == nil || len(names) != 0 {
		t.Errorf("getChildren-none: %v", names)
	}
	d = proto.NewDecoder(find(t, frames, "create-cut-short", "request").payload)
	op := d.RequestHeader().Type
	if d.CreateRequest(op); !errors.Is(d.Err(), proto.ErrTruncated) {
		t.Errorf("a request that the server calls malformed: %v", d.Err())
	}
}

func TestMultiResultsOfTheRealServer(t *testing.T) {
	frames := goldenFrames(t)
	for exchange, want := range map[string]string{
		"multi": "[1 0] [15 0] [15 0] [15 0] [5 0] [13 0] [2 0] end", "multi-failed": "[-1 0] [-1 -101] [-1 -2] end",
		"multi-empty": "end", "multiRead": "[4 0] [-1 -101] [8 0] end", "multiRead-empty": "end", "multiRead-with-write": "end",
	} {
		g := find(t, frames, exchange, "reply")
		d := proto.NewDecoder(g.payload)
		d.ReplyHeader()
		got := ""
		for {
			h := d.MultiHeader()
			if d.Err() != nil {
				t.Fatalf("%s: %v", exchange, d.Err())
			}
			if h.Done {
				if h != proto.MultiEnd {
					t.Errorf("%s ends with %+v", exchange, h)
				}
				got += "end"
				break
			}
			got += fmt.Sprintf("[%d %d] ", h.Type, h.Err)
			if h.Type == proto.OpError {
				if code := proto.ErrCode(d.Int()); code != h.Err {
					t.Errorf("%s: header says %v, body %v", exchange, h.Err, code)
				}
				continue
			}
			if _, err := replyAgain(nil, d, h.Type); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", exchange, got, want)
		}
	}
}

func TestEventsOfTheRealServer(t *testing.T) {
	got := map[string][]string{}
	for _, g := range goldenFrames(t) {
		if g.kind != "event" {
			continue
		}
		d := proto.NewDecoder(g.payload)
		h, e := d.ReplyHeader(), d.WatcherEvent()
		if h.Xid != proto.XidNotification || h.Err != proto.ErrOK || e.State != proto.StateSyncConnected {
			t.Errorf("%s: %+v %+v", g.exchange, h, e)
		}
		if replayed := g.exchange == "setWatches" || g.exchange == "setWatches2"; replayed != (h.Zxid == -1) {
			t.Errorf("%s: zxid %v", g.exchange, h.Zxid)
		}
		got[g.exchange] = append(got[g.exchange], e.Type.String()+" "+e.Path)
	}
	replay := []string{"NodeDataChanged /golden", "NodeDeleted /none", "NodeCreated /golden/null", "NodeChildrenChanged /golden", "NodeDeleted /none"}
	for exchange, want := range map[string][]string{
		"events-of-create": {"NodeCreated /golden/w", "NodeChildrenChanged /golden"},
		"events-of-set":    {"NodeDataChanged /golden"},
		"events-of-delete": {"NodeDeleted /golden/w", "NodeChildrenChanged /golden"},
		"setWatches":       replay, "setWatches2": replay,
	} {
		if !slices.Equal(got[exchange], want) {
			t.Errorf("%s: %q, want %q", exchange, got[exchange], want)
		}
	}
}
