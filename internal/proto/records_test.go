package proto

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// record is one kind of record: how a random value of it is written, and how
// it is read and written again.
type record struct {
	name  string
	write func(r *rand.Rand) []byte
	again func(d *Decoder) []byte
}

func randomString(r *rand.Rand) string {
	return []string{NullString, "", "/", "/a/b", "é日\U0001f600", "x\x00y", string(make([]byte, r.IntN(40)))}[r.IntN(7)]
}

func randomBuffer(r *rand.Rand) []byte {
	return [][]byte{nil, {}, {0}, make([]byte, r.IntN(100))}[r.IntN(4)]
}

func randomStrings(r *rand.Rand) []string {
	if r.IntN(5) == 0 {
		return nil
	}
	out := make([]string, r.IntN(4))
	for i := range out {
		out[i] = randomString(r)
	}
	return out
}

func randomACLs(r *rand.Rand) []ACL {
	if r.IntN(5) == 0 {
		return nil
	}
	out := make([]ACL, r.IntN(4))
	for i := range out {
		out[i] = ACL{Perms: int32(r.Uint32()), ID: ID{Scheme: randomString(r), ID: randomString(r)}}
	}
	return out
}

func randomStat(r *rand.Rand) Stat {
	return Stat{
		Czxid: Zxid(r.Uint64()), Mzxid: Zxid(r.Uint64()), Ctime: int64(r.Uint64()), Mtime: int64(r.Uint64()),
		Version: int32(r.Uint32()), CVersion: int32(r.Uint32()), AVersion: int32(r.Uint32()), EphemeralOwner: int64(r.Uint64()),
		DataLength: int32(r.Uint32()), NumChildren: int32(r.Uint32()), Pzxid: Zxid(r.Uint64()),
	}
}

func createRecord(op OpCode) record {
	return record{op.String(), func(r *rand.Rand) []byte {
		c := CreateRequest{Path: randomString(r), Data: randomBuffer(r), ACL: randomACLs(r), Flags: int32(r.Uint32()), TTL: int64(r.Uint64())}
		return c.Append(nil, op)
	}, func(d *Decoder) []byte { c := d.CreateRequest(op); return c.Append(nil, op) }}
}

func setWatchesRecord(two bool) record {
	return record{fmt.Sprint("SetWatches two ", two), func(r *rand.Rand) []byte {
		s := SetWatches{RelativeZxid: Zxid(r.Uint64()), Data: randomStrings(r), Exist: randomStrings(r), Child: randomStrings(r),
			Persistent: randomStrings(r), PersistentRecur: randomStrings(r)}
		return s.Append(nil, two)
	}, func(d *Decoder) []byte { s := d.SetWatches(two); return s.Append(nil, two) }}
}

var records = []record{
	{"Int", func(r *rand.Rand) []byte { return AppendInt(nil, int32(r.Uint32())) }, func(d *Decoder) []byte { return AppendInt(nil, d.Int()) }},
	{"Long", func(r *rand.Rand) []byte { return AppendLong(nil, int64(r.Uint64())) }, func(d *Decoder) []byte { return AppendLong(nil, d.Long()) }},
	{"Bool", func(r *rand.Rand) []byte { return AppendBool(nil, r.IntN(2) == 0) }, func(d *Decoder) []byte { return AppendBool(nil, d.Bool()) }},
	{"Buffer", func(r *rand.Rand) []byte { return AppendBuffer(nil, randomBuffer(r)) }, func(d *Decoder) []byte { return AppendBuffer(nil, d.Buffer()) }},
	{"String", func(r *rand.Rand) []byte { return AppendString(nil, randomString(r)) }, func(d *Decoder) []byte { return AppendString(nil, d.String()) }},
	{"Strings", func(r *rand.Rand) []byte { return AppendStrings(nil, randomStrings(r)) }, func(d *Decoder) []byte { return AppendStrings(nil, d.Strings()) }},
	{"ACLs", func(r *rand.Rand) []byte { return AppendACLs(nil, randomACLs(r)) }, func(d *Decoder) []byte { return AppendACLs(nil, d.ACLs()) }},
	{"Stat", func(r *rand.Rand) []byte { s := randomStat(r); return AppendStat(nil, &s) },
		func(d *Decoder) []byte { s := d.Stat(); return AppendStat(nil, &s) }},
	{"StatPersisted", func(r *rand.Rand) []byte {
		s := randomStat(r)
		p := StatPersisted{s.Czxid, s.Mzxid, s.Ctime, s.Mtime, s.Version, s.CVersion, s.AVersion, s.EphemeralOwner, s.Pzxid}
		return AppendStatPersisted(nil, &p)
	}, func(d *Decoder) []byte { s := d.StatPersisted(); return AppendStatPersisted(nil, &s) }},
	{"RequestHeader", func(r *rand.Rand) []byte { return AppendLong(nil, int64(r.Uint64())) },
		func(d *Decoder) []byte {
			h := d.RequestHeader()
			return AppendInt(AppendInt(nil, h.Xid), int32(h.Type))
		}},
	{"ReplyHeader", func(r *rand.Rand) []byte {
		return AppendReplyHeader(nil, ReplyHeader{int32(r.Uint32()), Zxid(r.Uint64()), ErrCode(r.Uint32())})
	}, func(d *Decoder) []byte { return AppendReplyHeader(nil, d.ReplyHeader()) }},
	{"AuthPacket", func(r *rand.Rand) []byte {
		p := AuthPacket{int32(r.Uint32()), randomString(r), randomBuffer(r)}
		return p.Append(nil)
	}, func(d *Decoder) []byte { p := d.AuthPacket(); return p.Append(nil) }},
	createRecord(OpCreate), createRecord(OpCreateTTL),
	{"PathVersion", func(r *rand.Rand) []byte { p := PathVersion{randomString(r), int32(r.Uint32())}; return p.Append(nil) },
		func(d *Decoder) []byte { p := d.PathVersion(); return p.Append(nil) }},
	{"SetDataRequest", func(r *rand.Rand) []byte {
		s := SetDataRequest{randomString(r), randomBuffer(r), int32(r.Uint32())}
		return s.Append(nil)
	}, func(d *Decoder) []byte { s := d.SetDataRequest(); return s.Append(nil) }},
	{"SetACLRequest", func(r *rand.Rand) []byte {
		s := SetACLRequest{randomString(r), randomACLs(r), int32(r.Uint32())}
		return s.Append(nil)
	}, func(d *Decoder) []byte { s := d.SetACLRequest(); return s.Append(nil) }},
	{"PathWatch", func(r *rand.Rand) []byte { p := PathWatch{randomString(r), r.IntN(2) == 0}; return p.Append(nil) },
		func(d *Decoder) []byte { p := d.PathWatch(); return p.Append(nil) }},
	{"PathType", func(r *rand.Rand) []byte { p := PathType{randomString(r), int32(r.Uint32())}; return p.Append(nil) },
		func(d *Decoder) []byte { p := d.PathType(); return p.Append(nil) }},
	{"ReconfigRequest", func(r *rand.Rand) []byte {
		q := ReconfigRequest{randomString(r), randomString(r), randomString(r), int64(r.Uint64())}
		return q.Append(nil)
	}, func(d *Decoder) []byte { q := d.ReconfigRequest(); return q.Append(nil) }},
	{"MultiHeader", func(r *rand.Rand) []byte {
		return AppendMultiHeader(nil, MultiHeader{OpCode(r.Uint32()), r.IntN(2) == 0, ErrCode(r.Uint32())})
	}, func(d *Decoder) []byte { return AppendMultiHeader(nil, d.MultiHeader()) }},
	{"WatcherEvent", func(r *rand.Rand) []byte {
		return AppendWatcherEvent(nil, WatcherEvent{EventType(r.Uint32()), int32(r.Uint32()), randomString(r)})
	}, func(d *Decoder) []byte { return AppendWatcherEvent(nil, d.WatcherEvent()) }},
	setWatchesRecord(false), setWatchesRecord(true),
	{"CreateSessionBody", func(r *rand.Rand) []byte {
		b := CreateSessionBody{int32(r.Uint32()), Zxid(r.Uint64()), randomBuffer(r)}
		return b.Append(nil)
	}, func(d *Decoder) []byte { b := d.CreateSessionBody(); return b.Append(nil) }},
}

func TestEveryRecordIsReadAsItIsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rec := range records {
		for range 300 {
			want := rec.write(r)
			d := NewDecoder(append(bytes.Clone(want), 0xaa))
			got := rec.again(d)
			if d.Err() != nil || !bytes.Equal(got, want) || len(d.Rest()) != 1 {
				t.Errorf("%s: %x became %x, %v, %d bytes left", rec.name, want, got, d.Err(), len(d.Rest())-1)
				break
			}
		}
	}
}

func TestARecordThatIsCutShortIsNoRecord(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, rec := range records {
		for range 30 {
			whole := rec.write(r)
			for n := range whole {
				d := NewDecoder(whole[:n])
				if rec.again(d); d.Err() != ErrTruncated {
					t.Fatalf("%s: %x of %x: error %v", rec.name, whole[:n], whole, d.Err())
				}
			}
		}
	}
}

// A length that a client made up reserves nothing.
func TestALengthBeyondTheInputReservesNothing(t *testing.T) {
	for _, n := range []int32{-2, -0x80000000, 1, 0x7fffffff, 0x00ffffff} {
		in := AppendInt(nil, n)
		for name, read := range map[string]func(d *Decoder){
			"Buffer": func(d *Decoder) { d.Buffer() }, "String": func(d *Decoder) { _ = d.String() },
			"Strings": func(d *Decoder) { d.Strings() }, "ACLs": func(d *Decoder) { d.ACLs() },
		} {
			d := NewDecoder(in)
			if got := testing.AllocsPerRun(10, func() { *d = Decoder{buf: in}; read(d) }); got > 0 {
				t.Errorf("%s of %d elements allocates %v times", name, n, got)
			}
			// A vector's negative count is an empty vector, as in ZooKeeper's reader.
			vector := name == "Strings" || name == "ACLs"
			if want := n > 0 || !vector; (d.Err() != nil) != want {
				t.Errorf("%s of %d elements: error %v", name, n, d.Err())
			}
		}
	}
}

func TestADecoderStaysWithItsFirstError(t *testing.T) {
	d := NewDecoder([]byte{0, 0, 0, 1})
	d.Long()
	if d.Err() != ErrTruncated || d.Int() != 0 || d.Bool() || d.Buffer() != nil || d.String() != "" || d.Strings() != nil || d.ACLs() != nil || d.Count(1) != 0 {
		t.Errorf("a decoder reads on after %v", d.Err())
	}
}

func TestNullAndEmptyAreDifferent(t *testing.T) {
	null, empty := []byte{0xff, 0xff, 0xff, 0xff}, []byte{0, 0, 0, 0}
	if NewDecoder(null).Buffer() != nil || NewDecoder(empty).Buffer() == nil {
		t.Error("buffer")
	}
	if NewDecoder(null).String() != NullString || NewDecoder(empty).String() != "" {
		t.Error("string")
	}
	if NewDecoder(null).Strings() != nil || NewDecoder(empty).Strings() == nil {
		t.Error("strings")
	}
	if NewDecoder(null).ACLs() != nil || NewDecoder(empty).ACLs() == nil {
		t.Error("acls")
	}
	for name, pair := range map[string][2][]byte{
		"buffer": {AppendBuffer(nil, nil), AppendBuffer(nil, []byte{})}, "string": {AppendString(nil, NullString), AppendString(nil, "")},
		"strings": {AppendStrings(nil, nil), AppendStrings(nil, []string{})}, "acls": {AppendACLs(nil, nil), AppendACLs(nil, []ACL{})},
	} {
		if !bytes.Equal(pair[0], null) || !bytes.Equal(pair[1], empty) {
			t.Errorf("%s: null is %x, empty %x", name, pair[0], pair[1])
		}
	}
	// What a client sends can never be taken for null.
	if got := NewDecoder([]byte{0, 0, 0, 1, 0xff}).String(); got == NullString {
		t.Error("the byte ff was read as null")
	}
}

func TestACommandIsReadAsItIsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		want := Txn{TxnHeader: TxnHeader{
			Session: SessionID(r.Uint64()), Cxid: int32(r.Uint32()), Type: OpCode(r.Uint32()),
			Origin: Origin{int32(r.Uint32()), r.Uint64()}, Seq: r.Uint64()}, Body: make([]byte, r.IntN(50))}
		for range r.IntN(4) {
			want.Identities = append(want.Identities, ID{randomString(r), randomString(r)})
		}
		got, err := DecodeTxn(want.Append(nil, CommandVersion), CommandVersion)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v became %+v, %v", want, got, err)
		}
	}
}
