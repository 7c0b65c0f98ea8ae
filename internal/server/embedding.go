package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/consensus"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/session"
	"github.com/zooraft/zooraft/internal/state"
	"github.com/zooraft/zooraft/internal/tree"
)

// ErrNoSession is returned when a session that is named does not exist.
var ErrNoSession = errors.New("server: there is no such session")

// Memory holds the data of a server without files; see consensus.Memory.
type Memory = consensus.Memory

// NewMemory returns an empty one.
func NewMemory() *Memory { return consensus.NewMemory() }

// Embedding is what only a server inside somebody's test is given. The zero
// value changes nothing.
type Embedding struct {
	// Memory keeps the data instead of files, and no admin channel is opened.
	Memory *Memory
	// Listener is the open client port; Stop closes it.
	Listener net.Listener
	// PeerListener and PeerDial are the network between the servers of an
	// ensemble; to is the other server's number.
	PeerListener net.Listener
	PeerDial     func(to int, address string, timeout time.Duration) (net.Conn, error)
	// FS is the file layer of the wal log, BoltSynced may hold up the bolt log,
	// Refuse may lose entries: see consensus.Config. nil leaves its defaults.
	FS         consensus.FS
	BoltSynced func() error
	Refuse     func() error
	// CommandLevel is the highest command level that the server supports; 0
	// leaves the build's own. It stands for a build of another version.
	CommandLevel byte
	// ElectionTimeout is consensus.Config's; 0 leaves its default.
	ElectionTimeout time.Duration
	// Intercept is asked about each request of an established session before
	// anything is done about it. It may block, which holds up the requests of
	// that connection only, until done is closed.
	Intercept func(r Request, done <-chan struct{}) Verdict
	// Connected lists the sessions whose clients are connected anywhere in the
	// ensemble. If it is set these count as heard at every tick, because real
	// clients ping by a real clock and the server's is not.
	Connected func() []proto.SessionID
}

// Request is what Intercept is asked about. Body may not be kept.
type Request struct {
	Session proto.SessionID
	Op      proto.OpCode
	Body    []byte
}

// Verdict is what becomes of a request; the zero value lets it pass.
type Verdict struct {
	// Err is answered without doing anything.
	Err proto.ErrCode
	// Drop closes the connection without doing anything.
	Drop bool
	// LoseReply does what is asked and closes the connection instead of
	// answering. For a request that is no write it is Drop.
	LoseReply bool
}

// adapt hands on what concerns consensus.
func (e *Embedding) adapt(c *consensus.Config) {
	if e.Memory != nil {
		c.LogStore, c.Memory, c.DataDir, c.LogDir = consensus.LogStoreMemory, e.Memory, "", ""
	}
	if e.ElectionTimeout > 0 {
		c.ElectionTimeout = e.ElectionTimeout
	}
	if e.FS != nil {
		c.FS = e.FS
	}
	c.BoltSynced, c.Refuse = e.BoltSynced, e.Refuse
	c.PeerListener = e.PeerListener
	if e.PeerDial != nil {
		c.PeerDial = func(to consensus.Peer, timeout time.Duration) (net.Conn, error) {
			return e.PeerDial(to.ID, to.Address, timeout)
		}
	}
}

// intercepted asks about a request. Handled tells that nothing more is to be
// done about it; then goOn is what handle returns.
func (c *conn) intercepted(h proto.RequestHeader, body []byte, now time.Duration) (handled, goOn, loseReply bool) {
	v := c.server.embedding.Intercept(Request{Session: c.SessionID(), Op: h.Type, Body: body}, c.server.stopped)
	switch {
	case v.Drop, v.LoseReply && !h.Type.IsWrite():
		c.close(reasonTest, "")
		return true, false, false
	case v.Err != proto.ErrOK:
		reply := proto.ReplyHeader{Xid: h.Xid, Zxid: c.server.state.Zxid(), Err: v.Err}
		return true, c.answerLocally(h, now, localReply{header: reply}), false
	}
	return false, false, v.LoseReply
}

// LeadingTerm is the Raft term in which this server leads and has applied all
// of the log, 0 if it does not. Of two servers that think they lead, the one
// with the later term does.
func (s *Server) LeadingTerm() uint64 {
	term := s.node.LeadingTerm()
	if !s.leading.Load() {
		return 0
	}
	return term
}

// Serving tells whether clients are served.
func (s *Server) Serving() bool { return s.serves() }

// LeaderID is the number of the server that leads, −1 if none is known here. A
// server alone has number 0 among its peers.
func (s *Server) LeaderID() int { return int(s.leaderID.Load()) }

// MoveLeader hands leadership to another server. Only the leader can.
func (s *Server) MoveLeader(to int) error { return s.node.TransferLeadershipTo(to) }

// Settle returns when what this server has proposed so far is applied here. It
// needs leadership.
func (s *Server) Settle(ctx context.Context) error { return s.node.Barrier(ctx) }

// Snapshot takes a snapshot now.
func (s *Server) Snapshot() error { return s.node.Snapshot() }

// DropConnection closes the connection that a session has to this server, as
// a broken network would, and tells whether there was one.
func (s *Server) DropConnection(id proto.SessionID) bool {
	found := false
	for _, c := range s.conns.all() {
		if c.SessionID() == id {
			found = true
			c.close(reasonTest, "")
		}
	}
	return found
}

// ExpireSession proposes to end a session as if its time were up.
func (s *Server) ExpireSession(id proto.SessionID) error {
	var row *session.Session
	s.state.View(func(v state.View) {
		if r := v.Table.Get(id); r != nil {
			found := *r
			row = &found
		}
	})
	if row == nil {
		return ErrNoSession
	}
	t := proto.Txn{
		TxnHeader: proto.TxnHeader{Session: id, Type: proto.OpExpireSession},
		Body:      state.ExpireBody(row.Generation),
	}
	return s.node.Propose(0, s.encode(&t))
}

// ConnectedSessions lists the sessions with a connection to this server.
func (s *Server) ConnectedSessions() []proto.SessionID {
	var ids []proto.SessionID
	for _, c := range s.conns.all() {
		if id := c.SessionID(); id != 0 && !c.Gone() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Dump is everything that a test may want to look at, at one moment of the
// log. Watches are those of this server's connections.
type Dump struct {
	Zxid     proto.Zxid
	Level    byte              // the command level
	Nodes    []DumpNode        // by path
	Sessions []session.Session // by id
	Watches  []admin.Watch     // by path, then session
}

// DumpNode is one znode.
type DumpNode struct {
	Path string
	Data []byte
	Stat proto.Stat
}

// Dump copies the state. Reserved nodes below /zookeeper are included.
func (s *Server) Dump() Dump {
	d := Dump{Watches: s.everyWatch()}
	s.state.View(func(v state.View) {
		d.Zxid, d.Level, d.Sessions = v.Zxid, s.state.CommandLevel(), v.Table.All()
		d.nodes(v.Tree, "/")
	})
	slices.SortFunc(d.Nodes, func(a, b DumpNode) int { return cmp.Compare(a.Path, b.Path) })
	return d
}

// nodes adds the node at path and all below it.
func (d *Dump) nodes(t *tree.Tree, path string) {
	all := tree.Reader{SkipACL: true}
	data, stat, err := t.Get(all, path)
	if err != proto.ErrOK {
		return
	}
	d.Nodes = append(d.Nodes, DumpNode{path, slices.Clone(data), stat})
	names, _, _ := t.Children(all, path)
	for name := range names.All() {
		d.nodes(t, strings.TrimSuffix(path, "/")+"/"+name)
	}
}
