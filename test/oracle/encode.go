package oracle

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// opByName finds an op code by ZooKeeper's name.
var opByName = func() map[string]proto.OpCode {
	m := map[string]proto.OpCode{}
	for n := proto.OpCode(-11); n <= 107; n++ {
		if name := n.String(); !strings.HasPrefix(name, "unknown") {
			m[name] = n
		}
	}
	return m
}()

// values turns written values into what they stand for on one server.
type values struct {
	root string                          // replaces $
	zxid func(expr string) (int64, bool) // evaluates a zxid
}

// str returns a string value; null without quotes is jute's null.
func (v values) str(written string) string {
	if written == "null" {
		return proto.NullString
	}
	s := written
	if strings.HasPrefix(written, `"`) {
		if u, err := strconv.Unquote(written); err == nil {
			s = u
		}
	}
	return strings.ReplaceAll(s, "$", v.root)
}

// data returns a buffer value: null, hex:00ff, rep:1000 or a string.
func (v values) data(written string) []byte {
	switch {
	case written == "null":
		return nil
	case strings.HasPrefix(written, "hex:"):
		b, _ := hex.DecodeString(written[4:])
		return append([]byte{}, b...)
	case strings.HasPrefix(written, "rep:"):
		n, _ := strconv.Atoi(written[4:])
		return []byte(strings.Repeat("x", n))
	}
	return []byte(v.str(written))
}

// list returns a vector of strings: null, or values between bars.
func (v values) list(written string) []string {
	if written == "null" {
		return nil
	}
	out := []string{}
	s := v.str(written)
	if s == "" {
		return out
	}
	for _, e := range strings.Split(s, "|") {
		if e == "~" {
			e = proto.NullString
		}
		out = append(out, e)
	}
	return out
}

// acl returns an ACL list: open, null, empty, or perms:scheme:id between bars,
// where ~ is a null string.
func (v values) acl(written string) []proto.ACL {
	switch written {
	case "", "open":
		return proto.OpenACL
	case "null":
		return nil
	case "empty":
		return []proto.ACL{}
	}
	var out []proto.ACL
	for _, e := range v.list(written) {
		f := strings.SplitN(e, ":", 3)
		for len(f) < 3 {
			f = append(f, "")
		}
		for i := 1; i < 3; i++ {
			if f[i] == "~" {
				f[i] = proto.NullString
			}
		}
		n, _ := strconv.ParseInt(f[0], 0, 64)
		out = append(out, proto.ACL{Perms: int32(n), ID: proto.ID{Scheme: f[1], ID: f[2]}})
	}
	return out
}

// request is an encoded request, ready to be framed.
type request struct {
	xid  int32
	op   proto.OpCode
	body []byte
}

// encode builds the request of the tokens that follow a connection's name. The
// modifiers xid, cut (bytes less), pad (bytes more) and flip (offset:bits, the
// offset behind a zxid and modulo the length) go with every operation, and op=<number>
// body=<hex> makes any other.
func (v values) encode(tokens []string, xid int32) (request, error) {
	if len(tokens) == 0 {
		return request{}, fmt.Errorf("no operation")
	}
	r := request{xid: xid}
	a := parseArgs(tokens[1:])
	name := tokens[0]
	if n, ok := strings.CutPrefix(name, "op="); ok {
		code, err := strconv.ParseInt(n, 0, 32)
		if err != nil {
			return request{}, fmt.Errorf("op code %q", n)
		}
		r.op = proto.OpCode(code)
	} else if op, ok := opByName[name]; ok {
		r.op = op
		if op == proto.OpMulti || op == proto.OpMultiRead {
			r.body = v.multi(tokens[1:])
		} else {
			r.body = v.record(op, a)
		}
	} else {
		return request{}, fmt.Errorf("unknown operation %q", name)
	}
	if b, ok := a.named["body"]; ok {
		r.body, _ = hex.DecodeString(b)
	}
	r.xid = int32(a.num("xid", int64(xid)))
	if n := int(a.num("cut", 0)); n > 0 {
		r.body = r.body[:max(0, len(r.body)-n)]
	}
	if p, ok := a.named["pad"]; ok {
		b, _ := hex.DecodeString(p)
		r.body = append(r.body, b...)
	}
	if at, ok := a.named["flip"]; ok && len(r.body) > 0 {
		var offset, bits int
		if _, err := fmt.Sscanf(at, "%d:%x", &offset, &bits); err != nil {
			return request{}, fmt.Errorf("flip=%s: %w", at, err)
		}
		if from := zxidLen(r.op); len(r.body) > from {
			r.body[from+offset%(len(r.body)-from)] ^= byte(bits)
		}
	}
	return r, nil
}

// zxidLen is the length of the zxid that a body begins with. It is spared from
// damage: the two systems count from different zxids, so that one of them may be
// behind the damaged zxid and the other before it.
func zxidLen(op proto.OpCode) int {
	if op == proto.OpSetWatches || op == proto.OpSetWatches2 {
		return 8
	}
	return 0
}

// record encodes one operation's record.
func (v values) record(op proto.OpCode, a args) []byte {
	path := proto.NullString
	if a.has {
		path = v.str(a.path)
	}
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		r := proto.CreateRequest{Path: path, Data: v.data(a.named["data"]), ACL: v.acl(a.named["acl"]),
			Flags: int32(a.num("flags", 0)), TTL: a.num("ttl", -1)}
		return r.Append(nil, op)
	case proto.OpDelete, proto.OpCheck:
		r := proto.PathVersion{Path: path, Version: int32(a.num("v", -1))}
		return r.Append(nil)
	case proto.OpSetData:
		r := proto.SetDataRequest{Path: path, Data: v.data(a.named["data"]), Version: int32(a.num("v", -1))}
		return r.Append(nil)
	case proto.OpSetACL:
		r := proto.SetACLRequest{Path: path, ACL: v.acl(a.named["acl"]), Version: int32(a.num("v", -1))}
		return r.Append(nil)
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		r := proto.PathWatch{Path: path, Watch: a.num("w", 0) != 0}
		return r.Append(nil)
	case proto.OpGetACL, proto.OpSync, proto.OpGetEphemerals, proto.OpGetAllChildrenNumber, proto.OpDeleteContainer:
		return proto.AppendString(nil, path)
	case proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpAddWatch:
		r := proto.PathType{Path: path, Type: int32(a.num("type", 0))}
		return r.Append(nil)
	case proto.OpReconfig:
		r := proto.ReconfigRequest{Joining: v.str(a.or("joining", "null")), Leaving: v.str(a.or("leaving", "null")),
			NewMembers: v.str(a.or("members", "null")), CurConfigID: a.num("id", -1)}
		return r.Append(nil)
	case proto.OpAuth:
		r := proto.AuthPacket{Type: int32(a.num("type", 0)), Scheme: v.str(a.or("scheme", "null")), Auth: v.data(a.or("data", "null"))}
		return r.Append(nil)
	case proto.OpSetWatches, proto.OpSetWatches2:
		rel, _ := v.zxid(a.or("rel", "0"))
		r := proto.SetWatches{RelativeZxid: proto.Zxid(rel), Data: v.list(a.named["d"]), Exist: v.list(a.named["e"]),
			Child: v.list(a.named["c"]), Persistent: v.list(a.named["p"]), PersistentRecur: v.list(a.named["r"])}
		return r.Append(nil, op == proto.OpSetWatches2)
	case proto.OpSASL:
		return proto.AppendBuffer(nil, v.data(a.or("token", "null")))
	case proto.OpCreateSession:
		return proto.AppendInt(nil, int32(a.num("timeout", 10000)))
	}
	return nil
}

func (a args) or(key, def string) string {
	if v, ok := a.named[key]; ok {
		return v
	}
	return def
}

// multi encodes `[ op … ; op … ]`. Each sub-operation may have head=<type>
// to lie about its type, err= and done= for the header's other fields, and
// rec=<hex> for its record; `noend`
// behind the bracket leaves the closing header out.
func (v values) multi(tokens []string) []byte {
	var body []byte
	end := true
	var sub []string
	flush := func() {
		if len(sub) == 0 {
			return
		}
		a := parseArgs(sub[1:])
		op, ok := opByName[sub[0]]
		if n, cut := strings.CutPrefix(sub[0], "op="); cut && !ok {
			code, _ := strconv.ParseInt(n, 0, 32)
			op = proto.OpCode(code)
		}
		h := proto.MultiHeader{Type: proto.OpCode(a.num("head", int64(op))), Done: a.num("done", 0) != 0,
			Err: proto.ErrCode(a.num("err", -1))}
		body = proto.AppendMultiHeader(body, h)
		if b, ok := a.named["rec"]; ok {
			raw, _ := hex.DecodeString(b)
			body = append(body, raw...)
		} else {
			body = append(body, v.record(op, a)...)
		}
		sub = nil
	}
	depth := 0
	for _, t := range tokens {
		switch {
		case t == "[":
			depth++
		case t == ";" || t == "]":
			flush()
			if t == "]" {
				depth--
			}
		case depth > 0:
			sub = append(sub, t)
		case t == "noend":
			end = false
		}
	}
	flush()
	if end {
		body = proto.AppendMultiHeader(body, proto.MultiEnd)
	}
	return body
}
