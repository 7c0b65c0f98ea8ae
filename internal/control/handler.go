package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/zktest"
)

// usage is the answer to GET /, and the reference of the port.
const usage = `The control port of zooraft serve --ephemeral. Every request needs the header
Zooraft-Control with any value; bodies and answers are JSON. A session is its id
as "0x..." or in decimal, a server its number (of one alone: 0). Errors are
{"error": "..."} with a status from 400 up.

GET    /                       this text
GET    /servers                {connect, leader, servers: [{id, address, running, paused, leads}]}
GET    /servers/ID/state       {zxid, nodes, sessions, watches} of one server; data is base64
POST   /servers/ID/kill        as kill -9; the data stay
POST   /servers/ID/restart     after kill; answers when it serves
POST   /servers/ID/pause       nothing in, nothing out, as SIGSTOP
POST   /servers/ID/resume
GET    /servers/ID/admin/...   what its local admin channel answers: health, health/live,
                               words, words/NAME, watches, metrics.json
GET    /health, /health/live, /words, /words/NAME, /watches, /paths/busy, /metrics.json    those of the first server
GET    /leader                 {leader}: waits for one; ?among=2,3 of some servers only
POST   /leader                 {"server": 2} moves leadership there
POST   /partition              {"groups": [[1], [2, 3]]} cuts the network between them
POST   /heal                   ends all partitions
POST   /sessions/ID/expire     as if its client had been silent for too long
POST   /sessions/ID/drop       breaks its connection; the session lives
POST   /faults                 {"op", "path", "session", "nth", "all", "server", "action", "code",
                               "delayMillis"} gives {"fault": N}. op is ZooKeeper's name, path may
                               end in *, nth counts from 1, all goes on from there; action is fail
                               (with a code of KeeperException.Code), drop, loseReply, delay or hold
GET    /faults/N               {hits}; ?waitMillis=5000 waits for the first
DELETE /faults/N               ends it, and lets go on what it holds
POST   /clock                  {"advanceMillis": 60000}, with --manual-clock
POST   /wait                   {"server", "node", "absent", "data", "session", "connected", "watch",
                               "timeoutMillis"} answers when the server's state is so, else 504
`

// handler answers for one ensemble.
type handler struct {
	ensemble *zktest.Ensemble
	faults   faultTable
}

// NewHandler returns what the control port answers, without its guard.
func NewHandler(e *zktest.Ensemble) http.Handler {
	h := &handler{ensemble: e}
	first := e.Servers()[0].AdminHandler()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, usage)
	})
	for _, pattern := range []string{"/health", "/health/live", "/words", "/words/{word}", "/watches", "/paths/busy", "/metrics.json"} {
		mux.Handle("GET "+pattern, first)
	}
	mux.HandleFunc("/servers/{id}/admin/", h.admin)
	for pattern, call := range map[string]func(*http.Request) (any, error){
		"GET /servers":               h.servers,
		"GET /servers/{id}/state":    h.state,
		"POST /servers/{id}/kill":    h.onServer((*zktest.Server).Kill),
		"POST /servers/{id}/restart": h.onServer((*zktest.Server).Restart),
		"POST /servers/{id}/pause":   h.onServer(func(s *zktest.Server) error { s.Pause(); return nil }),
		"POST /servers/{id}/resume":  h.onServer(func(s *zktest.Server) error { s.Resume(); return nil }),
		"GET /leader":                h.leader,
		"POST /leader":               h.moveLeader,
		"POST /partition":            h.partition,
		"POST /heal":                 func(*http.Request) (any, error) { e.Heal(); return done{}, nil },
		"POST /sessions/{id}/expire": h.onSession(e.ExpireSession),
		"POST /sessions/{id}/drop":   h.onSession(e.DropConnection),
		"POST /faults":               h.inject,
		"GET /faults/{fault}":        h.faultHits,
		"DELETE /faults/{fault}":     h.releaseFault,
		"POST /clock":                h.advance,
		"POST /wait":                 h.wait,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, bodyMaxBytes)
			result, err := call(r)
			if err != nil {
				answer(w, statusOf(err), failure{err.Error()})
				return
			}
			answer(w, http.StatusOK, result)
		})
	}
	return mux
}

// bodyMaxBytes bounds the body of a request: 1 MiB, more than any needs.
const bodyMaxBytes = 1 << 20

// done is the answer of what has nothing to tell.
type done struct{}

type failure struct {
	Error string `json:"error"`
}

var (
	errRequest = errors.New("control: the request is not understood")
	errUnknown = errors.New("control: there is no such thing")
)

func statusOf(err error) int {
	switch {
	case errors.Is(err, errRequest):
		return http.StatusBadRequest
	case errors.Is(err, errUnknown), errors.Is(err, zktest.ErrNoSession):
		return http.StatusNotFound
	case errors.Is(err, zktest.ErrDown), errors.Is(err, zktest.ErrStarted), errors.Is(err, zktest.ErrClock):
		return http.StatusConflict
	case errors.Is(err, zktest.ErrTimeout):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // who asked may be gone
}

// read decodes the body. A field that is not known is an error, because a fault
// with a misspelt field would strike something else.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errRequest, err)
	}
	return nil
}

// server finds a server by its number.
func (h *handler) server(id string) (*zktest.Server, error) {
	for _, s := range h.ensemble.Servers() {
		if strconv.Itoa(s.ID()) == id {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: server %q", errUnknown, id)
}

func (h *handler) onServer(act func(*zktest.Server) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		s, err := h.server(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return done{}, act(s)
	}
}

func (h *handler) onSession(act func(int64) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := sessionID(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return done{}, act(id)
	}
}

// sessionID reads 0x and up to 16 hexadecimal digits, or a decimal number, which
// may be negative, as Java prints it.
func sessionID(text string) (int64, error) {
	if digits, hex := strings.CutPrefix(text, "0x"); hex {
		id, err := strconv.ParseUint(digits, 16, 64)
		if err == nil {
			return int64(id), nil
		}
	} else if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return id, nil
	} else if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(id), nil
	}
	return 0, fmt.Errorf("%w: %q is no session id; write 0x… or a decimal number", errRequest, text)
}

func showSession(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

func (h *handler) admin(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	s, err := h.server(id)
	if err != nil {
		answer(w, statusOf(err), failure{err.Error()})
		return
	}
	http.StripPrefix("/servers/"+id+"/admin", s.AdminHandler()).ServeHTTP(w, r)
}

type serverRow struct {
	ID      int    `json:"id"`
	Address string `json:"address"`
	Running bool   `json:"running"`
	Paused  bool   `json:"paused"`
	Leads   bool   `json:"leads"`
}

func (h *handler) servers(*http.Request) (any, error) {
	out := struct {
		Connect string      `json:"connect"`
		Leader  *int        `json:"leader"`
		Servers []serverRow `json:"servers"`
	}{Connect: h.ensemble.ConnectString()}
	leader := h.ensemble.Leader()
	if leader != nil {
		id := leader.ID()
		out.Leader = &id
	}
	for _, s := range h.ensemble.Servers() {
		out.Servers = append(out.Servers, serverRow{s.ID(), s.Addr(), s.Running(), s.Paused(), s == leader})
	}
	return out, nil
}

type leaderAnswer struct {
	Leader int `json:"leader"`
}

func (h *handler) leader(r *http.Request) (any, error) {
	var among []*zktest.Server
	if list := r.URL.Query().Get("among"); list != "" {
		for id := range strings.SplitSeq(list, ",") {
			s, err := h.server(id)
			if err != nil {
				return nil, err
			}
			among = append(among, s)
		}
	}
	s, err := h.ensemble.AwaitLeader(among...)
	if err != nil {
		return nil, err
	}
	return leaderAnswer{s.ID()}, nil
}

func (h *handler) moveLeader(r *http.Request) (any, error) {
	var body struct {
		Server int `json:"server"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	s, err := h.server(strconv.Itoa(body.Server))
	if err != nil {
		return nil, err
	}
	return leaderAnswer{s.ID()}, h.ensemble.MoveLeader(s)
}

func (h *handler) partition(r *http.Request) (any, error) {
	var body struct {
		Groups [][]int `json:"groups"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	var groups [][]*zktest.Server
	for _, ids := range body.Groups {
		var group []*zktest.Server
		for _, id := range ids {
			s, err := h.server(strconv.Itoa(id))
			if err != nil {
				return nil, err
			}
			group = append(group, s)
		}
		groups = append(groups, group)
	}
	h.ensemble.Partition(groups...)
	return done{}, nil
}

func (h *handler) advance(r *http.Request) (any, error) {
	var body struct {
		AdvanceMillis int64 `json:"advanceMillis"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.AdvanceMillis <= 0 {
		return nil, fmt.Errorf("%w: advanceMillis is %d, want more than 0", errRequest, body.AdvanceMillis)
	}
	return done{}, h.ensemble.Advance(time.Duration(body.AdvanceMillis) * time.Millisecond)
}
