package proto

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"testing"
)

// multiOf joins raw parts into a multi's body, with its end.
func multiOf(parts ...[]byte) []byte { return AppendMultiHeader(bytes.Join(parts, nil), MultiEnd) }

// part is one op: its header and its record.
func part(t OpCode, record []byte) []byte {
	return append(AppendMultiHeader(nil, MultiHeader{Type: t, Err: -1}), record...)
}

func creation(op OpCode, flags int32, ttl int64, acl []ACL) []byte {
	r := CreateRequest{Path: "/a", ACL: acl, Flags: flags, TTL: ttl}
	return part(op, r.Append(nil, op))
}

func TestMultisAreReadAsTheRealServerReadsThem(t *testing.T) {
	deletion := part(OpDelete, (&PathVersion{Path: "/a", Version: 3}).Append(nil))
	check := part(OpCheck, (&PathVersion{Path: "/a", Version: 3}).Append(nil))
	read := part(OpGetData, (&PathWatch{Path: "/a", Watch: true}).Append(nil))
	list := part(OpGetChildren, (&PathWatch{Path: "/a"}).Append(nil))
	for _, c := range []struct {
		name string
		body []byte
		want []OpCode
		err  error
	}{
		{"empty", multiOf(), []OpCode{}, nil},
		{"ops of all kinds", multiOf(deletion, check, creation(OpCreate, 0, 0, OpenACL), part(OpSetData, (&SetDataRequest{Path: "/a"}).Append(nil))),
			[]OpCode{OpDelete, OpCheck, OpCreate, OpSetData}, nil},
		{"reads alone", multiOf(read, list), []OpCode{OpGetData, OpGetChildren}, nil},
		{"a read behind a write", multiOf(deletion, read), nil, ErrMultiOps},
		{"a write behind a read", multiOf(read, deletion), nil, ErrMultiOps},
		{"nothing at all", nil, nil, ErrTruncated},
		{"no end", deletion, nil, ErrTruncated},
		{"a header cut short", multiOf(deletion)[:len(deletion)+8], nil, ErrTruncated},
		{"a record cut short", deletion[:len(deletion)-1], nil, ErrTruncated},
		{"what follows the end is not looked at", append(multiOf(deletion), 1, 2, 3), []OpCode{OpDelete}, nil},
		{"any header that says done ends it", AppendMultiHeader(deletion, MultiHeader{Type: OpCreate, Done: true, Err: 7}), []OpCode{OpDelete}, nil},
		{"an op that has no place in a multi", multiOf(part(OpExists, (&PathWatch{Path: "/a"}).Append(nil))), nil, ErrMultiOps},
		{"a multi in a multi", multiOf(part(OpMulti, multiOf())), nil, ErrMultiOps},
		{"setACL", multiOf(part(OpSetACL, (&SetACLRequest{Path: "/a", ACL: OpenACL}).Append(nil))), nil, ErrMultiOps},
		{"create with an unknown flag", multiOf(creation(OpCreate, 7, 0, OpenACL)), nil, ErrMultiOps},
		{"create with a negative flag", multiOf(creation(OpCreate2, -1, 0, OpenACL)), nil, ErrMultiOps},
		{"create with a TTL flag", multiOf(creation(OpCreate, CreatePersistentTTL, 0, OpenACL)), nil, ErrMultiOps},
		{"create with a null ACL", multiOf(creation(OpCreate, 0, 0, nil)), nil, ErrNullField},
		{"create with an empty ACL is read", multiOf(creation(OpCreate, 0, 0, []ACL{})), []OpCode{OpCreate}, nil},
		{"create with the container flag makes a container", multiOf(creation(OpCreate, CreateContainer, 0, OpenACL)), []OpCode{OpCreateContainer}, nil},
		{"createTTL", multiOf(creation(OpCreateTTL, CreatePersistentTTL, 5, OpenACL)), []OpCode{OpCreateTTL}, nil},
		{"createTTL with an ordinary flag is a create", multiOf(creation(OpCreateTTL, CreateEphemeral, 5, OpenACL)), []OpCode{OpCreate}, nil},
		{"createTTL with the container flag makes a container", multiOf(creation(OpCreateTTL, CreateContainer, 5, OpenACL)), []OpCode{OpCreateContainer}, nil},
	} {
		ops, err := DecodeMulti(c.body)
		got := []OpCode{}
		for _, op := range ops {
			got = append(got, op.Type)
		}
		if !errors.Is(err, c.err) || err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, got, err, c.want, c.err)
		}
	}
}

// Case 8: what a client sends decides how much is set aside for it, within a
// small factor, however many elements it is.
func TestMemoryIsProportionalToTheInput(t *testing.T) {
	const size = DefaultMaxFrameBytes
	fill := func(unit []byte, head ...byte) []byte {
		return append(head, bytes.Repeat(unit, (size-len(head))/len(unit))...)
	}
	count := func(unit int) []byte { return AppendInt(nil, int32((size-4)/unit)) }
	for _, c := range []struct {
		name   string
		in     []byte
		decode func(in []byte)
	}{
		{"a multi of tiny ops", multiOf(fill(part(OpDelete, make([]byte, 8)))), func(in []byte) { _, _ = DecodeMulti(in) }},
		{"a vector of empty strings", fill(make([]byte, 4), count(4)...), func(in []byte) { NewDecoder(in).Strings() }},
		{"a vector of empty ACL entries", fill(make([]byte, 12), count(12)...), func(in []byte) { NewDecoder(in).ACLs() }},
		{"a string of malformed bytes", fill([]byte{0xff}, AppendInt(nil, size-4)...), func(in []byte) { _ = NewDecoder(in).String() }},
		{"a vector that claims too much", fill([]byte{0}, AppendInt(nil, 0x7fffffff)...), func(in []byte) { NewDecoder(in).Strings() }},
		{"a buffer", fill([]byte{1}, AppendInt(nil, size-4)...), func(in []byte) { NewDecoder(in).Buffer() }},
		{"identities of a command", fill(make([]byte, 8), append((&Txn{}).Append(nil, CommandVersion)[:37], count(8)...)...), func(in []byte) { _, _ = DecodeTxn(in, CommandVersion) }},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.decode(c.in)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 80*size {
			t.Errorf("%s: %d bytes allocated for %d", c.name, got, len(c.in))
		}
	}
}

func TestFramesAreCutByTheirLength(t *testing.T) {
	frame := EndFrame(append(BeginFrame([]byte("before")), "payload"...), 6)[6:]
	for _, buf := range [][]byte{nil, make([]byte, 3), make([]byte, 0, 100)} {
		got, err := ReadFrame(bytes.NewReader(append(frame, "next"...)), buf, 7)
		if err != nil || string(got) != "payload" {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, c := range []struct {
		name string
		in   []byte
		err  bool
		size error
	}{
		{"longer than the limit", frame, true, ErrFrameLength},
		{"a negative length", []byte{0xff, 0xff, 0xff, 0xff, 0}, true, ErrFrameLength},
		{"the greatest length", []byte{0x7f, 0xff, 0xff, 0xff, 0}, true, ErrFrameLength},
		{"an empty frame", []byte{0, 0, 0, 0}, false, nil},
		{"a length cut short", frame[:3], true, nil},
		{"a frame cut short", []byte{0, 0, 0, 5, 1, 2}, true, nil},
	} {
		_, err := ReadFrame(bytes.NewReader(c.in), nil, 6)
		if (err != nil) != c.err || c.size != nil && !errors.Is(err, c.size) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	long := bytes.Repeat([]byte("0123456789"), 50_000)
	got, err := ReadBody(&slow{bytes.NewReader(long)}, nil, len(long))
	if err != nil || !bytes.Equal(got, long) {
		t.Errorf("a long frame in small pieces: %d bytes, %v", len(got), err)
	}
	if got, err := ReadBody(bytes.NewReader(long[:70_000]), nil, len(long)); err == nil || cap(got) > 200_000 {
		t.Errorf("a long frame that stops early: %v, %d bytes set aside", err, cap(got))
	}
}

// slow is a reader that gives a few bytes at a time.
type slow struct{ r *bytes.Reader }

func (s *slow) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 977)]) }
