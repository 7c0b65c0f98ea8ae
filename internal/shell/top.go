package shell

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

func topCommands() []*command {
	return []*command{
		{
			name: "top", synopsis: "[--interval time] [--count n] [--path path] [--admin socket]", beyond: true,
			summary: "Show request rates, latencies, and the busiest clients and paths, again and again",
			detail: "Rates and latencies come from the word mntr of every server of -server, clients from cons. Clients are\n" +
				"not told which paths are read: without --admin the paths are those of the changes that a recursive watch\n" +
				"sees, so reads and the paths that this session may not read are not among them. With --admin one server of\n" +
				"zooraft's counts all that its clients ask for, reads too.",
			flags: []flag{
				{name: "interval", arg: "time", help: "time between two looks (default 2s)", long: true},
				{name: "count", arg: "n", help: "end after this many looks", long: true},
				{name: "path", arg: "path", help: "only the paths from this one down (default /)", long: true},
				adminFlag,
			},
			run: runTop,
			examples: []string{
				"top                                   # until an interrupt",
				"top --json --count 1 --interval 10s   # one look, for a script",
				"top --admin data/zooraft/admin.sock   # which paths are read, too",
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
	// ReadsPerSecond is there only where the admin channel counts reads.
	ReadsPerSecond *float64 `json:"readsPerSecond,omitempty"`
}

func (p *pathTop) all() float64 {
	if p.ReadsPerSecond == nil {
		return p.PerSecond
	}
	return p.PerSecond + *p.ReadsPerSecond
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
	if count := state.sources[0].paths; count != nil {
		return state.loop(ctx, limit, func(ctx context.Context) (hotPaths, error) {
			loads, err := count(ctx, interval)
			paths := hotPaths{}
			for _, load := range loads {
				if isBelow(load.Path, root) {
					paths[load.Path] = load
				}
			}
			return paths, err
		})
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
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		return state.loop(ctx, limit, func(ctx context.Context) (hotPaths, error) {
			return changes(ctx, events, ticker.C)
		})
	})
}

// loop shows a look after each interval, which collect waits for.
func (s *topState) loop(ctx context.Context, limit int64, collect func(context.Context) (hotPaths, error)) error {
	if _, err := s.look(ctx, nil); err != nil { // what the first rates are reckoned from
		return err
	}
	for looks := int64(0); limit == 0 || looks < limit; looks++ {
		paths, err := collect(ctx)
		if err != nil {
			return err
		}
		next, err := s.look(ctx, paths)
		if err != nil {
			return err
		}
		if err := s.show(next); err != nil {
			return err
		}
	}
	return nil
}

// hotPaths are the requests that were counted, by path.
type hotPaths map[string]pathLoad

// changes counts those that a recursive watch sees until the next tick.
func changes(ctx context.Context, events <-chan client.Event, tick <-chan time.Time) (hotPaths, error) {
	paths := hotPaths{}
	for {
		select {
		case event := <-events:
			if event.Type != proto.EventNone {
				load := paths[event.Path]
				load.Writes++
				paths[event.Path] = load
			}
		case <-tick:
			return paths, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// isBelow tells whether a path is root or below it.
func isBelow(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
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
	for path, load := range paths {
		p := pathTop{Path: path, PerSecond: float64(load.Writes) / seconds}
		if s.sources[0].paths != nil {
			reads := float64(load.Reads) / seconds
			p.ReadsPerSecond = &reads
		}
		l.Paths = append(l.Paths, p)
	}
	slices.SortFunc(l.Clients, func(a, b clientTop) int { return cmp.Compare(b.PerSecond, a.PerSecond) })
	slices.SortFunc(l.Paths, func(a, b pathTop) int {
		return cmp.Or(cmp.Compare(b.all(), a.all()), cmp.Compare(a.Path, b.Path))
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
		s.showPaths(w, l.Paths)
	})
	if err != nil {
		return err
	}
	return s.in.flush()
}

func (s *topState) showPaths(w io.Writer, paths []pathTop) {
	if s.sources[0].paths == nil {
		fmt.Fprintf(w, "\n%9s  %s\n", "CHANGES/S", "PATH (reads only with --admin)")
		for _, p := range paths {
			fmt.Fprintf(w, "%9.1f  %s\n", p.PerSecond, p.Path)
		}
	} else {
		fmt.Fprintf(w, "\n%9s %9s  %s\n", "READS/S", "WRITES/S", "PATH")
		for _, p := range paths {
			fmt.Fprintf(w, "%9.1f %9.1f  %s\n", *p.ReadsPerSecond, p.PerSecond, p.Path)
		}
	}
	fmt.Fprintln(w)
}
