package faults

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// link is what happens to bytes that one server sends another.
type link struct {
	// stalled bytes wait until the link is whole again, as TCP would keep on
	// sending them.
	stalled bool
	// delay is added to each piece of at most 32 KiB.
	delay time.Duration
	// every nth piece waits lossTime, as if a packet had been lost and sent
	// again; 0 for none.
	lossEvery int
	// bytesPerSecond is how much all connections together carry; 0 for no limit.
	bytesPerSecond int
}

// lossTime is what one lost packet costs: Linux's smallest retransmission time.
const lossTime = 200 * time.Millisecond

// pair names a direction: the bytes that from sends to.
type pair struct{ from, to int }

// fabric is the network between the servers: one proxy in front of each
// server's peer port, and the state of each direction.
type fabric struct {
	mu      sync.Mutex
	changed chan struct{}        // guarded by mu; closed when links change
	links   map[pair]link        // guarded by mu
	weather link                 // guarded by mu; of directions that no fault has hit
	busy    map[pair]time.Time   // guarded by mu; until when a limited direction is
	conns   map[*pipe]struct{}   // guarded by mu
	wg      sync.WaitGroup       // accept loops and pipes
	ended   chan struct{}        // closed at the end of the test
	targets map[int]string       // by server: where its peer port is; guarded by mu, read freely by the test itself
	fronts  map[int]net.Listener // by server: its proxy
}

// pipe is one proxied connection.
type pipe struct {
	from, to int    // who dialled whom
	kind     string // what the hello calls the connection: "raft", "stream", …
	a, b     net.Conn
}

func (p *pipe) close() {
	_ = p.a.Close()
	if p.b != nil {
		_ = p.b.Close()
	}
}

// newFabric opens a proxy for each server. targets says where their peer ports
// will be.
func newFabric(t testing.TB, targets map[int]string) *fabric {
	t.Helper()
	f := &fabric{
		changed: make(chan struct{}), links: map[pair]link{}, busy: map[pair]time.Time{}, conns: map[*pipe]struct{}{},
		ended: make(chan struct{}), targets: targets, fronts: map[int]net.Listener{},
	}
	for id := range targets {
		l := front(t)
		f.fronts[id] = l
		f.wg.Add(1)
		go f.accept(id, l)
	}
	t.Cleanup(func() {
		close(f.ended)
		for id := range f.targets {
			f.refuse(id)
		}
		f.closeConns(func(*pipe) bool { return true })
		f.wg.Wait()
	})
	return f
}

// front opens a proxy's port: one that the system gives to nobody else while the
// proxy refuses connections.
func front(t testing.TB) net.Listener {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", peer.FreePort(t)))
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("faults: %v", err)
		}
	}
}

// refuse makes a server's proxy refuse connections, as the port of a process
// that has died does; serveAgain ends that.
func (f *fabric) refuse(id int) { _ = f.fronts[id].Close() }

func (f *fabric) serveAgain(t testing.TB, id int) {
	t.Helper()
	l, err := net.Listen("tcp", f.address(id))
	if err != nil {
		t.Fatalf("faults: %v", err)
	}
	f.mu.Lock()
	f.fronts[id] = l
	f.mu.Unlock()
	f.wg.Add(1)
	go f.accept(id, l)
}

// move gives a server's proxy another address.
func (f *fabric) move(t testing.TB, id int) {
	t.Helper()
	l := front(t)
	f.mu.Lock()
	f.fronts[id] = l
	f.mu.Unlock()
	f.wg.Add(1)
	go f.accept(id, l)
}

// join opens a proxy for another server, or another one for a server that has
// moved: target is where its peer port will be.
func (f *fabric) join(t testing.TB, id int, target string) {
	t.Helper()
	if _, known := f.targets[id]; known {
		f.refuse(id)
	}
	f.mu.Lock()
	f.targets[id] = target
	f.mu.Unlock()
	f.move(t, id)
}

// address is where the other servers reach a server.
func (f *fabric) address(id int) string { return f.fronts[id].Addr().String() }

func (f *fabric) accept(to int, l net.Listener) {
	defer f.wg.Done()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		f.wg.Add(1)
		go f.serve(to, c)
	}
}

// serve finds out who dials, from the hello that begins every connection of
// the peer port, and joins the two ends.
func (f *fabric) serve(to int, a net.Conn) {
	defer f.wg.Done()
	p := &pipe{from: -1, to: to, a: a}
	if !f.add(p) {
		return
	}
	defer f.remove(p)
	first, from, kind := readHello(a)
	f.mu.Lock()
	p.from, p.kind = from, kind
	f.mu.Unlock()
	if !f.pass(pair{from, to}) {
		return
	}
	f.mu.Lock()
	target := f.targets[to]
	f.mu.Unlock()
	b, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		return
	}
	f.mu.Lock()
	p.b = b
	_, open := f.conns[p]
	f.mu.Unlock()
	if !open {
		_ = b.Close()
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		f.copy(pair{to, from}, a, b)
		p.close()
	}()
	f.copy(pair{from, to}, b, io.MultiReader(bytes.NewReader(first), a))
	p.close()
	<-back
}

// readHello returns what was read, the number of the server that dials, −1 for
// a stranger, and the kind of the connection.
func readHello(c net.Conn) (raw []byte, from int, kind string) {
	head := make([]byte, 4)
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	if n, err := io.ReadFull(c, head); err != nil {
		return head[:n], -1, ""
	}
	n := binary.BigEndian.Uint32(head)
	if n > 64<<10 {
		return head, -1, ""
	}
	body := make([]byte, n)
	read, err := io.ReadFull(c, body)
	raw = append(head, body[:read]...)
	var hello struct {
		From string `json:"from"`
		Kind string `json:"kind"`
	}
	if err != nil || json.Unmarshal(body, &hello) != nil {
		return raw, -1, ""
	}
	number, _, _ := strings.Cut(hello.From, "-")
	if from, err = strconv.Atoi(number); err != nil {
		return raw, -1, ""
	}
	return raw, from, hello.Kind
}

func (f *fabric) linkLocked(d pair) link {
	if l, hit := f.links[d]; hit {
		return l
	}
	return f.weather
}

// setWeather sets what directions are like that no fault has hit.
func (f *fabric) setWeather(l link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.weather = l
}

// pass waits until the direction lets bytes through; false at the end.
func (f *fabric) pass(d pair) bool {
	for {
		f.mu.Lock()
		stalled, changed := f.linkLocked(d).stalled, f.changed
		f.mu.Unlock()
		if !stalled {
			return true
		}
		select {
		case <-changed:
		case <-f.ended:
			return false
		}
	}
}

// wait is how long a piece of n bytes waits.
func (f *fabric) wait(d pair, piece, n int) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.linkLocked(d)
	wait := l.delay
	if l.lossEvery > 0 && piece%l.lossEvery == 0 {
		wait += lossTime
	}
	if l.bytesPerSecond > 0 {
		now := time.Now()
		if f.busy[d].Before(now) {
			f.busy[d] = now
		}
		f.busy[d] = f.busy[d].Add(time.Second * time.Duration(n) / time.Duration(l.bytesPerSecond))
		wait += f.busy[d].Sub(now)
	}
	return wait
}

func (f *fabric) copy(d pair, to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for piece := 1; ; piece++ {
		n, err := from.Read(buf)
		if n > 0 {
			if wait := f.wait(d, piece, n); wait > 0 {
				select {
				case <-time.After(wait):
				case <-f.ended:
					return
				}
			}
			if !f.pass(d) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (f *fabric) add(p *pipe) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.ended:
		_ = p.a.Close()
		return false
	default:
	}
	f.conns[p] = struct{}{}
	return true
}

func (f *fabric) remove(p *pipe) {
	f.mu.Lock()
	delete(f.conns, p)
	f.mu.Unlock()
	p.close()
}

// closeConns resets the connections that are chosen.
func (f *fabric) closeConns(chosen func(*pipe) bool) {
	f.mu.Lock()
	var all []*pipe
	for p := range f.conns {
		if chosen(p) {
			all = append(all, p)
		}
	}
	f.mu.Unlock()
	for _, p := range all {
		p.close()
	}
}

// set changes directions.
func (f *fabric) set(change map[pair]link) {
	f.mu.Lock()
	for d, l := range change {
		f.links[d] = l
	}
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
}

// heal makes the network whole.
func (f *fabric) heal() {
	f.mu.Lock()
	f.links = map[pair]link{}
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
}
