package proto_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// golden is one captured frame.
type golden struct {
	exchange, kind string
	op             proto.OpCode
	payload        []byte // without the length
}

func goldenFrames(t *testing.T) []golden {
	t.Helper()
	text, err := os.ReadFile(framesFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		op, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		frame, err := hex.DecodeString(f[3])
		if err != nil {
			t.Fatal(err)
		}
		payload, err := proto.ReadFrame(bytes.NewReader(frame), nil, proto.DefaultMaxFrameBytes)
		if err != nil || len(payload) != len(frame)-4 {
			t.Fatalf("%s: %d bytes of %d, %v", f[0], len(payload), len(frame), err)
		}
		out = append(out, golden{exchange: f[0], kind: f[1], op: proto.OpCode(op), payload: payload})
	}
	return out
}

// find returns the frame of an exchange.
func find(t *testing.T, frames []golden, exchange, kind string) golden {
	t.Helper()
	for _, g := range frames {
		if g.exchange == exchange && g.kind == kind {
			return g
		}
	}
	t.Fatalf("no %s of %s was captured", kind, exchange)
	return golden{}
}

// again decodes a frame and encodes what came out.
func again(g golden) ([]byte, error) {
	switch g.kind {
	case "connect":
		r, err := proto.DecodeConnectRequest(g.payload)
		return r.Append(nil), err
	case "connected":
		r, err := proto.DecodeConnectResponse(g.payload)
		return r.Append(nil), err
	}
	d := proto.NewDecoder(g.payload)
	var out []byte
	var err error
	switch g.kind {
	case "request":
		h := d.RequestHeader()
		out = proto.AppendInt(proto.AppendInt(nil, h.Xid), int32(h.Type))
		out, err = requestAgain(out, d, h.Type)
	default:
		h := d.ReplyHeader()
		out = proto.AppendReplyHeader(nil, h)
		switch {
		case g.kind == "event":
			out = proto.AppendWatcherEvent(out, d.WatcherEvent())
		case h.Err == proto.ErrOK || len(d.Rest()) > 0:
			out, err = replyAgain(out, d, g.op)
		}
	}
	if err == nil {
		err = d.Err()
	}
	if err == nil && len(d.Rest()) > 0 {
		err = fmt.Errorf("%d bytes left", len(d.Rest()))
	}
	return out, err
}

func requestAgain(out []byte, d *proto.Decoder, op proto.OpCode) ([]byte, error) {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		r := d.CreateRequest(op)
		return r.Append(out, op), nil
	case proto.OpDelete:
		r := d.PathVersion()
		return r.Append(out), nil
	case proto.OpSetData:
		r := d.SetDataRequest()
		return r.Append(out), nil
	case proto.OpSetACL:
		r := d.SetACLRequest()
		return r.Append(out), nil
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		r := d.PathWatch()
		return r.Append(out), nil
	case proto.OpGetACL, proto.OpSync, proto.OpGetAllChildrenNumber, proto.OpGetEphemerals:
		return proto.AppendString(out, d.String()), nil
	case proto.OpAddWatch, proto.OpCheckWatches, proto.OpRemoveWatches:
		r := d.PathType()
		return r.Append(out), nil
	case proto.OpReconfig:
		r := d.ReconfigRequest()
		return r.Append(out), nil
	case proto.OpAuth:
		r := d.AuthPacket()
		return r.Append(out), nil
	case proto.OpSASL:
		return proto.AppendBuffer(out, d.Buffer()), nil
	case proto.OpSetWatches, proto.OpSetWatches2:
		r := d.SetWatches(op == proto.OpSetWatches2)
		return r.Append(out, op == proto.OpSetWatches2), nil
	case proto.OpMulti, proto.OpMultiRead:
		body := d.Rest()
		*d = *proto.NewDecoder(nil)
		ops, err := proto.DecodeMulti(body)
		if errors.Is(err, proto.ErrMultiOps) {
			return append(out, body...), nil // what the server too refuses to read
		}
		return proto.AppendMulti(out, ops), err
	}
	return out, nil
}

func replyAgain(out []byte, d *proto.Decoder, op proto.OpCode) ([]byte, error) {
	switch op {
	case proto.OpCreate, proto.OpSync:
		return proto.AppendString(out, d.String()), nil
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		path := d.String()
		st := d.Stat()
		return proto.AppendStat(proto.AppendString(out, path), &st), nil
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		st := d.Stat()
		return proto.AppendStat(out, &st), nil
	case proto.OpGetData:
		data := d.Buffer()
		st := d.Stat()
		return proto.AppendStat(proto.AppendBuffer(out, data), &st), nil
	case proto.OpGetACL:
		acls := d.ACLs()
		st := d.Stat()
		return proto.AppendStat(proto.AppendACLs(out, acls), &st), nil
	case proto.OpGetChildren, proto.OpGetEphemerals:
		return proto.AppendStrings(out, d.Strings()), nil
	case proto.OpGetChildren2:
		names := d.Strings()
		st := d.Stat()
		return proto.AppendStat(proto.AppendStrings(out, names), &st), nil
	case proto.OpGetAllChildrenNumber, proto.OpAddWatch:
		return proto.AppendInt(out, d.Int()), nil
	case proto.OpSASL:
		return proto.AppendBuffer(out, d.Buffer()), nil
	case proto.OpWhoAmI:
		n := d.Count(8)
		out = proto.AppendInt(out, int32(n))
		for range n {
			out = proto.AppendString(proto.AppendString(out, d.String()), d.String())
		}
		return out, nil
	case proto.OpMulti, proto.OpMultiRead:
		for {
			h := d.MultiHeader()
			out = proto.AppendMultiHeader(out, h)
			if h.Done || d.Err() != nil {
				return out, nil
			}
			if h.Type == proto.OpError {
				out = proto.AppendInt(out, d.Int())
				continue
			}
			out, _ = replyAgain(out, d, h.Type) // a multi within a multi has no body
		}
	}
	return out, nil
}

func TestFramesOfTheRealServerAreReadAndWrittenAlike(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range goldenFrames(t) {
		if g.kind == "closed" {
			continue
		}
		seen[fmt.Sprint(g.kind, g.op)] = true
		out, err := again(g)
		if err != nil && g.exchange != "create-cut-short" {
			t.Errorf("%s %s: %v", g.exchange, g.kind, err)
			continue
		}
		if !bytes.Equal(out, g.payload) && g.exchange != "create-cut-short" {
			t.Errorf("%s %s:\n%x written\n%x captured", g.exchange, g.kind, out, g.payload)
		}
	}
	for op := proto.OpCode(-11); op <= 107; op++ {
		switch name := op.String(); {
		case op == proto.OpCreateSession, op == proto.OpError, op == proto.OpNotification, op == proto.OpCheck, op == proto.OpDeleteContainer:
			continue // not for clients
		case strings.HasPrefix(name, "unknown"):
			continue
		}
		if !seen[fmt.Sprint("request", op)] || !seen[fmt.Sprint("reply", op)] {
			t.Errorf("%v was not captured", op)
		}
	}
}
