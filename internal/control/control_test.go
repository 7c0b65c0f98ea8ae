package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/control"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/zktest"
)

// limit bounds what must happen at all; it measures nothing.
const limit = 60 * time.Second

// port is an open control port and what it is about.
type port struct {
	*control.Port
	t        *testing.T
	ensemble *zktest.Ensemble
}

func open(t *testing.T, servers int, opts ...zktest.Option) *port {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	e := zktest.NewEnsemble(t, servers, opts...)
	p, err := control.Open(0, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &port{p, t, e}
}

// send sends a request as it is and returns status and body.
func (p *port) send(r *http.Request) (int, string) {
	p.t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := c.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (p *port) request(method, path, body string) *http.Request {
	p.t.Helper()
	r, err := http.NewRequest(method, p.URL()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set(control.Header, "1")
	return r
}

// do asks and wants a status; it returns the answer's fields.
func (p *port) do(status int, method, path, body string) map[string]any {
	p.t.Helper()
	got, text := p.send(p.request(method, path, body))
	if got != status {
		p.t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, got, status, text)
	}
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		p.t.Fatalf("%s %s: %q: %v", method, path, text, err)
	}
	if _, told := fields["error"]; told == (status == http.StatusOK) {
		p.t.Fatalf("%s %s: status %d and %s", method, path, status, text)
	}
	return fields
}

func dial(t *testing.T, addr string) *client.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c, err := client.Dial(ctx, addr, client.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

func create(t *testing.T, c *client.Conn, path string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := c.Create(ctx, path, []byte("data"), proto.CreateEphemeral)
	return err
}

// A browser on a developer's machine shows pages of strangers; none of them may
// reach the port, whatever trick it uses.
func TestOnlyProgramsOfThisMachineMayAsk(t *testing.T) {
	p := open(t, 1)
	addr := fmt.Sprintf("%d", p.Number())
	for name, row := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"a program":                        {func(*http.Request) {}, http.StatusOK},
		"localhost":                        {func(r *http.Request) { r.Host = "localhost:" + addr }, http.StatusOK},
		"without the header":               {func(r *http.Request) { r.Header.Del(control.Header) }, http.StatusForbidden},
		"a name that resolves to loopback": {func(r *http.Request) { r.Host = "evil.example:" + addr }, http.StatusForbidden},
		"a name that only begins like it":  {func(r *http.Request) { r.Host = "127.0.0.1.evil.example:" + addr }, http.StatusForbidden},
		"a name that ends like it":         {func(r *http.Request) { r.Host = "evil.localhost:" + addr }, http.StatusForbidden},
		"a page's origin":                  {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		"a page without origin":            {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ask := range []struct{ method, path string }{{http.MethodGet, "/servers"}, {http.MethodPost, "/heal"}, {http.MethodGet, "/words/srst"}} {
				r := p.request(ask.method, ask.path, "")
				row.change(r)
				if status, text := p.send(r); status != row.status {
					t.Errorf("%s %s: status %d, want %d: %s", ask.method, ask.path, status, row.status, text)
				}
			}
		})
	}
	// A page asks first whether it may send our header. Nobody says that it may.
	r := p.request(http.MethodOptions, "/heal", "")
	r.Header.Set("Origin", "http://evil.example")
	r.Header.Set("Access-Control-Request-Headers", control.Header)
	if status, text := p.send(r); status != http.StatusForbidden {
		t.Errorf("preflight: status %d: %s", status, text)
	}
	if host, _, err := net.SplitHostPort(strings.TrimPrefix(p.URL(), "http://")); err != nil || host != "127.0.0.1" {
		t.Errorf("the port is at %s", p.URL())
	}
}

func TestThePortServesWhatTheAdminChannelServes(t *testing.T) {
	p := open(t, 1)
	for _, prefix := range []string{"", "/servers/0/admin"} {
		if ready := p.do(http.StatusOK, "GET", prefix+"/health", "")["ready"]; ready != true {
			t.Errorf("%s/health: ready %v", prefix, ready)
		}
		if n := p.do(http.StatusOK, "GET", prefix+"/metrics.json", "")["znode_count"]; n == nil {
			t.Errorf("%s/metrics.json has no znode_count", prefix)
		}
		if _, text := p.send(p.request("GET", prefix+"/words/srvr", "")); !strings.Contains(text, "Mode: standalone") || strings.Contains(text, "1970") {
			t.Errorf("%s/words/srvr: %s", prefix, text)
		}
	}
	if _, text := p.send(p.request("GET", "/", "")); !strings.Contains(text, "POST   /partition") {
		t.Errorf("the port does not explain itself: %s", text)
	}
	p.do(http.StatusOK, "POST", "/servers/0/kill", "")
	if status, text := p.send(p.request("GET", "/health", "")); status != http.StatusServiceUnavailable {
		t.Errorf("health of a server that was killed: %d %s", status, text)
	}
}

func TestSessionsAreExpiredAndTheirConnectionsDropped(t *testing.T) {
	p := open(t, 1)
	conn := dial(t, p.ensemble.ConnectString())
	if err := create(t, conn, "/a"); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%#x", uint64(conn.Session()))
	state := p.do(http.StatusOK, "GET", "/servers/0/state", "")
	if text := fmt.Sprint(state); !strings.Contains(text, "path:/a") || !strings.Contains(text, "owner:"+id) || !strings.Contains(text, "connected:true id:"+id) {
		t.Errorf("state %s", text)
	}
	p.do(http.StatusOK, "POST", "/wait", `{"node": "/a", "data": "data"}`)
	p.do(http.StatusOK, "POST", "/sessions/"+id+"/drop", "")
	p.do(http.StatusOK, "POST", "/wait", `{"session": "`+id+`", "connected": false}`)
	p.do(http.StatusNotFound, "POST", "/sessions/"+id+"/drop", "")
	p.do(http.StatusGatewayTimeout, "POST", "/wait", `{"node": "/a", "absent": true, "timeoutMillis": 20}`)
	p.do(http.StatusOK, "POST", fmt.Sprintf("/sessions/%d/expire", int64(conn.Session())), "")
	p.do(http.StatusOK, "POST", "/wait", `{"node": "/a", "absent": true}`)
	p.do(http.StatusOK, "POST", "/wait", `{"session": "`+id+`", "absent": true}`)
	p.do(http.StatusNotFound, "POST", "/sessions/"+id+"/expire", "")
}

func TestTheNthRequestIsStruckAndCounted(t *testing.T) {
	p := open(t, 1)
	conn := dial(t, p.ensemble.ConnectString())
	number := p.do(http.StatusOK, "POST", "/faults", `{"op": "create", "path": "/n*", "nth": 2, "action": "fail", "code": -110, "session": "`+fmt.Sprint(int64(conn.Session()))+`"}`)["fault"]
	fault := fmt.Sprintf("/faults/%v", number)
	for i, want := range []proto.ErrCode{proto.ErrOK, proto.ErrNodeExists, proto.ErrOK} {
		if err := create(t, conn, fmt.Sprintf("/n%d", i)); client.Code(err) != want {
			t.Errorf("create %d: %v, want %v", i, err, want)
		}
	}
	if hits := p.do(http.StatusOK, "GET", fault, "")["hits"]; hits != 1.0 {
		t.Errorf("%v hits", hits)
	}
	lost := fmt.Sprintf("/faults/%v", p.do(http.StatusOK, "POST", "/faults", `{"op": "create", "server": 0, "action": "loseReply"}`)["fault"])
	if err := create(t, conn, "/lost"); err == nil {
		t.Error("the reply was not lost")
	}
	p.do(http.StatusOK, "POST", "/wait", `{"node": "/lost"}`)
	p.do(http.StatusOK, "GET", lost+"?waitMillis=10000", "")
	held := fmt.Sprintf("/faults/%v", p.do(http.StatusOK, "POST", "/faults", `{"op": "create", "action": "hold", "all": true}`)["fault"])
	p.do(http.StatusGatewayTimeout, "GET", held+"?waitMillis=10", "")
	again := dial(t, p.ensemble.ConnectString())
	answered := make(chan error, 1)
	go func() { answered <- create(t, again, "/held") }()
	p.do(http.StatusOK, "GET", held+"?waitMillis=60000", "")
	select {
	case err := <-answered:
		t.Errorf("a held request was answered: %v", err)
	default:
	}
	p.do(http.StatusOK, "DELETE", held, "")
	if err := <-answered; err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestAnEnsembleIsCutKilledAndLed(t *testing.T) {
	p := open(t, 3)
	old := int(p.do(http.StatusOK, "GET", "/leader", "")["leader"].(float64))
	rest := []int{}
	for i := range 3 {
		if i+1 != old {
			rest = append(rest, i+1)
		}
	}
	p.do(http.StatusOK, "POST", "/partition", fmt.Sprintf(`{"groups": [[%d], [%d, %d]]}`, old, rest[0], rest[1]))
	now := int(p.do(http.StatusOK, "GET", fmt.Sprintf("/leader?among=%d,%d", rest[0], rest[1]), "")["leader"].(float64))
	if now == old {
		t.Fatalf("server %d still leads", old)
	}
	conn := dial(t, p.ensemble.Servers()[now-1].Addr())
	if err := create(t, conn, "/a"); err != nil {
		t.Fatal(err)
	}
	p.do(http.StatusOK, "POST", "/heal", "")
	p.do(http.StatusOK, "POST", "/wait", fmt.Sprintf(`{"server": %d, "node": "/a"}`, old))
	p.do(http.StatusOK, "POST", "/leader", fmt.Sprintf(`{"server": %d}`, old))
	p.do(http.StatusOK, "POST", fmt.Sprintf("/servers/%d/pause", now), "")
	p.do(http.StatusOK, "POST", fmt.Sprintf("/servers/%d/resume", now), "")
	p.do(http.StatusOK, "POST", fmt.Sprintf("/servers/%d/kill", now), "")
	rows := p.do(http.StatusOK, "GET", "/servers", "")["servers"].([]any)
	if row := rows[now-1].(map[string]any); row["running"] != false || row["address"] != p.ensemble.Servers()[now-1].Addr() {
		t.Errorf("a killed server: %v", row)
	}
	p.do(http.StatusConflict, "POST", fmt.Sprintf("/servers/%d/kill", now), "")
	p.do(http.StatusOK, "POST", fmt.Sprintf("/servers/%d/restart", now), "")
	p.do(http.StatusOK, "POST", "/wait", fmt.Sprintf(`{"server": %d, "node": "/a"}`, now))
}

func TestAManualClockIsMoved(t *testing.T) {
	p := open(t, 1, zktest.ManualClock())
	conn := dial(t, p.ensemble.ConnectString())
	if err := create(t, conn, "/a"); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%#x", uint64(conn.Session()))
	p.do(http.StatusOK, "POST", "/sessions/"+id+"/drop", "")
	p.do(http.StatusOK, "POST", "/wait", `{"session": "`+id+`", "connected": false}`)
	p.do(http.StatusOK, "POST", "/clock", `{"advanceMillis": 31000}`)
	p.do(http.StatusOK, "POST", "/wait", `{"node": "/a", "absent": true, "timeoutMillis": 1}`)
	p.do(http.StatusBadRequest, "POST", "/clock", `{"advanceMillis": -1}`)
}

// A test with a misspelt fault would pass for ever.
func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	p := open(t, 1)
	for _, row := range []struct {
		status             int
		method, path, body string
	}{
		{http.StatusBadRequest, "POST", "/faults", `{"op": "creat", "action": "drop"}`},
		{http.StatusBadRequest, "POST", "/faults", `{"operation": "create", "action": "drop"}`},
		{http.StatusBadRequest, "POST", "/faults", `{"op": "create", "action": "explode"}`},
		{http.StatusBadRequest, "POST", "/faults", `{"op": "create", "action": "fail"}`},
		{http.StatusBadRequest, "POST", "/faults", `{"op": "create", "action": "delay"}`},
		{http.StatusBadRequest, "POST", "/faults", `{"session": "mine", "action": "drop"}`},
		{http.StatusBadRequest, "POST", "/faults", ``},
		{http.StatusBadRequest, "POST", "/wait", `{}`},
		{http.StatusBadRequest, "POST", "/wait", `{"node": "/a", "session": "0x1"}`},
		{http.StatusBadRequest, "POST", "/sessions/none/expire", ``},
		{http.StatusBadRequest, "POST", "/partition", `[[1], [2]]`},
		{http.StatusNotFound, "POST", "/partition", `{"groups": [[7]]}`},
		{http.StatusNotFound, "POST", "/faults", `{"server": 7, "action": "drop"}`},
		{http.StatusNotFound, "GET", "/faults/1", ``},
		{http.StatusNotFound, "POST", "/servers/1/kill", ``},
		{http.StatusConflict, "POST", "/clock", `{"advanceMillis": 1}`},
		{http.StatusConflict, "POST", "/servers/0/restart", ``},
	} {
		p.do(row.status, row.method, row.path, row.body)
	}
}
