package zktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/server"
)

// State is what a server holds at one moment.
type State struct {
	Zxid     int64
	Nodes    []Node    // by path; those below /zookeeper too
	Sessions []Session // by id; of the whole ensemble
	Watches  []Watch   // by path and session; of this server's clients
}

// Node is one znode.
type Node struct {
	Path           string
	Data           []byte
	Version        int32
	Children       int
	EphemeralOwner int64 // the session's id, 0 for none
	Czxid, Mzxid   int64
}

// Session is one session.
type Session struct {
	ID        int64
	Timeout   time.Duration
	Connected bool // to the server that was asked
}

// Watch is one watch of one session.
type Watch struct {
	Path    string
	Session int64
	// Kind is "data" or "children" for one that fires once, "persistent" or
	// "recursive" for one that stays. A persistent one on children is listed
	// beside that on data, as ZooKeeper keeps both.
	Kind string
}

// State returns what the server holds. It fails only when the server is down.
func (s *Server) State() (State, error) {
	running, err := s.up()
	if err != nil {
		return State{}, err
	}
	return stateOf(running), nil
}

func stateOf(running *server.Server) State {
	d := running.Dump()
	connected := map[int64]bool{}
	for _, id := range running.ConnectedSessions() {
		connected[int64(id)] = true
	}
	st := State{Zxid: int64(d.Zxid)}
	for _, n := range d.Nodes {
		st.Nodes = append(st.Nodes, Node{
			Path: n.Path, Data: n.Data, Version: n.Stat.Version, Children: int(n.Stat.NumChildren),
			EphemeralOwner: n.Stat.EphemeralOwner, Czxid: int64(n.Stat.Czxid), Mzxid: int64(n.Stat.Mzxid),
		})
	}
	for _, r := range d.Sessions {
		st.Sessions = append(st.Sessions, Session{
			ID: int64(r.ID), Timeout: time.Duration(r.TimeoutMillis) * time.Millisecond, Connected: connected[int64(r.ID)],
		})
	}
	for _, w := range d.Watches {
		st.Watches = append(st.Watches, Watch{Path: w.Path, Session: int64(w.Session), Kind: w.Kind})
	}
	return st
}

// Node returns the node at a path.
func (s State) Node(path string) (Node, bool) {
	for _, n := range s.Nodes {
		if n.Path == path {
			return n, true
		}
	}
	return Node{}, false
}

// Session returns a session.
func (s State) Session(id int64) (Session, bool) {
	for _, row := range s.Sessions {
		if row.ID == id {
			return row, true
		}
	}
	return Session{}, false
}

// String prints all of it, for the message of a test that fails.
func (s State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zxid %#x\n", s.Zxid)
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "node %s version %d %q", n.Path, n.Version, n.Data)
		if n.EphemeralOwner != 0 {
			fmt.Fprintf(&b, " of session %#x", n.EphemeralOwner)
		}
		b.WriteByte('\n')
	}
	for _, row := range s.Sessions {
		fmt.Fprintf(&b, "session %#x timeout %s connected %t\n", row.ID, row.Timeout, row.Connected)
	}
	for _, w := range s.Watches {
		fmt.Fprintf(&b, "watch %s %s of session %#x\n", w.Kind, w.Path, w.Session)
	}
	return b.String()
}

// Wait waits until the server's state is as wanted. The error tells what was
// waited for and how the state was at the end.
func (s *Server) Wait(limit time.Duration, what string, wanted func(State) bool) error {
	var last State
	var down error
	err := within(limit, what, func() bool {
		last, down = s.State()
		return down == nil && wanted(last)
	})
	switch {
	case err != nil && down != nil:
		return fmt.Errorf("%w; %w", err, down)
	case err != nil:
		return fmt.Errorf("%w; the state is:\n%s", err, last)
	}
	return nil
}
