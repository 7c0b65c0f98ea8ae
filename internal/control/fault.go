package control

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/zooraft/zooraft/zktest"
)

// faultTable numbers the faults that were injected here.
type faultTable struct {
	mu   sync.Mutex
	last int                   // guarded by mu
	all  map[int]*zktest.Fault // guarded by mu
}

func (t *faultTable) add(f *zktest.Fault) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[int]*zktest.Fault{}
	}
	t.last++
	t.all[t.last] = f
	return t.last
}

func (t *faultTable) get(r *http.Request) (*zktest.Fault, error) {
	number, err := strconv.Atoi(r.PathValue("fault"))
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.all[number]; f != nil && err == nil {
		return f, nil
	}
	return nil, fmt.Errorf("%w: fault %q", errUnknown, r.PathValue("fault"))
}

// faultRequest is the body of POST /faults.
type faultRequest struct {
	Op          string `json:"op"`
	Path        string `json:"path"`
	Session     string `json:"session"`
	Nth         int    `json:"nth"`
	All         bool   `json:"all"`
	Server      *int   `json:"server"`
	Action      string `json:"action"`
	Code        int32  `json:"code"`
	DelayMillis int64  `json:"delayMillis"`
}

func (f *faultRequest) action() (zktest.Action, error) {
	switch {
	case f.Action == "fail" && f.Code < 0:
		return zktest.Fail(f.Code), nil
	case f.Action == "fail":
		return zktest.Action{}, fmt.Errorf("%w: fail needs a code below 0, such as -101 for NoNode", errRequest)
	case f.Action == "drop":
		return zktest.Drop(), nil
	case f.Action == "loseReply":
		return zktest.LoseReply(), nil
	case f.Action == "delay" && f.DelayMillis > 0:
		return zktest.Delay(time.Duration(f.DelayMillis) * time.Millisecond), nil
	case f.Action == "delay":
		return zktest.Action{}, fmt.Errorf("%w: delay needs delayMillis above 0", errRequest)
	case f.Action == "hold":
		return zktest.Hold(), nil
	}
	return zktest.Action{}, fmt.Errorf("%w: the action %q is none of fail, drop, loseReply, delay, hold", errRequest, f.Action)
}

type faultAnswer struct {
	Fault int `json:"fault"`
}

func (h *handler) inject(r *http.Request) (any, error) {
	var body faultRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	action, err := body.action()
	if err != nil {
		return nil, err
	}
	match := zktest.Match{Op: body.Op, Path: body.Path, Nth: body.Nth, All: body.All}
	if body.Session != "" {
		if match.Session, err = sessionID(body.Session); err != nil {
			return nil, err
		}
	}
	if body.Op != "" && !zktest.KnownOp(body.Op) {
		return nil, fmt.Errorf("%w: no operation is called %q", errRequest, body.Op)
	}
	if body.Server == nil {
		return faultAnswer{h.faults.add(h.ensemble.Inject(match, action))}, nil
	}
	s, err := h.server(strconv.Itoa(*body.Server))
	if err != nil {
		return nil, err
	}
	return faultAnswer{h.faults.add(s.Inject(match, action))}, nil
}

type hitsAnswer struct {
	Hits int `json:"hits"`
}

func (h *handler) faultHits(r *http.Request) (any, error) {
	f, err := h.faults.get(r)
	if err != nil {
		return nil, err
	}
	if wait := r.URL.Query().Get("waitMillis"); wait != "" {
		millis, err := strconv.ParseUint(wait, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: waitMillis: %w", errRequest, err)
		}
		limit := time.NewTimer(time.Duration(millis) * time.Millisecond)
		defer limit.Stop()
		select {
		case <-f.Hit():
		case <-limit.C:
			return nil, fmt.Errorf("%w: no request has matched", zktest.ErrTimeout)
		case <-r.Context().Done():
		}
	}
	return hitsAnswer{f.Hits()}, nil
}

func (h *handler) releaseFault(r *http.Request) (any, error) {
	f, err := h.faults.get(r)
	if err != nil {
		return nil, err
	}
	f.Release()
	return hitsAnswer{f.Hits()}, nil
}
