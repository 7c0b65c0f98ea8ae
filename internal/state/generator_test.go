package state

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/tree"
)

// stamped is one command of a random history, with what its entry says.
type stamped struct {
	term     uint64
	now      int64
	switches uint32
	command  []byte
	reads    []question // asked once the command has been applied
}

// question is one read of a random history, by a connection.
type question struct {
	conn uint64
	op   proto.OpCode
	body []byte
}

// generator makes random commands, with an eye on a machine that has applied
// all those before: without it nearly all would fail in the same way.
type generator struct {
	*rand.Rand
	m        *machine
	clients  []*client // newest connection of each session, and some older ones
	nextID   proto.SessionID
	nextConn uint64
	at       stamped
}

func newGenerator(seed uint64, m *machine) *generator {
	return &generator{
		Rand: rand.New(rand.NewPCG(seed, 1)), m: m, nextID: 100, nextConn: 1,
		at: stamped{term: 1, now: 1_700_000_000_000},
	}
}

// among returns one of the choices.
func among[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// next makes a command with its stamp.
func (g *generator) next() stamped {
	if g.IntN(40) == 0 {
		g.at.term += 1 + g.Uint64N(3)
	}
	if g.IntN(10) == 0 {
		g.at.switches = g.Uint32N(1<<7) | among(g, proto.SwitchEnforceQuota, proto.SwitchExtendedTypes)
		if g.IntN(3) != 0 {
			g.at.switches &^= proto.SwitchSkipACL
		}
	}
	// Leader time stands, runs, and after an election may step back.
	if g.IntN(5) == 0 {
		g.at.now += among(g, int64(1), 7, 5000, -300)
	}
	s := g.at
	s.command = g.command()
	if g.IntN(3) != 0 {
		return s
	}
	for range 1 + g.IntN(3) {
		if len(g.clients) > 0 {
			c := among(g, g.clients...)
			op, body := g.read()
			s.reads = append(s.reads, question{c.origin.Conn, op, body})
		}
	}
	return s
}

func (g *generator) command() []byte {
	n := g.IntN(100)
	switch {
	case len(g.clients) == 0 || n < 6:
		c := newClient(g.nextID, g.nextConn)
		c.ids = g.identities()
		g.nextID, g.nextConn = g.nextID+1, g.nextConn+1
		if g.IntN(8) == 0 { // the id is taken
			c.session = 100 + proto.SessionID(g.IntN(int(g.nextID-100)))
		}
		g.clients = append(g.clients, c)
		return c.connect(proto.OpCreateSession, g.seen())
	case n < 12:
		return g.renewal()
	case n < 14:
		row := g.row()
		generation := row.Generation
		if g.IntN(3) == 0 {
			generation += among[uint64](g, 1, ^uint64(0))
		}
		return expire(row.ID, generation)
	case n < 18:
		return own(proto.OpDeleteContainer, 0, tree.AppendReap(nil, g.reap()))
	}
	c := g.client()
	op, body := g.write()
	if g.IntN(12) == 0 {
		body = g.damaged(body)
	}
	if g.IntN(15) == 0 {
		return c.numbered(g.Uint64N(c.seq+3), op, body)
	}
	return c.command(op, body)
}

// client returns one that may speak, and now and then any.
func (g *generator) client() *client {
	var owners []*client
	for _, c := range g.clients {
		if row := g.m.table.Get(c.session); row != nil && row.Owner == c.origin {
			owners = append(owners, c)
		}
	}
	if len(owners) == 0 || g.IntN(12) == 0 {
		return among(g, g.clients...)
	}
	c := among(g, owners...)
	if row := g.m.table.Get(c.session); c.seq != row.LastSeq && g.IntN(3) == 0 {
		c.seq = row.LastSeq // a true client would have been disconnected
	}
	return c
}

// renewal moves a session to a new connection, or tries to.
func (g *generator) renewal() []byte {
	c := among(g, g.clients...)
	n := c.on(g.nextConn)
	n.ids = g.identities()
	g.nextConn++
	if g.IntN(4) == 0 {
		n.password = slices.Clone(n.password)
		n.password[g.IntN(16)] ^= 4
	}
	g.clients = append(g.clients, n)
	if len(g.clients) > 12 {
		g.clients = slices.Delete(g.clients, 0, 1)
	}
	return n.connect(proto.OpRenewSession, g.seen())
}

// seen is what a connecting client says that it has seen; rarely too much.
func (g *generator) seen() proto.Zxid {
	if g.IntN(10) == 0 {
		return g.m.Zxid() + 1 + proto.Zxid(g.IntN(3))
	}
	return g.m.Zxid() - proto.Zxid(g.IntN(3))
}

func (g *generator) row() session.Session {
	rows := g.m.table.All()
	if len(rows) == 0 || g.IntN(10) == 0 {
		return session.Session{ID: proto.SessionID(g.IntN(200)), Generation: 1}
	}
	return among(g, rows...)
}

func (g *generator) reap() tree.Reap {
	due := g.m.tree.Reapable(g.at.now+1_000_000, 1, 100)
	if len(due) == 0 || g.IntN(5) == 0 {
		return tree.Reap{Path: g.path(), Czxid: g.m.Zxid() - proto.Zxid(g.IntN(50))}
	}
	// Which are found first is up to the map: they are put in order.
	slices.SortFunc(due, func(a, b tree.Reap) int { return int(a.Czxid - b.Czxid) })
	r := among(g, due...)
	if g.IntN(4) == 0 {
		r.Mzxid--
	}
	return r
}

func (g *generator) identities() []proto.ID {
	return among(g, anyone, anyone, nil,
		append(slices.Clone(anyone), proto.ID{Scheme: "digest", ID: "u:hash"}),
		append(slices.Clone(anyone), proto.ID{Scheme: "super"}))
}

func (g *generator) path() string {
	switch g.IntN(25) {
	case 0:
		return among(g, "", "/", "a", "/a/", "//", "/a//b", "/..", "/a\x00b", "/\U0001f600", proto.NullString,
			"/zookeeper", "/zookeeper/config", "/zookeeper/quota")
	case 1, 2, 3:
		return among(g, "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats",
			"/zookeeper/quota/a/b", "/zookeeper/quota/a/b/zookeeper_limits", "/zookeeper/quota/a/b/zookeeper_stats")
	}
	p := "/" + among(g, "a", "a", "b", "é")
	for range g.IntN(3) {
		p += "/" + among(g, "a", "b", "c-")
	}
	return p
}

func (g *generator) data() []byte {
	return among(g, nil, []byte{}, []byte("x"), make([]byte, g.IntN(80)),
		fmt.Appendf(nil, "count=%d,bytes=%d", g.IntN(6)-1, g.IntN(200)-1),
		fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", g.IntN(200), g.IntN(6)))
}

func (g *generator) acl() []proto.ACL {
	if g.IntN(3) != 0 {
		return proto.OpenACL
	}
	return among(g, proto.OpenACL, nil, []proto.ACL{},
		[]proto.ACL{{Perms: g.Int32N(32), ID: proto.ID{Scheme: "world", ID: "anyone"}}},
		[]proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "auth"}}},
		[]proto.ACL{{Perms: g.Int32N(32), ID: proto.ID{Scheme: "digest", ID: "u:hash"}}, {Perms: 1, ID: proto.ID{Scheme: "ip", ID: "127.0.0.0/8"}}},
		[]proto.ACL{{Perms: 31, ID: proto.ID{Scheme: among(g, "x509", "sasl", "none", proto.NullString), ID: "CN=u"}}})
}

func (g *generator) version() int32 {
	return among(g, int32(-1), -1, -1, 0, 1, 2, -2)
}

func (g *generator) createRequest() proto.CreateRequest {
	return proto.CreateRequest{Path: g.path(), Data: g.data(), ACL: g.acl(), Flags: among(g, int32(0), 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, -1),
		TTL: among(g, int64(-1), 0, 1, 5000, proto.MaxTTLMillis, proto.MaxTTLMillis+1)}
}

// write makes the body of a random write.
func (g *generator) write() (proto.OpCode, []byte) {
	switch g.IntN(17) {
	case 14, 15:
		return g.quota()
	case 16:
		r := proto.CreateRequest{Path: g.path(), Data: g.data(), ACL: proto.OpenACL, Flags: among(g, proto.CreatePersistentTTL, proto.CreatePersistentSequentialTTL), TTL: 1 + g.Int64N(9999)}
		return proto.OpCreateTTL, r.Append(nil, proto.OpCreateTTL)
	case 0, 1, 2, 3:
		op := among(g, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL)
		r := g.createRequest()
		return op, r.Append(nil, op)
	case 4, 5:
		r := proto.PathVersion{Path: g.path(), Version: g.version()}
		return proto.OpDelete, r.Append(nil)
	case 6, 7:
		r := proto.SetDataRequest{Path: g.path(), Data: g.data(), Version: g.version()}
		return proto.OpSetData, r.Append(nil)
	case 8:
		r := proto.SetACLRequest{Path: g.path(), ACL: g.acl(), Version: g.version()}
		return proto.OpSetACL, r.Append(nil)
	case 9:
		return proto.OpSync, proto.AppendString(nil, g.path())
	case 10:
		if g.IntN(8) == 0 {
			return proto.OpCloseSession, nil
		}
		r := proto.ReconfigRequest{Joining: g.path(), Leaving: "1", NewMembers: proto.NullString, CurConfigID: -1}
		return among(g, proto.OpReconfig, proto.OpCheck, proto.OpCode(g.IntN(130)-20)), r.Append(nil)
	}
	return proto.OpMulti, proto.AppendMulti(nil, g.multi())
}

// quota makes a node of a quota on /a, or sets it.
func (g *generator) quota() (proto.OpCode, []byte) {
	path := "/zookeeper/quota/a" + among(g, "", "", "/zookeeper_limits", "/zookeeper_limits", "/zookeeper_stats")
	r := proto.CreateRequest{Path: path, Data: fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", g.IntN(200)-1, g.IntN(9)),
		ACL: proto.OpenACL, TTL: -1}
	if g.IntN(5) == 0 {
		set := proto.SetDataRequest{Path: path, Data: r.Data, Version: -1}
		return proto.OpSetData, set.Append(nil)
	}
	return proto.OpCreate, r.Append(nil, proto.OpCreate)
}

func (g *generator) multi() []proto.MultiOp {
	ops := make([]proto.MultiOp, g.IntN(5))
	for i := range ops {
		op := &ops[i]
		op.Type = among(g, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete,
			proto.OpSetData, proto.OpSetData, proto.OpCheck)
		if g.IntN(40) == 0 {
			op.Type = proto.OpGetData
		}
		op.Create = g.createRequest()
		if op.Type != proto.OpCreateTTL && g.IntN(8) != 0 {
			op.Create.Flags = g.Int32N(5)
		}
		op.Version = proto.PathVersion{Path: g.path(), Version: g.version()}
		op.Data = proto.SetDataRequest{Path: g.path(), Data: g.data(), Version: g.version()}
		op.Read = proto.PathWatch{Path: g.path()}
	}
	return ops
}

// damaged makes a body that no good client sends.
func (g *generator) damaged(body []byte) []byte {
	switch g.IntN(3) {
	case 0:
		return body[:g.IntN(len(body)+1)]
	case 1:
		b := make([]byte, g.IntN(60))
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		return b
	}
	b := slices.Clone(body)
	if len(b) > 0 {
		b[g.IntN(len(b))] ^= 1 << g.IntN(8)
	}
	return b
}

// read makes a random request that needs no log.
func (g *generator) read() (proto.OpCode, []byte) {
	op := among(g, proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2, proto.OpGetACL,
		proto.OpGetAllChildrenNumber, proto.OpGetEphemerals, proto.OpWhoAmI, proto.OpMultiRead, proto.OpSetWatches,
		proto.OpSetWatches2, proto.OpAddWatch, proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpPing)
	var body []byte
	switch op {
	case proto.OpMultiRead:
		body = proto.AppendMulti(nil, []proto.MultiOp{
			{Type: proto.OpGetData, Read: proto.PathWatch{Path: g.path(), Watch: g.IntN(2) == 0}},
			{Type: among(g, proto.OpGetChildren, proto.OpGetData), Read: proto.PathWatch{Path: g.path()}}})
	case proto.OpSetWatches, proto.OpSetWatches2:
		r := proto.SetWatches{RelativeZxid: g.seen(), Data: []string{g.path()}, Exist: []string{g.path()}, Child: []string{g.path()},
			Persistent: []string{g.path()}, PersistentRecur: []string{g.path()}}
		body = r.Append(nil, op == proto.OpSetWatches2)
	case proto.OpAddWatch, proto.OpCheckWatches, proto.OpRemoveWatches:
		r := proto.PathType{Path: g.path(), Type: g.Int32N(7)}
		body = r.Append(nil)
	default:
		body = watchBody(g.path(), g.IntN(2) == 0)
	}
	if g.IntN(20) == 0 {
		body = g.damaged(body)
	}
	return op, body
}
