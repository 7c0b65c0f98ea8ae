package control

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/zooraft/zooraft/zktest"
)

// stateAnswer is a zktest.State. Numbers that JavaScript would round are text.
type stateAnswer struct {
	Zxid     string       `json:"zxid"`
	Nodes    []nodeRow    `json:"nodes"`
	Sessions []sessionRow `json:"sessions"`
	Watches  []watchRow   `json:"watches"`
}

type nodeRow struct {
	Path     string `json:"path"`
	Data     []byte `json:"data"` // base64
	Version  int32  `json:"version"`
	Children int    `json:"children"`
	Owner    string `json:"owner,omitempty"` // the session of an ephemeral node
	Czxid    string `json:"czxid"`
	Mzxid    string `json:"mzxid"`
}

type sessionRow struct {
	ID            string `json:"id"`
	TimeoutMillis int64  `json:"timeoutMillis"`
	Connected     bool   `json:"connected"`
}

type watchRow struct {
	Path    string `json:"path"`
	Session string `json:"session"`
	Kind    string `json:"kind"`
}

func (h *handler) state(r *http.Request) (any, error) {
	s, err := h.server(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	st, err := s.State()
	if err != nil {
		return nil, err
	}
	return showState(st), nil
}

func showState(st zktest.State) stateAnswer {
	out := stateAnswer{
		Zxid: showSession(st.Zxid), Nodes: []nodeRow{}, Sessions: []sessionRow{}, Watches: []watchRow{},
	}
	for _, n := range st.Nodes {
		row := nodeRow{
			Path: n.Path, Data: n.Data, Version: n.Version, Children: n.Children,
			Czxid: showSession(n.Czxid), Mzxid: showSession(n.Mzxid),
		}
		if n.EphemeralOwner != 0 {
			row.Owner = showSession(n.EphemeralOwner)
		}
		out.Nodes = append(out.Nodes, row)
	}
	for _, s := range st.Sessions {
		out.Sessions = append(out.Sessions, sessionRow{showSession(s.ID), s.Timeout.Milliseconds(), s.Connected})
	}
	for _, w := range st.Watches {
		out.Watches = append(out.Watches, watchRow{w.Path, showSession(w.Session), w.Kind})
	}
	return out
}

// condition is the body of POST /wait: a node, a session or a watch, to be there
// or gone.
type condition struct {
	Server        *int    `json:"server"` // default: the first
	Node          string  `json:"node"`
	Data          *string `json:"data"` // of the node
	Session       string  `json:"session"`
	Connected     *bool   `json:"connected"` // the session, to this server
	Watch         string  `json:"watch"`     // a path; of Session, if that is given
	Absent        bool    `json:"absent"`
	TimeoutMillis int64   `json:"timeoutMillis"`
}

// defaultWait is how long POST /wait waits unless it says otherwise: 30 s.
const defaultWait = 30 * time.Second

func (h *handler) wait(r *http.Request) (any, error) {
	var c condition
	if err := read(r, &c); err != nil {
		return nil, err
	}
	s := h.ensemble.Servers()[0]
	if c.Server != nil {
		var err error
		if s, err = h.server(strconv.Itoa(*c.Server)); err != nil {
			return nil, err
		}
	}
	there, what, err := c.test()
	if err != nil {
		return nil, err
	}
	limit := defaultWait
	if c.TimeoutMillis > 0 {
		limit = time.Duration(c.TimeoutMillis) * time.Millisecond
	}
	if c.Absent {
		what = "no " + what
	}
	return done{}, s.Wait(limit, what, func(st zktest.State) bool {
		return r.Context().Err() != nil || there(st) != c.Absent
	})
}

// test returns the test for what is waited for, and its name.
func (c *condition) test() (there func(zktest.State) bool, what string, err error) {
	var session int64
	if c.Session != "" {
		if session, err = sessionID(c.Session); err != nil {
			return nil, "", err
		}
	}
	switch {
	case c.Node != "" && c.Session == "" && c.Watch == "" && c.Connected == nil:
		return func(st zktest.State) bool {
			n, ok := st.Node(c.Node)
			return ok && (c.Data == nil || string(n.Data) == *c.Data)
		}, "node " + c.Node, nil
	case c.Watch != "" && c.Node == "" && c.Data == nil && c.Connected == nil:
		return func(st zktest.State) bool {
			return slices.ContainsFunc(st.Watches, func(w zktest.Watch) bool {
				return w.Path == c.Watch && (session == 0 || w.Session == session)
			})
		}, "watch on " + c.Watch, nil
	case c.Session != "" && c.Node == "" && c.Watch == "" && c.Data == nil:
		return func(st zktest.State) bool {
			row, ok := st.Session(session)
			return ok && (c.Connected == nil || row.Connected == *c.Connected)
		}, "session " + c.Session, nil
	}
	return nil, "", fmt.Errorf("%w: wait for a node (and its data), or a session (connected or not), or a watch (of a session)", errRequest)
}
