package state

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/auth"
	"github.com/zooraft/zooraft/internal/proto"
)

// golden is one line of the frames that room proto keeps of the real server.
type golden struct {
	exchange, kind string
	op             proto.OpCode
	payload        []byte
}

func goldenFrames(t *testing.T) []golden {
	t.Helper()
	text, err := os.ReadFile("../proto/testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		op, err1 := strconv.Atoi(f[2])
		frame, err2 := hex.DecodeString(f[3])
		if err1 != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err1, err2)
		}
		out = append(out, golden{f[0], f[1], proto.OpCode(op), frame[4:]})
	}
	return out
}

// player gives the requests that the real server was sent to a machine.
type player struct {
	*machine
	client *client
	box    *outbox
	auth   *auth.Authenticator
}

// The machine answers what the real server answered, byte for byte, but for
// times and for the order of children, which ZooKeeper leaves open: the same
// zxids, the same events before the same replies.
func TestTheMachineAnswersAsTheRealServerDid(t *testing.T) {
	a, err := auth.New(auth.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	p := &player{machine: newMachine(t), auth: a}
	p.lastTerm = p.term // the captured server began in epoch 0
	p.switches = proto.SwitchExtendedTypes
	compared := 0
	frames := goldenFrames(t)
	for i, g := range frames {
		switch g.kind {
		case "connected":
			p.connected(t, g)
		case "request":
			if !p.ask(t, g) {
				continue
			}
			var want []string
			for _, f := range frames[i+1:] {
				if f.exchange != g.exchange || f.kind == "closed" {
					break
				}
				want = append(want, masked(g.op, f.payload))
			}
			var got []string
			for _, it := range p.box.take() {
				got = append(got, masked(g.op, it.payload()))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%q\nwant\n%q", g.exchange, got, want)
			}
			compared++
		}
	}
	if compared < 54 {
		t.Errorf("%d exchanges compared", compared)
	}
}

// connected begins a connection with the session that the real server gave.
func (p *player) connected(t *testing.T, g golden) {
	resp, err := proto.DecodeConnectResponse(g.payload)
	if err != nil {
		t.Fatal(err)
	}
	p.client = newClient(resp.SessionID, uint64(resp.SessionID)&0xffff+1)
	p.box = &outbox{session: resp.SessionID}
	if resp.SessionID != 0 && g.exchange != "reconnect" {
		wire(p.machine, nil)
		p.entry(p.client.create())
	}
	wire(p.machine, map[uint64]*outbox{p.client.origin.Conn: p.box})
}

// ask gives one request to the machine. It returns false for those that the
// server answers by itself.
func (p *player) ask(t *testing.T, g golden) bool {
	d := proto.NewDecoder(g.payload)
	h := d.RequestHeader()
	body := d.Rest()
	switch {
	case h.Type == proto.OpAuth:
		p.client.ids = auth.Add(p.client.ids, p.auth.Authenticate(d.AuthPacket(), anyone[0])...)
		return false
	case h.Type == proto.OpSASL, h.Type == 999:
		return false
	case h.Type.IsWrite():
		p.client.cxid = h.Xid - 1
		p.entry(p.client.command(h.Type, body))
	default:
		p.Read(p.box, &ReadRequest{Header: h, Body: body, Identities: p.client.ids}, nil)
	}
	return true
}

// payload encodes a frame that an outbox took.
func (it *item) payload() []byte {
	b := proto.AppendReplyHeader(nil, it.ReplyHeader)
	if it.Xid == proto.XidNotification {
		return proto.AppendWatcherEvent(b, it.event)
	}
	return append(b, it.body...)
}

// masked prints a frame without its times and with children in order.
func masked(op proto.OpCode, payload []byte) string {
	d := proto.NewDecoder(payload)
	h := d.ReplyHeader()
	out := fmt.Sprintf("%+v", h)
	switch {
	case h.Xid == proto.XidNotification:
		return fmt.Sprintf("%s %+v", out, d.WatcherEvent())
	case h.Err != proto.ErrOK:
		return fmt.Sprintf("%s %x", out, d.Rest())
	}
	out += maskedBody(op, d)
	return fmt.Sprintf("%s %v %x", out, d.Err(), d.Rest())
}

func maskedStat(d *proto.Decoder) string {
	st := d.Stat()
	st.Ctime, st.Mtime = 0, 0
	return fmt.Sprintf(" %+v", st)
}

func maskedStrings(d *proto.Decoder) string {
	names := d.Strings()
	slices.Sort(names)
	return fmt.Sprintf(" %q", names)
}

func maskedBody(op proto.OpCode, d *proto.Decoder) string {
	switch op {
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return d.String() + maskedStat(d)
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		return maskedStat(d)
	case proto.OpGetData:
		data := d.Buffer()
		return fmt.Sprintf(" %q null %t", data, data == nil) + maskedStat(d)
	case proto.OpGetACL:
		return fmt.Sprintf(" %+v", d.ACLs()) + maskedStat(d)
	case proto.OpGetChildren:
		return maskedStrings(d)
	case proto.OpGetChildren2:
		return maskedStrings(d) + maskedStat(d)
	case proto.OpWhoAmI:
		ids := make([]string, d.Count(8))
		for i := range ids {
			ids[i] = d.String() + ":" + d.String()
		}
		slices.Sort(ids)
		return fmt.Sprintf(" %q", ids)
	case proto.OpMulti, proto.OpMultiRead:
		var b bytes.Buffer
		for d.Err() == nil {
			h := d.MultiHeader()
			fmt.Fprintf(&b, " %+v", h)
			switch {
			case h.Done:
				return b.String()
			case h.Type == proto.OpError:
				fmt.Fprint(&b, d.Int())
			default:
				b.WriteString(maskedBody(h.Type, d))
			}
		}
	case proto.OpCreate:
		return d.String()
	}
	return ""
}
