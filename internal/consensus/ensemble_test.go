package consensus

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
)

// memberEvents records the events of one server of a test ensemble.
type memberEvents struct {
	leading atomic.Bool
	route   atomic.Bool
	lost    atomic.Int64
	unknown atomic.Int64
}

func (e *memberEvents) FateUnknown(tokens []uint64) { e.unknown.Add(int64(len(tokens))) }
func (e *memberEvents) LeaderChanged(int)           {}
func (e *memberEvents) Leading(l bool)              { e.leading.Store(l) }
func (e *memberEvents) Message(int, []byte)         {}
func (e *memberEvents) Route(open bool) {
	e.route.Store(open)
	if !open {
		e.lost.Add(1)
	}
}

// testServer is one server of a test ensemble.
type testServer struct {
	*Node
	config  Config
	journal *journal
	events  *memberEvents
}

// peerAddress is where a server will listen. Its port is none that the kernel
// gives to others meanwhile.
func peerAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(peer.FreePort(t)))
}

// ensemble starts n servers that know each other.
func ensemble(t *testing.T, n int) []*testServer {
	t.Helper()
	return ensembleWith(t, n, func(*Config) {})
}

// ensembleWith changes the configuration of each server before it starts.
func ensembleWith(t *testing.T, n int, change func(*Config)) []*testServer {
	t.Helper()
	var peers []Peer
	for i := 1; i <= n; i++ {
		peers = append(peers, Peer{ID: i, Address: peerAddress(t), Voter: true})
	}
	servers := make([]*testServer, n)
	for i, p := range peers {
		c := testConfig(t.TempDir())
		c.ServerID, c.Peers, c.PeerListen = p.ID, peers, p.Address
		if testing.Verbose() {
			c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("server", p.ID)
		}
		change(&c)
		servers[i] = &testServer{config: c}
		servers[i].open(t)
	}
	return servers
}

func (s *testServer) open(t *testing.T) {
	t.Helper()
	s.journal, s.events = newJournal(), &memberEvents{}
	n, err := Open(s.config, s.journal, s.events)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	s.Node = n
	t.Cleanup(func() { _ = n.Close() })
}

func eventuallyTrue(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// leaderOf waits for one leader and a route of all others to it.
func leaderOf(t *testing.T, servers []*testServer) (leader *testServer, others []*testServer) {
	t.Helper()
	eventuallyTrue(t, "one leads and the others follow", func() bool {
		leader, others = nil, nil
		for _, s := range servers {
			switch {
			case s.events.leading.Load():
				leader = s
			case s.events.route.Load():
				others = append(others, s)
			}
		}
		return leader != nil && len(others) == len(servers)-1
	})
	return leader, others
}

func TestThreeServersFormAndOrderProposalsOfEach(t *testing.T) {
	// A machine under load must not cost the leader its lease: a proposal of
	// unknown fate would be no fault, and this test counts every one.
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = 3 * time.Second })
	leaderOf(t, servers)
	const each = 200
	for i := range each {
		for k, s := range servers {
			eventuallyTrue(t, "a proposal is taken", func() bool {
				return s.Propose(uint64(k*each+i+1), fmt.Appendf(nil, "%d-%d", k, i)) == nil
			})
		}
	}
	for _, s := range servers {
		s.journal.await(t, 3*each)
	}
	want := servers[0].journal.list()
	for k, s := range servers {
		next := map[int]int{}
		for at, c := range s.journal.list() {
			if c != want[at] {
				t.Fatalf("server %d has %q at %d, server 1 %q", k+1, c, at, want[at])
			}
			var from, n int
			if _, err := fmt.Sscanf(c, "%d-%d", &from, &n); err != nil || n != next[from] {
				t.Fatalf("proposal %q of server %d comes before number %d", c, from+1, next[from])
			}
			next[from]++
		}
	}
}

func TestTheOthersGoOnWhenTheLeaderIsGoneAndItReturns(t *testing.T) {
	servers := ensemble(t, 3)
	for round := range 3 {
		leader, others := leaderOf(t, servers)
		if err := leader.Close(); err != nil {
			t.Fatal(err)
		}
		leaderOf(t, others)
		before := others[0].journal.len()
		eventuallyTrue(t, "a proposal is taken", func() bool { return others[0].Propose(1, fmt.Appendf(nil, "round %d", round)) == nil })
		for _, s := range others {
			s.journal.await(t, before+1)
		}
		leader.open(t)
		leader.journal.await(t, before+1)
	}
}
