package faults

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// tick is the servers' tickTime in these tests, and syncLimit its multiple
// after which a server without a leader drops its clients.
const (
	tick      = 500 * time.Millisecond
	syncLimit = 4
)

// ensemble is a number of server processes with a proxy between them.
type ensemble struct {
	t       testing.TB
	net     *fabric
	servers map[int]*peer.Server
	ids     []int
	// controls are those of the crooked servers, nil if they are ordinary ones.
	controls map[int]*control
	options  options
	// lines are the right sides of the members' server lines.
	lines map[int]string
	// former are the processes whose number another one has taken.
	former []*peer.Server
	// open is what clients may connect to; they read it while members change.
	open atomic.Pointer[[]door]
}

// door is where clients reach a server.
type door struct {
	id      int
	address string
}

// options changes how an ensemble is made.
type options struct {
	servers int
	// observers are so many more, with the last numbers.
	observers int
	config    map[string]string
	defines   map[string]string // Java properties
	// crooked servers have a machine that can be made to fail.
	crooked bool
	// store is their log store; "" for the one of the whole run.
	store string
	// dataDir says where a server keeps its data; "" for a fresh directory.
	dataDir func(id int) string
	// members says how their list can change, if it is to.
	members wayOfChange
	// smallDisk is the server whose data are on a disk that can be filled, at
	// smallDiskAt; 0 for none.
	smallDisk   int
	smallDiskAt string
}

// start makes an ensemble and waits until all of it serves.
func start(t testing.TB, o options) *ensemble {
	t.Helper()
	e := launch(t, o)
	e.awaitAll()
	return e
}

// launch is start without the wait.
func launch(t testing.TB, o options) *ensemble {
	t.Helper()
	if o.servers == 0 {
		o.servers = 3
	}
	if o.store == "" {
		o.store = peer.LogStore()
	}
	e := &ensemble{t: t, servers: map[int]*peer.Server{}, options: o, lines: map[int]string{}}
	targets := map[int]string{}
	for id := 1; id <= o.servers+o.observers; id++ {
		e.ids = append(e.ids, id)
		targets[id] = e.freeAddress()
	}
	e.net = newFabric(t, targets)
	for _, id := range e.ids {
		role := participant
		if id > o.servers {
			role = observer
		}
		e.name(id, role, "")
	}
	for _, id := range e.ids {
		e.add(id)
	}
	e.openDoors()
	return e
}

func (e *ensemble) freeAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(peer.FreePort(e.t)))
}

// name gives a server its line, with the address of its proxy. A reconfig needs
// the address for clients in it too: client, or a new one if that is "".
func (e *ensemble) name(id int, role, client string) {
	host, port, _ := net.SplitHostPort(e.net.address(id)) // an address of ours always splits
	e.lines[id] = fmt.Sprintf("%s:%s:%d:%s", host, port, peer.FreePort(e.t), role)
	if e.options.members == byReconfig {
		e.lines[id] += ";" + cmp.Or(client, e.freeAddress())
	}
}

// role is what a server's line says.
func (e *ensemble) role(id int) string {
	peers, _, _ := strings.Cut(e.lines[id], ";")
	return peers[strings.LastIndex(peers, ":")+1:]
}

// file is the server lines as all files should have them, in membersIn's order.
func (e *ensemble) file() (lines []string) {
	for id, line := range e.lines {
		lines = append(lines, fmt.Sprintf("server.%d=%s", id, line))
	}
	slices.Sort(lines)
	return lines
}

// openDoors tells clients who can be connected to.
func (e *ensemble) openDoors() {
	var open []door
	for _, id := range e.ids {
		open = append(open, door{id, e.address(id)})
	}
	e.open.Store(&open)
}

// doors is who can be connected to.
func (e *ensemble) doors() []door { return *e.open.Load() }

// add starts a server with an empty directory.
func (e *ensemble) add(id int) {
	e.t.Helper()
	o := e.options
	config := map[string]string{
		"tickTime": strconv.FormatInt(tick.Milliseconds(), 10), "initLimit": "20", "syncLimit": strconv.Itoa(syncLimit),
		"peerListenAddress": e.net.targets[id], "4lw.commands.whitelist": "*", "maxClientCnxns": "0",
		"snapCount": "2000", "raftLogStore": o.store,
	}
	if e.role(id) == observer {
		config["peerType"] = observer
	}
	if _, client, ok := strings.Cut(e.lines[id], ";"); ok {
		config["clientPortAddress"], config["clientPort"], _ = net.SplitHostPort(client) // an address of ours always splits
	}
	maps.Copy(config, o.config)
	maps.Copy(config, o.members.config())
	dir := filepath.Join(e.t.TempDir(), "data")
	if o.dataDir != nil {
		if d := o.dataDir(id); d != "" {
			dir = d
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		e.t.Fatal(err)
	}
	writeMyID(e.t, dir, id)
	start := peer.Options{Config: config, Defines: o.members.defines(o.defines), Lines: e.file(), DataDir: dir, NoWait: true}
	if o.crooked {
		c := &control{settings: filepath.Join(e.t.TempDir(), "settings"), address: e.freeAddress()}
		start.Program, start.Env = "./test/faults/crooked", c.env()
		if e.controls == nil {
			e.controls = map[int]*control{}
		}
		e.controls[id] = c
	}
	s := peer.StartZooraft(e.t, start)
	e.servers[id] = s
	e.t.Cleanup(func() {
		if e.t.Failed() || os.Getenv("FAULTS_LOGS") != "" {
			keepLog(e.t, id, s)
		}
	})
}

func writeMyID(t testing.TB, dir string, id int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// keepLog shows the end of a server's log beside a failure, and keeps the
// whole where FAULTS_LOGS says.
func keepLog(t testing.TB, id int, s *peer.Server) {
	text := s.Log()
	if dir := os.Getenv("FAULTS_LOGS"); dir != "" {
		_, port, _ := strings.Cut(s.Address, ":")
		path := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.log", strings.ReplaceAll(t.Name(), "/", "_"), id, port))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Logf("keeping a log: %v", err)
		}
	}
	if !t.Failed() {
		return
	}
	// What there is most of says least.
	text = strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.Contains(line, "snapshot taken") || strings.Contains(line, "whose time is up") || strings.Contains(line, "closed the connection")
	}), "\n")
	if len(text) > 3000 {
		text = "…" + text[len(text)-3000:]
	}
	t.Logf("the end of server %d's log:\n%s", id, text)
}

// address is a server's client address.
func (e *ensemble) address(id int) string { return e.servers[id].Address }

// running tells whether a server's process lives.
func (e *ensemble) running(id int) bool {
	select {
	case <-e.servers[id].Done():
		return false
	default:
		return true
	}
}

// srvr is what a server says of itself; empty if it does not serve.
func (e *ensemble) srvr(id int) string {
	text, err := peer.Word(e.address(id), "srvr")
	if err != nil {
		return ""
	}
	return text
}

// field takes a value out of srvr's text.
func field(text, name string) string {
	for _, line := range strings.Split(text, "\n") {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// leader waits for a server that says that it leads, among those given.
func (e *ensemble) leader(among ...int) int {
	e.t.Helper()
	found := 0
	e.eventually("one of the servers leads", func() bool {
		for _, id := range among {
			if e.running(id) && field(e.srvr(id), "Mode") == "leader" {
				found = id
				return true
			}
		}
		return false
	})
	return found
}

// others are all servers but one.
func (e *ensemble) others(id int) []int {
	var out []int
	for _, o := range e.ids {
		if o != id {
			out = append(out, o)
		}
	}
	return out
}

// patience bounds what an ensemble may need to heal. It only ends a broken
// test: the machine may be loaded.
const patience = 60 * time.Second

func (e *ensemble) eventually(what string, ok func() bool) {
	e.t.Helper()
	e.within(patience, what, ok)
}

func (e *ensemble) within(patience time.Duration, what string, ok func() bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			e.t.Fatalf("did not happen: %s", what)
		case <-poll.C:
		}
	}
}

// awaitAll waits until every server takes clients.
func (e *ensemble) awaitAll() {
	e.t.Helper()
	for _, id := range e.ids {
		e.eventually(fmt.Sprintf("server %d takes clients", id), func() bool {
			if !e.running(id) {
				e.t.Fatalf("server %d has ended", id)
			}
			return e.takesClients(id)
		})
	}
}

func (e *ensemble) takesClients(id int) bool {
	c, err := dial(e.address(id), 0, nil, 0)
	if err != nil {
		return false
	}
	c.Drop()
	return true
}

// kill ends a server's process with SIGKILL, and its peer port with it.
func (e *ensemble) kill(id int) {
	e.net.refuse(id)
	e.servers[id].Kill(e.t)
}

// stop ends a server's process with SIGTERM.
func (e *ensemble) stop(id int) {
	e.servers[id].Stop(e.t)
	e.net.refuse(id)
}

// restart starts a server whose process has ended.
func (e *ensemble) restart(id int) {
	e.net.serveAgain(e.t, id)
	e.servers[id].Launch(e.t)
}

func (e *ensemble) signal(id int, s syscall.Signal) { e.servers[id].Signal(e.t, s) }

// wipe removes all data of a server that does not run, but its myid.
func (e *ensemble) wipe(id int) {
	e.t.Helper()
	dir := e.servers[id].DataDir
	entries, err := os.ReadDir(dir)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			e.t.Fatal(err)
		}
	}
	writeMyID(e.t, dir, id)
}

// cut stalls all bytes between two groups, both ways; reset also ends the
// connections that there are.
func (e *ensemble) cut(one, two []int, reset bool) {
	change := map[pair]link{}
	crosses := map[pair]bool{}
	for _, a := range one {
		for _, b := range two {
			change[pair{a, b}], change[pair{b, a}] = link{stalled: true}, link{stalled: true}
			crosses[pair{a, b}], crosses[pair{b, a}] = true, true
		}
	}
	e.net.set(change)
	if reset {
		e.net.closeConns(func(p *pipe) bool { return crosses[pair{p.from, p.to}] })
	}
}

// cutOneWay stalls what one server sends another.
func (e *ensemble) cutOneWay(from, to int) { e.net.set(map[pair]link{{from, to}: {stalled: true}}) }
