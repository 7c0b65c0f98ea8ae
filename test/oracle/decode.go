package oracle

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// Field is one part of an item in comparable form.
type Field struct {
	Name, Value string
}

// reader decodes a frame into fields. What it cannot read to the last byte
// becomes one field of raw bytes, so that nothing escapes the comparison.
type reader struct {
	b      []byte
	bad    bool
	fields []Field
	norm   *normal
}

func (d *reader) add(name, value string) { d.fields = append(d.fields, Field{name, value}) }

func (d *reader) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return make([]byte, max(0, min(n, 16)))
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *reader) i32() int32 { return proto.NewDecoder(d.take(4)).Int() }
func (d *reader) i64() int64 { return proto.NewDecoder(d.take(8)).Long() }

func (d *reader) int(name string) int32 {
	v := d.i32()
	d.add(name, strconv.Itoa(int(v)))
	return v
}

func (d *reader) bytes(name string) {
	n := d.i32()
	if n == -1 {
		d.add(name, "null")
		return
	}
	d.add(name, d.quote(d.take(int(n))))
}

// quote shows bytes, with names in the place of the root and of servers, and long runs shortened by
// their length only where the value stays unique enough: not at all.
func (d *reader) quote(b []byte) string {
	return strconv.QuoteToASCII(d.norm.names.Replace(string(b)))
}

func (d *reader) names(name string) {
	n := d.i32()
	if n == -1 {
		d.add(name, "null")
		return
	}
	var out []string
	for i := int32(0); i < n && !d.bad; i++ {
		k := d.i32()
		if k == -1 {
			out = append(out, "null")
			continue
		}
		out = append(out, d.quote(d.take(int(k))))
	}
	slices.Sort(out)
	d.add(name, "["+strings.Join(out, " ")+"]")
}

func (d *reader) stat(prefix string) {
	c, m := d.i64(), d.i64()
	ct, mt := d.i64(), d.i64()
	d.add(prefix+"czxid", d.norm.zxid(c))
	d.add(prefix+"mzxid", d.norm.zxid(m))
	d.add(prefix+"ctime", d.norm.time(c, ct))
	d.add(prefix+"mtime", d.norm.time(m, mt))
	d.int(prefix + "version")
	d.int(prefix + "cversion")
	d.int(prefix + "aversion")
	d.add(prefix+"ephemeralOwner", d.norm.session(d.i64()))
	d.int(prefix + "dataLength")
	d.int(prefix + "numChildren")
	d.add(prefix+"pzxid", d.norm.zxid(d.i64()))
}

func (d *reader) acls(name string) {
	n := d.i32()
	if n == -1 {
		d.add(name, "null")
		return
	}
	d.add(name+".len", strconv.Itoa(int(n)))
	for i := int32(0); i < n && !d.bad; i++ {
		p := fmt.Sprintf("%s[%d].", name, i)
		d.int(p + "perms")
		d.bytes(p + "scheme")
		d.bytes(p + "id")
	}
}

func errText(code int32) string {
	return fmt.Sprintf("%d (%v)", code, proto.ErrCode(code))
}

// item decodes one item of a transcript.
func (n *normal) item(it Item) []Field {
	switch it.Kind {
	case KindClose, KindSilence:
		return nil
	case KindText:
		return []Field{{"text", string(it.Frame)}}
	}
	d := &reader{b: it.Frame, norm: n}
	if it.Kind == KindConnect {
		d.connect()
	} else {
		d.reply(it.Op)
	}
	if d.bad {
		return []Field{{"undecodable", hex.EncodeToString(it.Frame)}}
	}
	if len(d.b) > 0 {
		d.add("rest", hex.EncodeToString(d.b))
	}
	return d.fields
}

func (d *reader) connect() {
	d.int("protocolVersion")
	d.int("timeOut")
	id := d.i64()
	d.add("sessionId", d.norm.session(id))
	if n := d.i32(); n == -1 {
		d.add("passwd", "null")
	} else {
		d.add("passwd", d.norm.passwd(id, d.take(int(n))))
	}
	ro := "absent"
	if len(d.b) > 0 {
		ro = strconv.Itoa(int(d.take(1)[0]))
	}
	d.add("readOnly", ro)
}

// reply decodes a reply header and the body of op, or a notification.
func (d *reader) reply(op proto.OpCode) {
	d.int("xid")
	d.add("zxid", d.norm.zxid(d.i64()))
	code := d.i32()
	d.add("err", errText(code))
	if op == proto.OpNotification && len(d.b) > 0 {
		d.int("type")
		d.int("state")
		d.bytes("path")
		return
	}
	if len(d.b) > 0 {
		d.body(op)
	}
}

func (d *reader) body(op proto.OpCode) {
	switch op {
	case proto.OpCreate, proto.OpSync:
		d.bytes("path")
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		d.bytes("path")
		d.stat("stat.")
	case proto.OpExists, proto.OpSetData, proto.OpSetACL:
		d.stat("stat.")
	case proto.OpGetData, proto.OpReconfig:
		d.bytes("data")
		d.stat("stat.")
	case proto.OpGetACL:
		d.acls("acl")
		d.stat("stat.")
	case proto.OpGetChildren, proto.OpGetEphemerals:
		d.names("children")
	case proto.OpGetChildren2:
		d.names("children")
		d.stat("stat.")
	case proto.OpGetAllChildrenNumber:
		d.int("number")
	case proto.OpAddWatch:
		d.int("result")
	case proto.OpSASL:
		d.bytes("token")
	case proto.OpWhoAmI:
		n := d.int("ids")
		for i := int32(0); i < n && !d.bad; i++ {
			d.bytes(fmt.Sprintf("ids[%d].scheme", i))
			d.bytes(fmt.Sprintf("ids[%d].user", i))
		}
	case proto.OpMulti, proto.OpMultiRead:
		d.multi()
	}
}

func (d *reader) multi() {
	for i := 0; !d.bad; i++ {
		p := fmt.Sprintf("op[%d].", i)
		t := d.int(p + "type")
		done := d.take(1)[0]
		d.add(p+"done", strconv.Itoa(int(done)))
		d.add(p+"err", errText(d.i32()))
		if done != 0 {
			return
		}
		switch proto.OpCode(t) {
		case proto.OpCreate:
			d.bytes(p + "path")
		case proto.OpCreate2:
			d.bytes(p + "path")
			d.stat(p + "stat.")
		case proto.OpSetData:
			d.stat(p + "stat.")
		case proto.OpGetData:
			d.bytes(p + "data")
			d.stat(p + "stat.")
		case proto.OpGetChildren:
			d.names(p + "children")
		case proto.OpError:
			d.add(p+"code", errText(d.i32()))
		}
	}
}
