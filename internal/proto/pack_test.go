package proto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"
)

// packable returns commands of every shape that the packed form has a field for.
func packable() map[string]Txn {
	header := func(op OpCode, ids ...ID) TxnHeader {
		return TxnHeader{Session: 0x0100_0192_1234_0001, Cxid: 20_000, Type: op,
			Origin: Origin{Server: 1, Conn: 0xfedc_ba98_7654_3210}, Seq: 19_990, Identities: ids}
	}
	local := ID{"ip", "127.0.0.1"}
	set := (&SetDataRequest{Path: "/app/node", Data: []byte("some data"), Version: -1}).Append(nil)
	create := func(acl []ACL, op OpCode) []byte {
		return (&CreateRequest{Path: "/app/node", Data: []byte("some data"), ACL: acl, Flags: CreateEphemeralSequential, TTL: 5}).Append(nil, op)
	}
	remove := (&PathVersion{Path: "/app/node", Version: 7}).Append(nil)
	far := header(OpSetData, local)
	far.Origin.Server = 300
	wide := header(OpSetData, local)
	wide.Cxid, wide.Seq, wide.Type = math.MinInt32, SeqLocal, math.MinInt32
	return map[string]Txn{
		"setData":                           {header(OpSetData, local), set},
		"create":                            {header(OpCreate, local), create(OpenACL, OpCreate)},
		"create2":                           {header(OpCreate2, local), create(OpenACL, OpCreate2)},
		"create with another ACL":           {header(OpCreate, local), create([]ACL{{PermRead, OpenACL[0].ID}}, OpCreate)},
		"createTTL":                         {header(OpCreateTTL, local), create(OpenACL, OpCreateTTL)},
		"delete":                            {header(OpDelete, local), remove},
		"check":                             {header(OpCheck, local), remove},
		"closeSession":                      {header(OpCloseSession, local), nil},
		"setData without data":              {header(OpSetData, local), (&SetDataRequest{Path: "/a", Data: []byte{}}).Append(nil)},
		"setData of null":                   {header(OpSetData, local), (&SetDataRequest{Path: "/a"}).Append(nil)},
		"setData of a null path":            {header(OpSetData, local), (&SetDataRequest{Path: NullString, Data: []byte{1}}).Append(nil)},
		"setData with bytes behind it":      {header(OpSetData, local), append(bytes.Clone(set), 0)},
		"setData cut short":                 {header(OpSetData, local), set[:len(set)-1]},
		"a renewed session's connection":    {far, set},
		"numbers at the end of their range": {wide, set},
		"a command of the server itself":    {TxnHeader{Type: OpExpireSession, Session: 5}, nil},
		"two identities":                    {header(OpSetData, local, ID{"digest", "bob:secret"}), set},
		"an IPv6 address":                   {header(OpSetData, ID{"ip", "0:0:0:0:0:0:0:1"}), set},
		"an address written otherwise":      {header(OpSetData, ID{"ip", "127.0.0.01"}), set},
		"no address":                        {header(OpSetData, ID{"ip", "127.0.0"}), set},
		"an address of another scheme":      {header(OpSetData, ID{"host", "127.0.0.1"}), set},
		"an empty identity":                 {header(OpSetData, ID{}), set},
	}
}

// requireUnpacks packs and unpacks behind bytes that are there already.
func requireUnpacks(t *testing.T, command []byte) []byte {
	t.Helper()
	b := PackCommand([]byte("before"), command)
	got, err := UnpackCommand([]byte("first"), b[len("before"):])
	if err != nil || string(b[:6]) != "before" || !bytes.Equal(got, append([]byte("first"), command...)) {
		t.Fatalf("%x was packed as %x and came back as %x, %v", command, b, got, err)
	}
	return b[len("before"):]
}

func TestAPackedCommandUnpacksToTheSameBytes(t *testing.T) {
	for name, txn := range packable() {
		t.Run(name, func(t *testing.T) {
			whole := txn.Append(nil, CommandVersion)
			if b := requireUnpacks(t, whole); len(b) > len(whole)-10 {
				t.Errorf("%d bytes were packed in %d", len(whole), len(b))
			}
			for n := range whole {
				requireUnpacks(t, whole[:n])
			}
			newer := bytes.Clone(whole)
			newer[0] = 2
			requireUnpacks(t, newer)
		})
	}
}

// The form stands on disks: another one needs another bit in the head.
func TestThePackedFormStaysAsItIs(t *testing.T) {
	txns := packable()
	for name, want := range map[string]string{
		"setData":                        "0f0a0100019212340001a09c0113fedcba98765432107f000001092f6170702f6e6f646501736f6d652064617461",
		"create":                         "0f020100019212340001a09c0113fedcba98765432107f000001092f6170702f6e6f646506736f6d652064617461",
		"delete":                         "0f040100019212340001a09c0113fedcba98765432107f0000010e2f6170702f6e6f6465",
		"a command of the server itself": "05d30f00000000000000050000000000000000000000",
		"a renewed session's connection": "0b0a0100019212340001a09c0113ac02fedcba98765432107f000001092f6170702f6e6f646501736f6d652064617461",
		"two identities":                 "070a0100019212340001a09c0113fedcba987654321002026970093132372e302e302e31066469676573740a626f623a736563726574092f6170702f6e6f646501736f6d652064617461",
	} {
		txn := txns[name]
		if got := hex.EncodeToString(PackCommand(nil, txn.Append(nil, 1))); got != want {
			t.Errorf("%s is packed as\n%s, want\n%s", name, got, want)
		}
	}
}

func TestBytesThatNobodyPackedAreRefused(t *testing.T) {
	for name, txn := range packable() {
		b := PackCommand(nil, txn.Append(nil, CommandVersion))
		for n := range b[:20] {
			if _, err := UnpackCommand(nil, b[:n]); !errors.Is(err, ErrPacked) {
				t.Errorf("%s cut to %d bytes: %v", name, n, err)
			}
		}
		for _, head := range []byte{2, 16 | packed, 128 | packed} {
			b[0] = head
			if _, err := UnpackCommand(nil, b); !errors.Is(err, ErrPacked) {
				t.Errorf("%s with head %d: %v", name, head, err)
			}
		}
	}
}

func FuzzPackCommand(f *testing.F) {
	for _, txn := range packable() {
		f.Add(txn.Append(nil, CommandVersion))
	}
	f.Fuzz(func(t *testing.T, command []byte) { requireUnpacks(t, command) })
}

func FuzzUnpackCommand(f *testing.F) {
	for _, txn := range packable() {
		f.Add(PackCommand(nil, txn.Append(nil, CommandVersion)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		command, err := UnpackCommand(nil, b)
		if err != nil {
			return
		}
		if len(command) > 5*len(b)+100 {
			t.Fatalf("%d bytes became %d", len(b), len(command))
		}
		requireUnpacks(t, command)
	})
}

func BenchmarkPackCommand(b *testing.B) {
	txn := packable()["setData"]
	command := txn.Append(nil, CommandVersion)
	buffer := make([]byte, 0, 2*len(command))
	b.ReportAllocs()
	for b.Loop() {
		buffer = PackCommand(buffer[:0], command)
	}
}
