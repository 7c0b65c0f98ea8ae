package session

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
)

var password = []byte("0123456789abcdef")

func TestASessionIsCreatedRenewedAndRemoved(t *testing.T) {
	table := NewTable()
	first, second := proto.Origin{Server: 1, Conn: 5}, proto.Origin{Server: 2, Conn: 6}
	s := table.Create(7, 4000, password, first)
	want := Session{ID: 7, TimeoutMillis: 4000, Password: password, Owner: first, Generation: 1}
	if s == nil || !reflect.DeepEqual(*s, want) {
		t.Fatalf("created %+v, want %+v", s, want)
	}
	if other := table.Create(7, 9000, nil, second); other != nil {
		t.Errorf("a taken id gave %+v", other)
	}
	if got := table.Get(7); got != s || table.Len() != 1 {
		t.Errorf("row %+v of %d", got, table.Len())
	}
	for _, step := range []struct {
		seq  uint64
		want bool
	}{{0, false}, {2, false}, {1, true}, {1, false}, {3, false}, {2, true}, {1 << 63, false}} {
		if got := table.Advance(7, step.seq); got != step.want {
			t.Errorf("number %d after %d: %t", step.seq, s.LastSeq, got)
		}
	}
	s = table.Renew(7, 6000, second)
	want = Session{ID: 7, TimeoutMillis: 6000, Password: password, Owner: second, Generation: 2}
	if !reflect.DeepEqual(*s, want) {
		t.Errorf("renewed %+v, want %+v", *s, want)
	}
	if !table.Advance(7, 1) {
		t.Error("the new owner's first number was refused")
	}
	table.Remove(7)
	table.Remove(8) // never there
	if table.Len() != 0 || table.Get(7) != nil {
		t.Errorf("%d rows after the removal", table.Len())
	}
}

func TestAPasswordMatchesOnlyAsAWhole(t *testing.T) {
	s := Session{Password: password}
	other := bytes.Clone(password)
	other[0] ^= 1
	for _, c := range []struct {
		name string
		with []byte
		want bool
	}{
		{"itself", password, true},
		{"a copy", bytes.Clone(password), true},
		{"another first byte", other, false},
		{"a prefix", password[:15], false},
		{"itself and more", append(bytes.Clone(password), 0), false},
		{"empty", []byte{}, false},
		{"null", nil, false},
	} {
		if got := s.PasswordMatches(c.with); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestTheTableKeepsItsOwnCopyOfAPassword(t *testing.T) {
	table := NewTable()
	p := bytes.Clone(password)
	s := table.Create(1, 1, p, proto.Origin{})
	p[3] ^= 0xff
	if !s.PasswordMatches(password) {
		t.Error("the caller's buffer is the row's password")
	}
	d := proto.NewDecoder(s.Append(nil))
	encoded := d.Rest()
	row := Decode(d)
	clear(encoded)
	if !row.PasswordMatches(password) {
		t.Error("the decoder's buffer is the row's password")
	}
}

func TestRowsComeInTheOrderOfTheirIDs(t *testing.T) {
	table := NewTable()
	for _, id := range []proto.SessionID{5, -1, 3, 1 << 60, -1 << 60, 0} {
		table.Create(id, 1, nil, proto.Origin{})
	}
	all := table.All()
	for i := 1; i < len(all); i++ {
		if all[i-1].ID >= all[i].ID {
			t.Errorf("%v before %v", all[i-1].ID, all[i].ID)
		}
	}
	all[0].Generation = 99
	if table.Get(all[0].ID).Generation == 99 {
		t.Error("All gave the row itself")
	}
}

// A snapshot is written from frozen rows while sessions come, write and go on.
// The table does what a plain map does, and each view stays as it was.
func TestFrozenRowsStayAsTheyWereWhileTheTableIsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	table, twin := NewTable(), map[proto.SessionID]Session{}
	type view struct {
		rows []*Session
		want map[proto.SessionID]Session
	}
	var views []view
	for i := range 5000 {
		id := proto.SessionID(r.IntN(50))
		one, there := twin[id]
		switch op := r.IntN(20); {
		case op == 0:
			table.Remove(id)
			delete(twin, id)
		case op == 1 && i%10 == 0:
			views = append(views, view{table.Freeze(), maps.Clone(twin)})
		case !there:
			twin[id] = *table.Create(id, int32(i), password, proto.Origin{Conn: uint64(i)})
		case op < 4:
			owner := proto.Origin{Conn: uint64(i)}
			table.Renew(id, int32(i), owner)
			twin[id] = Session{ID: id, TimeoutMillis: int32(i), Password: one.Password, Owner: owner, Generation: one.Generation + 1}
		case !table.Advance(id, one.LastSeq+1):
			t.Fatalf("number %d of %v is refused", one.LastSeq+1, id)
		default:
			one.LastSeq++
			twin[id] = one
		}
		if got := table.Get(id); (got != nil) != (twin[id].ID == id && twin[id].Generation > 0) || got != nil && !reflect.DeepEqual(*got, twin[id]) {
			t.Fatalf("after step %d row %v is %+v, want %+v", i, id, got, twin[id])
		}
	}
	views = append(views, view{table.Freeze(), twin})
	if len(views) < 10 {
		t.Fatalf("only %d views", len(views))
	}
	for i, v := range views {
		got := map[proto.SessionID]Session{}
		for _, row := range v.rows {
			got[row.ID] = *row
		}
		if len(v.rows) != len(v.want) || !reflect.DeepEqual(got, v.want) {
			t.Errorf("view %d has %d rows %+v, want %+v", i, len(v.rows), got, v.want)
		}
	}
}

func randomSession(r *rand.Rand) Session {
	s := Session{
		ID: proto.SessionID(r.Uint64()), TimeoutMillis: int32(r.Uint32()), Owner: proto.Origin{Server: int32(r.Uint32()), Conn: r.Uint64()},
		Generation: r.Uint64(), LastSeq: r.Uint64(),
	}
	if n := r.IntN(20); n > 0 {
		s.Password = make([]byte, n-1)
		for i := range s.Password {
			s.Password[i] = byte(r.Uint32())
		}
	}
	return s
}

func TestARowIsTheSameAfterItsEncodingIsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		s := randomSession(r)
		d := proto.NewDecoder(s.Append([]byte("before"))[6:])
		got := Decode(d)
		if d.Err() != nil || len(d.Rest()) != 0 || got.Password == nil != (s.Password == nil) || !reflect.DeepEqual(got, s) {
			t.Fatalf("read %+v, written %+v, error %v, %d bytes left", got, s, d.Err(), len(d.Rest()))
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := Session{ID: 1, Password: password}
	f.Add(s.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		d := proto.NewDecoder(in)
		s := Decode(d)
		if d.Err() != nil {
			return
		}
		if out := s.Append(nil); !bytes.Equal(out, in[:len(in)-len(d.Rest())]) {
			t.Fatalf("%x became %+v and then %x", in, s, out)
		}
	})
}

// checkHash compares the hash that a table keeps with that of the same rows.
func checkHash(t *testing.T, table *Table) {
	t.Helper()
	fresh := NewTable()
	for _, s := range table.Rows() {
		fresh.Restore(s)
	}
	if fresh.Hash() != table.Hash() {
		t.Fatalf("the table keeps hash %x, its rows have %x", table.Hash(), fresh.Hash())
	}
}

func TestTheHashIsKeptThroughEveryChange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	table := NewTable()
	for step := range 3000 {
		id := proto.SessionID(r.IntN(20))
		switch row := table.Get(id); {
		case row == nil:
			table.Create(id, int32(step), password, proto.Origin{Server: 1, Conn: r.Uint64()})
		case r.IntN(10) == 0:
			table.Remove(id)
		case r.IntN(5) == 0:
			table.Renew(id, int32(step), proto.Origin{Server: 2, Conn: r.Uint64()})
		case r.IntN(20) == 0:
			table.Freeze()
		case r.IntN(20) == 0:
			table.Restore(Session{ID: id, Password: password, LastSeq: r.Uint64()})
		default:
			table.Advance(id, row.LastSeq+uint64(r.IntN(2)))
		}
		checkHash(t, table)
	}
}

// Replicas compare the hash: it must not depend on the order of events, and
// must see every field.
func TestTheHashSeesEveryFieldAndNoOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	rows := make([]Session, 100)
	table := NewTable()
	for i := range rows {
		rows[i] = randomSession(r)
		table.Restore(rows[i])
	}
	want := table.Hash()
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	other := NewTable()
	other.Create(1, 1, nil, proto.Origin{})
	for _, s := range rows {
		other.Restore(s)
	}
	if other.Hash() == want {
		t.Error("one row more has the same hash")
	}
	other.Remove(1)
	if got := other.Hash(); got != want {
		t.Errorf("in another order %x, want %x", got, want)
	}
	id := rows[0].ID
	for _, c := range []struct {
		field  string
		change func(s *Session)
	}{
		{"timeout", func(s *Session) { s.TimeoutMillis++ }},
		{"password", func(s *Session) { s.Password = append(bytes.Clone(s.Password), 1) }},
		{"owner's server", func(s *Session) { s.Owner.Server++ }},
		{"owner's connection", func(s *Session) { s.Owner.Conn++ }},
		{"generation", func(s *Session) { s.Generation++ }},
		{"last number", func(s *Session) { s.LastSeq++ }},
	} {
		s := rows[0]
		c.change(&s)
		other.Restore(s)
		if other.Hash() == want {
			t.Errorf("another %s has the same hash", c.field)
		}
		other.Restore(rows[0])
	}
	checkHash(t, other)
	other.Remove(id)
	if NewTable().Hash() != 0 || other.Hash() == want {
		t.Errorf("hash of an empty table %x", NewTable().Hash())
	}
}
