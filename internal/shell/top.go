package shell

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func topCommands() []*command {
	return []*command{
		{
			name: "top", synopsis: "[--interval time] [--count n] [--path path] [--admin socket]", beyond: true,
			summary: "Show request rates, latencies, and the busiest clients and paths, again and again",
			detail: "Rates and latencies come from the word mntr of every server of -server, clients from cons. No server\n" +
				"counts requests by path: the paths are those of the changes that a recursive watch sees, so reads and the\n" +
				"paths that this session may not read are not among them.",
			flags: []flag{
				{name: "interval", arg: "time", help: "time between two looks (default 2s)", long: true},
				{name: "count", arg: "n", help: "end after this many looks", long: true},
				{name: "path", arg: "path", help: "watch the changes below this path (default /)", long: true},
				adminFlag,
			},
			run: runTop,
			examples: []string{
				"top                                   # until an interrupt",
				"top --json --count 1 --interval 10s   # one look, for a script",
			},
		},
	}
}

// topRows is how many clients and paths are shown.
const topRows = 10

// look is one look of top.
type look struct {
	Time    string      `json:"time"`
	Servers []serverTop `json:"servers"`
	Clients []clientTop `json:"clients"`
	Paths   []pathTop   `json:"paths"`
}

type serverTop struct {
	Server       string  `json:"server"`
	PerSecond    float64 `json:"requestsPerSecond"`
	AvgMs        float64 `json:"avgLatencyMs"`
	MaxMs        float64 `json:"maxLatencyMs"`
	ReadP99Ms    float64 `json:"readP99Ms"`
	UpdateP99Ms  float64 `json:"updateP99Ms"`
	Outstanding  float64 `json:"outstanding"`
	Connections  float64 `json:"connections"`
	Nodes        float64 `json:"nodes"`
	WatchesCount float64 `json:"watches"`
}

type clientTop struct {
	connection
	PerSecond float64 `json:"requestsPerSecond"`
}

type pathTop struct {
	Path      string  `json:"path"`
	PerSecond float64 `json:"changesPerSecond"`
}

// topState is what a look needs of the one before.
type topState struct {
	in       *invocation
	sources  []source
	received map[string]float64 // by server
	clients  map[string]int64   // by server and address
	last     time.Time
	noted    bool
}

func runTop(ctx context.Context, in *invocation) error {
	interval := 2 * time.Second
	if in.has("interval") {
		var err error
		if interval, err = time.ParseDuration(in.value("interval")); err != nil || interval <= 0 {
			return failf(ErrUsage, "--interval needs a time as in 2s, not %q", in.value("interval"))
		}
	}
	limit, err := in.number("count", 0, 32)
	if err != nil {
		return err
	}
	root := cmp.Or(in.value("path"), "/")
	if err := checkPath(root, false); err != nil {
		return err
	}
	state := &topState{in: in, received: map[string]float64{}, clients: map[string]int64{}}
	if state.sources, err = in.sources(); err != nil {
		return err
	}
	return in.sh.following(func(events <-chan client.Event, _ <-chan struct{}) error {
		if err := in.session.AddWatch(ctx, root, proto.AddWatchPersistentRecursive); err != nil {
			in.sh.note("no paths: %s", Message(err)) // servers before 3.6 have no such watch
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
			defer cancel()
			_ = in.session.RemoveWatches(ctx, root, proto.WatcherPersistentRecursive, true) // the session may be over
		}()
		return state.loop(ctx, events, interval, limit)
	})
}

func (s *topState) loop(ctx context.Context, events <-chan client.Event, interval time.Duration, limit int64) error {
	if _, err := s.look(ctx, nil); err != nil { // what the first rates are reckoned from
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	paths := hotPaths{}
	for looks := int64(0); limit == 0 || looks < limit; {
		select {
		case event := <-events:
			paths.add(event)
		case <-ticker.C:
			next, err := s.look(ctx, paths)
			if err != nil {
				return err
			}
			if err := s.show(next); err != nil {
				return err
			}
			paths = hotPaths{}
			looks++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// look asks every server. What one does not tell is noted once.
func (s *topState) look(ctx context.Context, paths hotPaths) (*look, error) {
	now := time.Now()
	seconds := max(now.Sub(s.last).Seconds(), 0.001)
	l := &look{Time: isoTime(now.UnixMilli()), Servers: []serverTop{}, Clients: []clientTop{}, Paths: []pathTop{}}
	silent := s.noted
	told := func(text string, err error) (string, error) {
		if s.noted && err != nil && ExitCode(err) == ExitFailed {
			return "", nil
		}
		return s.in.told(text, err, &silent)
	}
	for _, from := range s.sources {
		text, err := from.word(ctx, "mntr")
		if text, err = told(text, err); err != nil {
			return nil, err
		}
		if text != "" {
			l.Servers = append(l.Servers, s.server(from.name, parseMonitor(text), seconds))
		}
		text, err = from.word(ctx, "cons")
		if text, err = told(text, err); err != nil {
			return nil, err
		}
		for _, c := range parseConnections(from.name, text) {
			key := c.Server + " " + c.Address
			before, known := s.clients[key]
			if s.clients[key] = c.Received; known && c.Received > before {
				l.Clients = append(l.Clients, clientTop{c, float64(c.Received-before) / seconds})
			}
		}
	}
	for path, changes := range paths {
		l.Paths = append(l.Paths, pathTop{path, float64(changes) / seconds})
	}
	slices.SortFunc(l.Clients, func(a, b clientTop) int { return cmp.Compare(b.PerSecond, a.PerSecond) })
	slices.SortFunc(l.Paths, func(a, b pathTop) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Path, b.Path))
	})
	l.Clients, l.Paths = l.Clients[:min(topRows, len(l.Clients))], l.Paths[:min(topRows, len(l.Paths))]
	s.last, s.noted = now, silent
	return l, nil
}

func (s *topState) server(name string, m map[string]float64, seconds float64) serverTop {
	before, known := s.received[name]
	s.received[name] = m["packets_received"]
	t := serverTop{
		Server: name, AvgMs: m["avg_latency"], MaxMs: m["max_latency"], ReadP99Ms: m["p99_readlatency"],
		UpdateP99Ms: m["p99_updatelatency"], Outstanding: m["outstanding_requests"], Connections: m["num_alive_connections"],
		Nodes: m["znode_count"], WatchesCount: m["watch_count"],
	}
	if known {
		t.PerSecond = max(0, (m["packets_received"]-before)/seconds)
	}
	return t
}

// show prints a look; at a terminal it takes the place of the one before.
func (s *topState) show(l *look) error {
	err := s.in.answer(l, func(w io.Writer) {
		if s.in.sh.streams.OutTerminal {
			fmt.Fprint(w, "\x1b[H\x1b[2J")
		}
		fmt.Fprintln(w, l.Time)
		fmt.Fprintf(w, "%-24s %9s %8s %8s %9s %9s %6s %6s %9s\n",
			"SERVER", "REQ/S", "AVG ms", "MAX ms", "P99 READ", "P99 WRITE", "QUEUED", "CONNS", "NODES")
		for _, t := range l.Servers {
			fmt.Fprintf(w, "%-24s %9.1f %8.2f %8.0f %9.1f %9.1f %6.0f %6.0f %9.0f\n", t.Server, t.PerSecond, t.AvgMs, t.MaxMs,
				t.ReadP99Ms, t.UpdateP99Ms, t.Outstanding, t.Connections, t.Nodes)
		}
		fmt.Fprintf(w, "\n%-24s %9s %8s %-20s %s\n", "CLIENT", "REQ/S", "AVG ms", "SESSION", "LAST")
		for _, c := range l.Clients {
			fmt.Fprintf(w, "%-24s %9.1f %8d %-20s %s\n", c.Address, c.PerSecond, c.AvgMs, orDash(c.Session), orDash(c.LastOp))
		}
		fmt.Fprintf(w, "\n%9s  %s\n", "CHANGES/S", "PATH (reads are not counted by path)")
		for _, p := range l.Paths {
			fmt.Fprintf(w, "%9.1f  %s\n", p.PerSecond, p.Path)
		}
		fmt.Fprintln(w)
	})
	if err != nil {
		return err
	}
	return s.in.flush()
}
