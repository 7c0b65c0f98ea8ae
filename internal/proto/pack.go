package proto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
)

/*
A packed command is a command as a server's own disk holds it: the same bytes in
fewer, without what a usual command has anyway. Nothing but UnpackCommand reads
it, so no other server and no command level has to do with it.

	head      1 byte   bits below; 0: the command follows as it is
	type      zigzag varint
	session   8 bytes
	cxid      uvarint
	seq       zigzag varint of seq − cxid: both count requests
	server    uvarint, unless packedHome
	conn      8 bytes
	ids       packedIPv4: 4 bytes; else a uvarint count, each scheme and id with
	          a uvarint length
	body      as it is, or packedBody:
	          setData           uvarint length, path, zigzag version, data
	          create, create2   uvarint length, path, zigzag flags, data; the ACL is OpenACL
	          delete, check     zigzag version, path

It holds for every command c, whatever its bytes, that unpacking PackCommand(c)
gives c: what the form cannot express stays as it is.
*/
const (
	packed     byte = 1 << 0 // always, so that 0 is left for a command as it is
	packedBody byte = 1 << 1
	packedHome byte = 1 << 2 // the origin is the server that made the session
	packedIPv4 byte = 1 << 3 // the identities are one, of scheme ip
	packedBits      = packed | packedBody | packedHome | packedIPv4
)

// ErrPacked is returned for bytes that PackCommand cannot have written.
var ErrPacked = errors.New("proto: not a packed command")

// openACL is OpenACL as a request carries it.
var openACL = AppendACLs(nil, OpenACL)

// PackCommand adds the packed form of a command to dst.
func PackCommand(dst, command []byte) []byte {
	start := len(dst)
	if dst, ok := packCommand(dst, command); ok {
		return dst
	}
	return append(append(dst[:start], 0), command...)
}

func packCommand(dst, command []byte) ([]byte, bool) {
	if len(command) < commandHeadLen || command[0] != 1 {
		return dst, false // of another version, or cut short
	}
	session, conn, ids := command[1:9], command[21:29], command[37:]
	cxid := binary.BigEndian.Uint32(command[9:])
	op := int32(binary.BigEndian.Uint32(command[13:]))
	server := binary.BigEndian.Uint32(command[17:])
	seq := int64(binary.BigEndian.Uint64(command[29:]))
	at := len(dst)
	dst = append(dst, packed)
	dst = binary.AppendVarint(dst, int64(op))
	dst = append(dst, session...)
	dst = binary.AppendUvarint(dst, uint64(cxid))
	dst = binary.AppendVarint(dst, seq-int64(int32(cxid)))
	if server == uint32(session[0]) {
		dst[at] |= packedHome
	} else {
		dst = binary.AppendUvarint(dst, uint64(server))
	}
	dst = append(dst, conn...)
	dst, body, ok := packIdentities(dst, at, ids)
	if !ok {
		return dst, false
	}
	end := len(dst)
	if dst, ok := packBody(dst, OpCode(op), body); ok {
		dst[at] |= packedBody
		return dst, true
	}
	return append(dst[:end], body...), true
}

// commandHeadLen is the length of a command's fields before its identities.
const commandHeadLen = 1 + 8 + 4 + 4 + 4 + 8 + 8

// packIdentities adds the list that b begins with, and returns the rest of b.
// The head is at dst[head].
func packIdentities(dst []byte, head int, b []byte) (packed, rest []byte, ok bool) {
	if tail, ok := bytes.CutPrefix(b, oneAddress); ok && len(tail) > 4 {
		n := binary.BigEndian.Uint32(tail)
		if tail = tail[4:]; uint64(n) <= uint64(len(tail)) {
			if ip, ok := parseIPv4(tail[:n]); ok {
				dst[head] |= packedIPv4
				return append(dst, ip[:]...), tail[n:], true
			}
		}
	}
	d := NewDecoder(b)
	n := d.Int()
	if n < 0 || int64(n) > int64(len(b)) {
		return dst, nil, false
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for range n {
		scheme, id := d.Buffer(), d.Buffer()
		if scheme == nil || id == nil || d.err != nil {
			return dst, nil, false
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(scheme))), scheme...)
		dst = append(binary.AppendUvarint(dst, uint64(len(id))), id...)
	}
	return dst, d.Rest(), d.err == nil
}

// oneAddress is how a list of one identity of scheme ip begins.
var oneAddress = AppendString(AppendInt(nil, 1), "ip")

// parseIPv4 accepts exactly what appendIPv4 writes.
func parseIPv4(text []byte) (ip [4]byte, ok bool) {
	part, digits, value := 0, 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != '.' {
			c := text[i]
			if c < '0' || c > '9' || digits > 0 && value == 0 {
				return ip, false
			}
			digits, value = digits+1, 10*value+int(c-'0')
			if value > 255 {
				return ip, false
			}
			continue
		}
		if digits == 0 || part == len(ip) {
			return ip, false
		}
		ip[part] = byte(value)
		part, digits, value = part+1, 0, 0
	}
	return ip, part == len(ip)
}

func appendIPv4(dst []byte, ip []byte) []byte {
	for i, b := range ip {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = strconv.AppendUint(dst, uint64(b), 10)
	}
	return dst
}

func packBody(dst []byte, op OpCode, body []byte) ([]byte, bool) {
	d := NewDecoder(body)
	path := d.Buffer()
	var data []byte
	switch op {
	case OpSetData:
		data = d.Buffer()
	case OpCreate, OpCreate2:
		data = d.Buffer()
		if !bytes.Equal(d.take(len(openACL)), openACL) {
			return dst, false
		}
	case OpDelete, OpCheck:
		data = path
	default:
		return dst, false
	}
	last := d.Int()
	if path == nil || data == nil || d.err != nil || len(d.Rest()) > 0 {
		return dst, false
	}
	if op != OpDelete && op != OpCheck {
		dst = append(binary.AppendUvarint(dst, uint64(len(path))), path...)
	}
	return append(binary.AppendVarint(dst, int64(last)), data...), true
}

// UnpackCommand adds the command to dst whose packed form b is.
func UnpackCommand(dst, b []byte) ([]byte, error) {
	switch {
	case len(b) > 0 && b[0] == 0:
		return append(dst, b[1:]...), nil
	case len(b) == 0 || b[0]&packed == 0 || b[0]&^packedBits != 0:
		return dst, ErrPacked
	}
	head, u := b[0], unpacker{b: b[1:]}
	op := u.int32()
	session := u.take(8)
	cxid := uint32(u.uvarint())
	seq := u.varint() + int64(int32(cxid))
	server := uint32(0)
	if head&packedHome == 0 {
		server = uint32(u.uvarint())
	} else if session != nil {
		server = uint32(session[0])
	}
	conn := u.take(8)
	if u.bad {
		return dst, ErrPacked
	}
	dst = append(append(dst, 1), session...)
	dst = AppendInt(AppendInt(AppendInt(dst, int32(cxid)), op), int32(server))
	dst = AppendLong(append(dst, conn...), seq)
	dst = u.identities(dst, head)
	if head&packedBody == 0 {
		dst = append(dst, u.b...)
	} else {
		dst = u.body(dst, OpCode(op))
	}
	if u.bad {
		return dst, ErrPacked
	}
	return dst, nil
}

// unpacker reads a packed command; after the first failure bad stays set.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) take(n uint64) []byte {
	if u.bad || n > uint64(len(u.b)) {
		u.bad = true
		return nil
	}
	part := u.b[:n]
	u.b = u.b[n:]
	return part
}

func (u *unpacker) uvarint() uint64 {
	v, n := binary.Uvarint(u.b)
	u.bad = u.bad || n <= 0
	u.take(uint64(max(n, 0)))
	return v
}

func (u *unpacker) varint() int64 {
	v, n := binary.Varint(u.b)
	u.bad = u.bad || n <= 0
	u.take(uint64(max(n, 0)))
	return v
}

func (u *unpacker) int32() int32 { return int32(u.varint()) }

// text adds a string with its length as jute has it.
func (u *unpacker) text(dst []byte) []byte {
	return AppendBuffer(dst, u.take(u.uvarint()))
}

func (u *unpacker) identities(dst []byte, head byte) []byte {
	if head&packedIPv4 != 0 {
		dst = append(dst, oneAddress...)
		at := len(dst)
		dst = appendIPv4(AppendInt(dst, 0), u.take(4))
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		return dst
	}
	n := u.uvarint()
	if n > uint64(len(u.b)) {
		u.bad = true
		return dst
	}
	dst = AppendInt(dst, int32(n))
	for i := uint64(0); i < n && !u.bad; i++ {
		dst = u.text(u.text(dst))
	}
	return dst
}

func (u *unpacker) body(dst []byte, op OpCode) []byte {
	switch op {
	case OpSetData, OpCreate, OpCreate2:
		dst = u.text(dst)
		last := u.int32()
		dst = AppendBuffer(dst, u.rest())
		if op != OpSetData {
			dst = append(dst, openACL...)
		}
		return AppendInt(dst, last)
	case OpDelete, OpCheck:
		last := u.int32()
		return AppendInt(AppendBuffer(dst, u.rest()), last)
	}
	u.bad = true
	return dst
}

// rest is what is left, which is not null even if it is empty.
func (u *unpacker) rest() []byte { return u.b[:len(u.b):len(u.b)] }
