package proto

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// FuzzRecords reads any bytes as each kind of record. What could be read is
// written and read again: the two are the same.
func FuzzRecords(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i, rec := range records {
		f.Add(uint8(i), rec.write(r))
		f.Add(uint8(i), rec.write(r))
	}
	f.Fuzz(func(t *testing.T, kind uint8, in []byte) {
		rec := records[int(kind)%len(records)]
		d := NewDecoder(in)
		first := rec.again(d)
		if d.Err() != nil {
			return
		}
		d = NewDecoder(first)
		second := rec.again(d)
		if d.Err() != nil || !bytes.Equal(first, second) || len(d.Rest()) > 0 {
			t.Fatalf("%s: %x became %x and then %x, %v", rec.name, in, first, second, d.Err())
		}
	})
}

func FuzzDecodeMulti(f *testing.F) {
	f.Add(multiOf())
	f.Add(multiOf(creation(OpCreate, 0, 0, OpenACL), creation(OpCreateTTL, CreatePersistentTTL, 5, OpenACL), part(OpDelete, make([]byte, 8))))
	f.Add(multiOf(part(OpGetData, make([]byte, 5))))
	f.Fuzz(func(t *testing.T, in []byte) {
		ops, err := DecodeMulti(in)
		if err != nil {
			return
		}
		for i := range ops {
			// A createTTL whose flag is none became a create, for the tree to
			// refuse; as a create it is refused by the decoder.
			c := &ops[i]
			created := c.Type == OpCreate || c.Type == OpCreateContainer
			if created && (c.Create.Flags < 0 || c.Create.Flags > CreateContainer || c.Create.ACL == nil) {
				return
			}
		}
		again, err := DecodeMulti(AppendMulti(nil, ops))
		if err != nil || !reflect.DeepEqual(again, ops) {
			t.Fatalf("%x became %+v and then %+v, %v", in, ops, again, err)
		}
	})
}

func FuzzDecodeConnect(f *testing.F) {
	f.Add((&ConnectRequest{Password: make([]byte, 16), HasReadOnly: true}).Append(nil))
	f.Add((&ConnectResponse{Password: make([]byte, 16)}).Append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		if r, err := DecodeConnectRequest(in); err == nil {
			again, err := DecodeConnectRequest(r.Append(nil))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("%x became %+v and then %+v, %v", in, r, again, err)
			}
		}
		if r, err := DecodeConnectResponse(in); err == nil {
			again, err := DecodeConnectResponse(r.Append(nil))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("%x became %+v and then %+v, %v", in, r, again, err)
			}
		}
	})
}

func FuzzDecodeTxn(f *testing.F) {
	f.Add((&Txn{TxnHeader: TxnHeader{Identities: []ID{{"ip", "::1"}}}, Body: []byte("body")}).Append(nil, CommandVersion))
	f.Add([]byte{})
	f.Add([]byte{CommandVersion + 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		txn, err := DecodeTxn(in, CommandVersion)
		if err != nil {
			return
		}
		again, err := DecodeTxn(txn.Append(nil, CommandVersion), CommandVersion)
		if err != nil || !reflect.DeepEqual(again, txn) {
			t.Fatalf("%x became %+v and then %+v, %v", in, txn, again, err)
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 9}, 10)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff}, 1<<30)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		got, err := ReadFrame(bytes.NewReader(in), nil, limit)
		if cap(got) > 2*growBytes && cap(got) > 4*len(in) {
			t.Fatalf("%d bytes set aside for an input of %d", cap(got), len(in))
		}
		if err == nil && !bytes.Equal(in[4:4+len(got)], got) {
			t.Fatalf("%x gave %x", in, got)
		}
	})
}

// FuzzText decodes any bytes as text: the result is valid and stays as it is,
// and a path has a parent that is one.
func FuzzText(f *testing.F) {
	f.Add([]byte("/a\xed\xa0\x80b\xf0\x9f"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := DecodeText(in)
		if again := DecodeText([]byte(s)); again != s || s == NullString || len(s) > 3*len(in) {
			t.Fatalf("%x became %q and then %q", in, s, again)
		}
		parent, name, ok := SplitPath(s)
		if ValidPath(s) && s != PathRoot && (!ok || name == "" || !ValidPath(parent)) {
			t.Fatalf("%q was split into %q and %q, %v", s, parent, name, ok)
		}
	})
}
