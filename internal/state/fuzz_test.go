package state

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

// FuzzApply hands a whole entry of any bytes to two machines. Apply is total:
// it gives an outcome or an error, never a panic; and the two agree.
//
// The input is the entry's stamp (term, switches, time: 1, 4 and 2 bytes) and
// then commands, each behind its length in 2 bytes.
func FuzzApply(f *testing.F) {
	m := populated(f)
	g := newGenerator(1, m)
	for range 150 {
		s := g.next()
		f.Add(appendCommand([]byte{byte(s.term), 0, 0, 0, byte(s.switches), 0, 9}, s.command))
		m.entry(s.command)
	}
	f.Add([]byte{1})
	f.Add(appendCommand(appendCommand(make([]byte, 7), newClient(50, 50).create()), own(proto.OpCloseSession, 50, nil)))
	m = populated(f)
	snap := frozen(f, m.Machine)
	before := dump(f, m.Machine)
	f.Fuzz(func(t *testing.T, in []byte) {
		term, switches, now, commands := splitEntry(in)
		var dumps [2]string
		var errs [2]error
		for i := range dumps {
			m := newMachine(t)
			if err := m.Restore(bytes.NewReader(snap)); err != nil {
				t.Fatal(err)
			}
			own := make([][]byte, len(commands))
			for j, c := range commands {
				own[j] = bytes.Clone(c)
			}
			errs[i] = m.Apply(9, term, now, switches, own)
			for _, c := range own {
				clear(c)
			}
			dumps[i] = dump(t, m.Machine)
			if errs[i] != nil && dumps[i] != before {
				t.Fatalf("an entry that cannot be read changed the state:\n%s", firstDifference(dumps[i], before))
			}
		}
		if dumps[0] != dumps[1] || (errs[0] == nil) != (errs[1] == nil) {
			t.Fatalf("two replicas differ: %v, %v\n%s", errs[0], errs[1], firstDifference(dumps[0], dumps[1]))
		}
	})
}

func appendCommand(dst, command []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(command))), command...)
}

func splitEntry(in []byte) (term uint64, switches uint32, now int64, commands [][]byte) {
	head := make([]byte, 7)
	in = in[copy(head, in):]
	term, switches = uint64(head[0]), binary.BigEndian.Uint32(head[1:])
	now = int64(int16(binary.BigEndian.Uint16(head[5:])))
	for len(in) >= 2 {
		n := min(int(binary.BigEndian.Uint16(in)), len(in)-2)
		commands = append(commands, in[2:2+n])
		in = in[2+n:]
	}
	return term, switches, now, commands
}

// FuzzRead asks for anything: each request gets exactly one reply, and only a
// success, or a multiRead, has a body.
func FuzzRead(f *testing.F) {
	m := populated(f)
	g := newGenerator(1, m)
	for range 150 {
		op, body := g.read()
		f.Add(int32(op), body)
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		box := &outbox{session: 10}
		r := ReadRequest{Header: proto.RequestHeader{Xid: 3, Type: proto.OpCode(op)}, Body: body, Identities: anyone}
		h, _ := m.Read(box, &r, nil)
		replies := 0
		for _, it := range box.items {
			if it.Xid == proto.XidNotification {
				continue
			}
			replies++
			if it.ReplyHeader != h {
				t.Fatalf("reply %+v, told %+v", it.ReplyHeader, h)
			}
			if it.Err != proto.ErrOK && len(it.body) > 0 && r.Header.Type != proto.OpMultiRead {
				t.Fatalf("error %v with a body %x", it.Err, it.body)
			}
		}
		if replies != 1 {
			t.Fatalf("%d replies", replies)
		}
		m.Watches().Forget(box)
		if n := m.Watches().Count(); n != 0 {
			t.Fatalf("%d watches left", n)
		}
	})
}

// FuzzRestore reads any bytes as a snapshot: they are refused, and the state
// stays, unless they are one.
func FuzzRestore(f *testing.F) {
	snap := frozen(f, populated(f).Machine)
	f.Add(snap)
	f.Add(snap[:len(snap)/2])
	f.Add([]byte("ZKSN"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m := newMachine(t)
		before := dump(t, m.Machine)
		if err := m.Restore(bytes.NewReader(in)); err != nil {
			if after := dump(t, m.Machine); after != before {
				t.Fatalf("refused, but the state changed:\n%s", after)
			}
			return
		}
		again := newMachine(t)
		if err := again.Restore(bytes.NewReader(frozen(t, m.Machine))); err != nil {
			t.Fatal(err)
		}
		if got, want := dump(t, again.Machine), dump(t, m.Machine); got != want {
			t.Fatalf("written and read again:\n%s", firstDifference(got, want))
		}
	})
}
