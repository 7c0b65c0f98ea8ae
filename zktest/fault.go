package zktest

import (
	"strings"
	"sync"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/server"
)

// Match says which requests a fault is for. The zero value is the next request
// of any client, pings included.
type Match struct {
	// Op is ZooKeeper's name of the operation: "create", "setData", "delete",
	// "getData", "exists", "getChildren", "multi", "sync", "closeSession"….
	// "create" stands for its variants too, and "getChildren" for both.
	// Empty is any.
	Op string
	// Path is the node that the request names; a final * stands for anything.
	// A multi names none. Empty is any.
	Path string
	// Session is the client's; 0 is any.
	Session int64
	// Nth is which of the matching requests from now on, 1 for the first.
	// Default 1.
	Nth int
	// All takes every matching request from the Nth on.
	All bool
}

// variants are what the short names of operations stand for.
var variants = map[string][]proto.OpCode{
	"create":      {proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL},
	"getChildren": {proto.OpGetChildren, proto.OpGetChildren2},
}

// KnownOp tells whether an operation is called so.
func KnownOp(name string) bool {
	if variants[name] != nil {
		return true
	}
	const lowest, highest = proto.OpCode(-100), proto.OpCode(1000)
	for op := lowest; op <= highest; op++ {
		if op.String() == name {
			return true
		}
	}
	return false
}

func (m *Match) matches(r *server.Request) bool {
	if m.Session != 0 && m.Session != int64(r.Session) {
		return false
	}
	if m.Op != "" && m.Op != r.Op.String() {
		known := false
		for _, op := range variants[m.Op] {
			known = known || op == r.Op
		}
		if !known {
			return false
		}
	}
	if m.Path == "" {
		return true
	}
	path, ok := proto.RequestPath(r.Op, r.Body)
	if prefix, open := strings.CutSuffix(m.Path, "*"); open {
		return ok && strings.HasPrefix(path, prefix)
	}
	return ok && path == m.Path
}

// Action is what becomes of a request that matches.
type Action struct {
	verdict server.Verdict
	delay   time.Duration
	hold    bool
}

// Fail answers with an error, by its number in ZooKeeper's KeeperException.Code,
// and does nothing.
func Fail(code int32) Action { return Action{verdict: server.Verdict{Err: proto.ErrCode(code)}} }

// Drop cuts the connection before anything is done.
func Drop() Action { return Action{verdict: server.Verdict{Drop: true}} }

// LoseReply does the write and cuts the connection instead of answering: the
// client cannot know whether it was done.
func LoseReply() Action { return Action{verdict: server.Verdict{LoseReply: true}} }

// Delay does the request later, by the machine's clock. Requests of the same
// connection wait behind it.
func Delay(d time.Duration) Action { return Action{delay: d} }

// Hold does the request when the fault is released.
func Hold() Action { return Action{hold: true} }

// Fault is one that was injected.
type Fault struct {
	server *Server // nil: any
	match  Match
	action Action
	all    *faults

	seen     int           // guarded by all.mu; matching requests
	hits     int           // guarded by all.mu
	hit      chan struct{} // closed at the first hit
	once     sync.Once     // guards released
	released chan struct{}
}

// Hits is how many requests it has struck.
func (f *Fault) Hits() int {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	return f.hits
}

// Hit is closed when it strikes for the first time.
func (f *Fault) Hit() <-chan struct{} { return f.hit }

// Release ends the fault, and lets go on what it holds.
func (f *Fault) Release() {
	f.once.Do(func() { close(f.released) })
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	for i, other := range f.all.list {
		if other == f {
			f.all.list = append(f.all.list[:i:i], f.all.list[i+1:]...)
			return
		}
	}
}

// faults are those of one ensemble. The first that strikes decides.
type faults struct {
	mu   sync.Mutex
	list []*Fault // guarded by mu
}

func (a *faults) inject(s *Server, m Match, action Action) *Fault {
	if m.Op != "" && !KnownOp(m.Op) {
		panic("zktest: no operation is called " + m.Op) // it would never strike
	}
	m.Nth = max(m.Nth, 1)
	f := &Fault{server: s, match: m, action: action, all: a, hit: make(chan struct{}), released: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, f)
	return f
}

// struck returns the fault that strikes a request, or nil.
func (a *faults) struck(s *Server, r *server.Request) (struck *Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.list {
		if f.server != nil && f.server != s || !f.match.matches(r) {
			continue
		}
		f.seen++
		if struck != nil || f.seen < f.match.Nth || f.seen > f.match.Nth && !f.match.All {
			continue
		}
		struck = f
		if f.hits++; f.hits == 1 {
			close(f.hit)
		}
	}
	return struck
}

// intercept implements server.Embedding.Intercept.
func (a *faults) intercept(s *Server, r server.Request, done <-chan struct{}) server.Verdict {
	f := a.struck(s, &r)
	if f == nil {
		return server.Verdict{}
	}
	var after <-chan time.Time
	if f.action.delay > 0 {
		timer := time.NewTimer(f.action.delay)
		defer timer.Stop()
		after = timer.C
	}
	if f.action.delay > 0 || f.action.hold {
		select {
		case <-after:
		case <-f.released:
		case <-done:
		}
	}
	return f.action.verdict
}
