package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Case 1: an old client leaves the read-only byte out and cannot parse it in
// the answer.
func TestTheConnectAnswerHasTheReadOnlyByteOnlyIfTheRequestHad(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		for _, tc := range []struct {
			hasByte bool
			want    int
		}{{false, 36}, {true, 37}} {
			c := peer.Dial(t, s.Address)
			req := proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, proto.PasswordLen), HasReadOnly: tc.hasByte}
			if err := c.Send(req.Append(nil)); err != nil {
				t.Fatal(err)
			}
			answer, err := c.Receive(patience)
			if err != nil || len(answer) != tc.want {
				t.Errorf("with the byte %v: %d bytes, %v; want %d", tc.hasByte, len(answer), err, tc.want)
			}
			h, _, err := c.Call(1, proto.OpExists, readBody("/", false), patience)
			if err != nil || h.Err != proto.ErrOK {
				t.Errorf("with the byte %v: exists gives %+v, %v", tc.hasByte, h, err)
			}
		}
	})
}

// Case 4: every op code that 3.9 defines gets a real reply, with a read behind
// it on the same connection; what is unknown is refused on that connection
// only, and nothing hangs.
func TestEveryOpCodeIsAnswered(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		bystander := open(t, s)
		top := bystander.top()
		good := func(name string) string { return top + "/" + name }
		setWatches := proto.AppendStrings(proto.AppendStrings(proto.AppendStrings(proto.AppendLong(nil, 0), []string{}), []string{}), []string{})
		ttl := proto.CreateRequest{Path: good("ttl"), ACL: proto.OpenACL, Flags: 5, TTL: 100000}
		for _, tc := range []struct {
			op   proto.OpCode
			body []byte
			want proto.ErrCode
		}{
			{proto.OpCreate, createBody(proto.OpCreate, good("a"), nil, nil, 0), proto.ErrOK},
			{proto.OpDelete, deleteBody(good("a")), proto.ErrOK},
			{proto.OpExists, readBody(top, false), proto.ErrOK},
			{proto.OpGetData, readBody(top, false), proto.ErrOK},
			{proto.OpSetData, setBody(top, []byte("x"), -1), proto.ErrOK},
			{proto.OpGetACL, proto.AppendString(nil, top), proto.ErrOK},
			{proto.OpSetACL, proto.AppendInt(proto.AppendACLs(proto.AppendString(nil, top), proto.OpenACL), -1), proto.ErrOK},
			{proto.OpGetChildren, readBody(top, false), proto.ErrOK},
			{proto.OpSync, proto.AppendString(nil, top), proto.ErrOK},
			{proto.OpGetChildren2, readBody(top, false), proto.ErrOK},
			{proto.OpMulti, proto.AppendMulti(nil, []proto.MultiOp{opSet(top, nil)}), proto.ErrOK},
			{proto.OpCreate2, createBody(proto.OpCreate2, good("b"), nil, nil, 0), proto.ErrOK},
			{proto.OpReconfig, proto.AppendLong(proto.AppendString(proto.AppendString(proto.AppendString(nil, ""), ""), ""), -1), proto.ErrReconfigDisabled},
			{proto.OpCheckWatches, proto.AppendInt(proto.AppendString(nil, top), 1), proto.ErrNoWatcher},
			{proto.OpRemoveWatches, proto.AppendInt(proto.AppendString(nil, top), 1), proto.ErrNoWatcher},
			{proto.OpCreateContainer, createBody(proto.OpCreateContainer, good("c"), nil, nil, 4), proto.ErrOK},
			{proto.OpCreateTTL, ttl.Append(nil, proto.OpCreateTTL), proto.ErrOK},
			{proto.OpMultiRead, proto.AppendMulti(nil, []proto.MultiOp{{Type: proto.OpGetData, Read: proto.PathWatch{Path: top}}}), proto.ErrOK},
			{proto.OpSetWatches, setWatches, proto.ErrOK},
			{proto.OpGetEphemerals, proto.AppendString(nil, "/"), proto.ErrOK},
			{proto.OpGetAllChildrenNumber, proto.AppendString(nil, top), proto.ErrOK},
			{proto.OpSetWatches2, proto.AppendStrings(proto.AppendStrings(bytes.Clone(setWatches), []string{}), []string{}), proto.ErrOK},
			{proto.OpAddWatch, proto.AppendInt(proto.AppendString(nil, top), 0), proto.ErrOK},
			{proto.OpWhoAmI, nil, proto.ErrOK},
		} {
			c := open(t, s)
			xid := c.send(tc.op, tc.body)
			behind := c.send(proto.OpGetData, readBody("/", false))
			if h, _ := c.reply(); h.Xid != xid || h.Err != tc.want {
				t.Errorf("%v: %+v, want xid %d, error %d", tc.op, h, xid, tc.want)
			}
			if h, _ := c.reply(); h.Xid != behind || h.Err != proto.ErrOK {
				t.Errorf("the read behind %v: %+v", tc.op, h)
			}
			if len(tc.body) > 2 {
				c.want(proto.ErrMarshalling, tc.op, tc.body[:2])
			}
		}
		for _, op := range []proto.OpCode{999, 10, 23, -5, 0} {
			c := open(t, s)
			if code, _ := c.do(op, nil); code != proto.ErrUnimplemented {
				t.Errorf("op code %d: error %d, want %d", op, code, proto.ErrUnimplemented)
			}
			c.wantClosed()
		}
		bystander.get(top)
	})
}

// Case 5: Curator creates everything with create2 and wants the Stat, in a
// multi too.
func TestCreate2ReturnsTheStatThatExistsShows(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()
		for flags := range int32(4) {
			d := c.want(proto.ErrOK, proto.OpCreate2, createBody(proto.OpCreate2, fmt.Sprintf("%s/n%d-", top, flags), []byte("abc"), nil, flags))
			path, got := d.String(), d.Stat()
			if want, _ := c.stat(path); got != want || d.Err() != nil || len(d.Rest()) > 0 {
				t.Errorf("flags %d: %s has %+v, exists shows %+v", flags, path, got, want)
			}
		}
		results := c.multi(opCreate(proto.OpCreate2, top+"/m1", 0), opCreate(proto.OpCreate2, top+"/m2-", 3))
		for _, r := range results {
			if want, there := c.stat(r.Path); !there || r.Stat != want {
				t.Errorf("in a multi: %s has %+v, exists shows %+v", r.Path, r.Stat, want)
			}
		}
	})
}

// Case 7: a check outside a multi once reached the log and made it unreadable.
func TestABareCheckIsRefusedAndLeavesNoTrace(t *testing.T) {
	s := own(t, nil)
	c := open(t, s)
	top := c.top()
	for range 100 {
		before := c.set(top, nil).Mzxid
		other := open(t, s)
		check := proto.PathVersion{Path: top, Version: 0}
		if code, _ := other.do(proto.OpCheck, check.Append(nil)); code != proto.ErrUnimplemented {
			t.Fatalf("error %d, want %d", code, proto.ErrUnimplemented)
		}
		other.wantClosed()
		// The other session took one zxid when it was made; the check took none.
		if after := c.set(top, nil).Mzxid; after != before+2 {
			t.Fatalf("zxid %v, then %v: the check took one", before, after)
		}
	}
	_, want := c.get(top)
	s.Restart(t)
	if _, got := open(t, s).get(top); got != want {
		t.Errorf("after a restart %+v, want %+v", got, want)
	}
}

// Case 8: a length alone must not take memory, and only its sender suffers.
func TestImpossibleFrameLengthsCloseOnlyTheirConnection(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		bystander := open(t, s)
		for _, length := range []uint32{0x7fffffff, 0xffffffff, 0, 0xfffff + 1} {
			c := open(t, s)
			if err := c.conn.SendRaw(binary.BigEndian.AppendUint32(nil, length)); err != nil {
				t.Fatal(err)
			}
			c.wantClosed()
			bystander.get("/")
		}
		c := open(t, s)
		body := append(proto.AppendInt(nil, 0x7ffffff0), "/a"...)
		c.want(proto.ErrMarshalling, proto.OpGetData, body)
	})
}

func TestARefusedLengthIsLoggedWithSizePeerAndSetting(t *testing.T) {
	s := own(t, nil)
	c := open(t, s)
	before := residentKiB(t, s)
	for range 50 {
		c := open(t, s)
		if err := c.conn.SendRaw(binary.BigEndian.AppendUint32(nil, 0x7fffffff)); err != nil {
			t.Fatal(err)
		}
		c.wantClosed()
	}
	if after := residentKiB(t, s); after > before+64<<10 {
		t.Errorf("resident memory grew from %d to %d KiB", before, after)
	}
	c.until("the log line", func() bool {
		c.ping()
		log := s.Log()
		return strings.Contains(log, "2147483647") && strings.Contains(log, "jute.maxbuffer") && strings.Contains(log, "127.0.0.1:")
	})
}

// residentKiB is a process's resident memory.
func residentKiB(t *testing.T, s *peer.Server) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	var n int
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Case 8: many tiny operations in one multi, below the limit of the frame.
func TestAMultiOfVeryManyOpsIsAnswered(t *testing.T) {
	s := own(t, map[string]string{"-Djute.maxbuffer": "33554432"})
	c := open(t, s)
	top := c.top()
	check := proto.MultiOp{Type: proto.OpCheck, Version: proto.PathVersion{Path: top, Version: 0}}
	results := c.multi(slices.Repeat([]proto.MultiOp{check}, 500000)...)
	if len(results) != 500000 || results[0].Err != proto.ErrOK || results[len(results)-1].Err != proto.ErrOK {
		t.Errorf("%d results", len(results))
	}
}

// Case 10: null and empty data are different, and stay so.
func TestNullAndEmptyDataStayApartThroughLogAndSnapshot(t *testing.T) {
	s := own(t, map[string]string{"snapCount": "40"})
	c := open(t, s)
	top := c.top()
	c.create(top+"/null", nil)
	c.create(top+"/empty", []byte{})
	c.create(top+"/emptied", nil)
	c.set(top+"/emptied", []byte{})
	c.create(top+"/nulled", []byte{})
	c.set(top+"/nulled", nil)
	verify := func(c *session, when string) {
		t.Helper()
		for name, null := range map[string]bool{"null": true, "empty": false, "emptied": false, "nulled": true} {
			data, st := c.get(top + "/" + name)
			if (data == nil) != null || len(data) != 0 || st.DataLength != 0 {
				t.Errorf("%s, %s: data %v (null %v), dataLength %d", when, name, data, data == nil, st.DataLength)
			}
		}
	}
	verify(c, "at once")
	s.Restart(t)
	c = open(t, s)
	verify(c, "from the log")
	fillSnapshots(t, s, c, 1)
	s.Restart(t)
	verify(open(t, s), "from a snapshot")
}

// Case 10, on the real server as well: what a client sees at once.
func TestNullAndEmptyDataAreToldApart(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		c := open(t, s)
		top := c.top()
		c.create(top+"/null", nil)
		c.create(top+"/empty", []byte{})
		if data, _ := c.get(top + "/null"); data != nil {
			t.Errorf("null became %q", data)
		}
		if data, _ := c.get(top + "/empty"); data == nil || len(data) > 0 {
			t.Errorf("empty became %v", data)
		}
	})
}

// setOfFrame is a setData whose whole frame has the given length.
func setOfFrame(path string, length int) []byte {
	overhead := 8 + len(setBody(path, []byte{}, -1))
	return setBody(path, bytes.Repeat([]byte{'x'}, length-overhead), -1)
}

// Case 11: a request of exactly jute.maxbuffer is taken, one more is not, and
// whatever was acknowledged can be read back after a restart.
func TestTheLimitOfAFrameIsExact(t *testing.T) {
	both(t, func(t *testing.T, s *peer.Server) {
		const limit = 0xfffff
		c := open(t, s)
		top := c.top()
		for _, length := range []int{limit - 1, limit} {
			c.want(proto.ErrOK, proto.OpSetData, setOfFrame(top, length))
		}
		// The server may close before all of it is written.
		_ = c.conn.SendRequest(c.xid+1, proto.OpSetData, setOfFrame(top, limit+1))
		c.wantClosed()
		if _, st := open(t, s).get(top); st.Version != 2 {
			t.Errorf("version %d, want 2", st.Version)
		}
	})
}

func TestLargestRequestsSurviveARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		config map[string]string
		length int
	}{
		"the default limit": {nil, 0xfffff},
		"a limit of 1 GiB":  {map[string]string{"-Djute.maxbuffer": "1073741824"}, 8 << 20},
		"a limit above":     {map[string]string{"-Djute.maxbuffer": "2147483647"}, 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := own(t, tc.config)
			c := open(t, s)
			top := c.top()
			c.want(proto.ErrOK, proto.OpSetData, setOfFrame(top, tc.length))
			ops := proto.AppendMulti(nil, []proto.MultiOp{opSet(top, bytes.Repeat([]byte{'y'}, tc.length-200)), opSet(top, []byte("last"))})
			c.want(proto.ErrOK, proto.OpMulti, ops)
			c.want(proto.ErrOK, proto.OpSetData, setOfFrame(top, tc.length))
			_, want := c.get(top)
			s.Kill(t)
			s.Start(t)
			if _, got := open(t, s).get(top); got != want {
				t.Errorf("after a restart %+v, want %+v", got, want)
			}
		})
	}
}
