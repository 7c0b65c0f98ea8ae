package consensus

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// roads is the network of a test whose servers have several addresses: it notes
// what is dialled, and some of the addresses are cut.
type roads struct {
	mu     sync.Mutex
	cut    map[string]bool
	silent bool // a dial of an address that is cut takes all its time
	dialed []string
	open   map[string][]net.Conn
}

func (r *roads) dial(to Peer, timeout time.Duration) (net.Conn, error) {
	r.mu.Lock()
	cut, silent := r.cut[to.Address], r.silent
	r.dialed = append(r.dialed, to.Address)
	r.mu.Unlock()
	if cut {
		if silent {
			<-time.After(timeout)
		}
		return nil, errors.New("cut")
	}
	conn, err := net.DialTimeout("tcp", to.Address, timeout)
	if err == nil {
		r.mu.Lock()
		r.open[to.Address] = append(r.open[to.Address], conn)
		r.mu.Unlock()
	}
	return conn, err
}

// close cuts addresses, with all connections to them, and heals all others.
func (r *roads) close(addresses []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = map[string]bool{}
	for _, one := range addresses {
		r.cut[one] = true
		for _, conn := range r.open[one] {
			_ = conn.Close()
		}
		delete(r.open, one)
	}
}

func (r *roads) take() (dialed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dialed, r.dialed = r.dialed, nil
	return dialed
}

// twoRoads starts three servers with two addresses each.
func twoRoads(t *testing.T) (servers []*testServer, r *roads, first, second []string) {
	t.Helper()
	r = &roads{cut: map[string]bool{}, open: map[string][]net.Conn{}}
	var peers []Peer
	for i := 1; i <= 3; i++ {
		a, b := peerAddress(t), peerAddress(t)
		first, second = append(first, a), append(second, b)
		peers = append(peers, Peer{ID: i, Address: a + addressBar + b, Voter: true})
	}
	for _, p := range peers {
		c := testConfig(t.TempDir())
		c.ServerID, c.Peers, c.PeerListen, c.PeerDial = p.ID, peers, p.Address, r.dial
		c.ElectionTimeout = 3 * time.Second // a busy machine must not cost the leader its lease
		s := &testServer{config: c}
		s.open(t)
		servers = append(servers, s)
	}
	return servers, r, first, second
}

// One of each server's two addresses is cut, then the other one: the leader stays,
// and the others are back at once.
func TestServersReachEachOtherAtTheAddressThatIsLeft(t *testing.T) {
	servers, r, first, second := twoRoads(t)
	leader, others := leaderOf(t, servers)
	term := leader.Status().Term
	for round, cut := range [][]string{first, second, first} {
		lost := others[0].events.lost.Load() + others[1].events.lost.Load()
		r.close(cut)
		for _, o := range others { // those whose stream went that way are back
			text := fmt.Sprintf("round %d of server %d", round, o.config.ServerID)
			proposed := int64(-1) // over which way to the leader; what was on it when it broke may be lost
			eventuallyTrue(t, text+" is applied by the leader", func() bool {
				if way := o.events.lost.Load(); way != proposed && o.Propose(1, []byte(text)) == nil {
					proposed = way
				}
				return slices.Contains(leader.journal.list(), text)
			})
		}
		if now := leader.Status(); !now.Leading || now.Term != term {
			t.Fatalf("round %d cost the leader its office: %+v", round, now)
		}
		if again := others[0].events.lost.Load() + others[1].events.lost.Load() - lost; again > 2 {
			t.Errorf("round %d broke %d ways to the leader, there are two", round, again)
		}
	}
}

// What answered last is dialled first, so that an address that swallows what is
// sent costs its time once.
func TestTheAddressThatLastAnsweredIsDialledFirst(t *testing.T) {
	servers, r, first, second := twoRoads(t)
	leaderOf(t, servers)
	asks := servers[0]
	to := asks.config.Peers[1]
	dials := func() (dialed []string) {
		t.Helper()
		r.take()
		if _, ok := asks.probe(to, probeTimeout); !ok {
			t.Fatal("the server does not answer at either address")
		}
		for _, one := range r.take() { // others may dial meanwhile
			if slices.Contains(addressesOf(to.Address), one) {
				dialed = append(dialed, one)
			}
		}
		return dialed
	}
	r.mu.Lock()
	r.cut, r.silent = map[string]bool{first[1]: true}, true
	r.mu.Unlock()
	dials()
	if got := dials(); got[0] != second[1] || slices.Contains(got, first[1]) {
		t.Errorf("dialled %v, the second address %s had answered", got, second[1])
	}
	r.mu.Lock()
	r.cut = map[string]bool{second[1]: true}
	r.mu.Unlock()
	if got := dials(); !slices.Contains(got, first[1]) {
		t.Errorf("dialled %v, without the address that is left, %s", got, first[1])
	}
}

// A refusal by the server that was asked for holds at all its addresses; what
// answers at one of them and is another server does not hide it at the others.
func TestAnotherServerAtAnAddressIsPassedOver(t *testing.T) {
	servers, r, first, second := twoRoads(t)
	leaderOf(t, servers)
	asks := servers[0]
	wrong := Peer{ID: 3, Address: first[1] + addressBar + second[2]}
	if w, ok := asks.probe(wrong, probeTimeout); !ok || !strings.HasPrefix(w.ID, "3-") {
		t.Errorf("server 3 is not found behind server 2's address: %v, %s", ok, w.ID)
	}
	r.take()
	_, _, err := asks.greet(kindStream, "3-1", asks.config.Peers[2].Address, helloTimeout)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "was replaced") {
		t.Errorf("server 3 with another incarnation: %v", err)
	}
}

func TestAPeerPortListensAtEachAddressThatCanBeOpened(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	n := &Node{cfg: DefaultConfig(""), logger: testConfig("").Logger}
	free := peerAddress(t)
	n.cfg.PeerListen = taken.Addr().String() + addressBar + free
	p, err := n.openPeerPort()
	if err != nil || p.addr().String() != free {
		t.Fatalf("listens at %v, %v", p, err)
	}
	n.port = p
	if err := n.MovePeerPort(free + addressBar + taken.Addr().String()); err == nil || len(p.listeners) != 1 {
		t.Errorf("moved to an address that is taken: %v, %v", err, p.listeners)
	}
	_ = p.listeners[free].Close()
	n.cfg.PeerListen = taken.Addr().String()
	if _, err := n.openPeerPort(); err == nil {
		t.Error("listens although its only address is taken")
	}
}

func TestAPeerPortMovesToOtherAddressesAndKeepsThoseThatStay(t *testing.T) {
	servers, _, first, second := twoRoads(t)
	leader, _ := leaderOf(t, servers)
	id := leader.config.ServerID
	third := peerAddress(t)
	if err := leader.MovePeerPort(second[id-1] + addressBar + third); err != nil {
		t.Fatal(err)
	}
	asks := servers[id%3]
	for _, c := range []struct {
		address string
		answers bool
	}{{second[id-1], true}, {third, true}, {first[id-1], false}} {
		if _, ok := asks.probe(Peer{ID: id, Address: c.address}, helloTimeout); ok != c.answers {
			t.Errorf("at %s the server answers: %v, want %v", c.address, ok, c.answers)
		}
	}
}
