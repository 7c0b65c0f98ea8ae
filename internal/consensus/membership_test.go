package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// company is a test ensemble whose membership changes.
type company struct {
	t       *testing.T
	servers map[int]*testServer
	peers   map[int]Peer // of all servers there have been
	next    int          // the next command
}

func newCompany(t *testing.T, n int) *company {
	t.Helper()
	c := &company{t: t, servers: map[int]*testServer{}, peers: map[int]Peer{}}
	for i := 1; i <= n; i++ {
		c.address(i)
	}
	for i := 1; i <= n; i++ {
		c.start(i, c.list(numbersTo(n)...))
	}
	return c
}

func numbersTo(n int) (ids []int) {
	for i := 1; i <= n; i++ {
		ids = append(ids, i)
	}
	return ids
}

// address gives a server a new address.
func (c *company) address(id int) {
	c.t.Helper()
	c.peers[id] = Peer{ID: id, Address: peerAddress(c.t), Voter: true}
}

// list is the membership of these servers; a negative number is an observer.
func (c *company) list(ids ...int) (peers []Peer) {
	for _, id := range ids {
		p := c.peers[max(id, -id)]
		p.Voter = id > 0
		peers = append(peers, p)
	}
	return peers
}

// start starts a server with an empty directory and a list of its own.
func (c *company) start(id int, peers []Peer) {
	c.t.Helper()
	config := testConfig("")
	config.LogStore, config.Memory = LogStoreMemory, NewMemory()
	config.ServerID, config.Peers, config.PeerListen = id, peers, c.peers[id].Address
	config.StreamTimeout = time.Second
	config.Logger = verboseLogger(id)
	s := &testServer{config: config}
	s.open(c.t)
	c.servers[id] = s
}

// verboseLogger is a server's log: kept only by go test -v.
func verboseLogger(id int) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("server", id)
}

func (c *company) stop(id int) {
	c.t.Helper()
	if err := c.servers[id].Close(); err != nil {
		c.t.Fatal(err)
	}
	delete(c.servers, id)
}

func (c *company) leader() *testServer {
	c.t.Helper()
	var leader *testServer
	eventuallyTrue(c.t, "one of them leads", func() bool {
		for _, s := range c.servers {
			if s.events.leading.Load() {
				leader = s
			}
		}
		return leader != nil
	})
	return leader
}

// want tells all running servers of another membership and waits for it.
func (c *company) want(ids ...int) {
	c.t.Helper()
	peers := c.list(ids...)
	for _, s := range c.servers {
		if err := s.SetMembership(peers); err != nil {
			c.t.Fatal(err)
		}
	}
	eventuallyTrue(c.t, "the membership is the wanted one", func() bool {
		leader := c.leader()
		return leader.leading.Load() && leader.Membership().Settled
	})
	m := c.leader().Membership()
	slices.SortFunc(peers, func(a, b Peer) int { return a.ID - b.ID })
	if !slices.Equal(m.Current, peers) {
		c.t.Fatalf("members %v, want %v", m.Current, peers)
	}
	c.write(ids...)
}

// write writes at each of these servers and waits until all have it.
func (c *company) write(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		c.next++
		s := c.servers[max(id, -id)]
		if s == nil {
			continue
		}
		text := fmt.Sprintf("command %d.", c.next)
		var proposed time.Time
		eventuallyTrue(c.t, fmt.Sprintf("what server %d proposes is applied by all", id), func() bool {
			if time.Since(proposed) > 2*time.Second && s.Propose(uint64(c.next), []byte(text)) == nil {
				proposed = time.Now() // one may be lost in an election
			}
			return !slices.ContainsFunc(ids, func(other int) bool {
				o := c.servers[max(other, -other)]
				return o != nil && !strings.Contains(strings.Join(o.journal.list(), ""), text)
			})
		})
	}
}

func TestAnEnsembleGrowsAndShrinksWhileItServes(t *testing.T) {
	c := newCompany(t, 3)
	c.write(1, 2, 3)
	for _, id := range []int{4, 5} {
		c.address(id)
	}
	for _, id := range []int{4, 5} {
		c.start(id, c.list(1, 2, 3, 4, 5))
	}
	c.want(1, 2, 3, 4, 5)
	c.want(1, -2, 3, 4, -5)
	c.want(-1, 2, 3, 4, 5) // the leader may be among them
	c.want(3, 4, 5)
	c.stop(1)
	c.stop(2)
	c.want(4)
}

// A whole ensemble is replaced by other servers, whose number nobody knew.
func TestAllServersAreReplacedByOthers(t *testing.T) {
	c := newCompany(t, 3)
	c.write(1, 2, 3)
	for _, id := range []int{11, 12, 13} {
		c.address(id)
	}
	for _, id := range []int{11, 12, 13} {
		c.start(id, c.list(1, 2, 3, 11, 12, 13))
	}
	c.want(11, 12, 13)
	// Those that were removed say so.
	for _, id := range []int{1, 2, 3} {
		eventuallyTrue(t, "a removed server says that it is no member", func() bool {
			return strings.Contains(c.servers[id].Status().NotReady, "no member of the ensemble any more")
		})
	}
	// And can come back.
	c.want(1, 11, 12, 13)
	eventuallyTrue(t, "server 1 is a member again and says nothing else", func() bool { return c.servers[1].Status().NotReady == "" })
}

// Its own log tells it, when nobody is left who could, and after a restart.
func TestAServerThatWasRemovedSaysSoWhenTheOthersAreGone(t *testing.T) {
	c := newCompany(t, 3)
	leader := c.leader().config.ServerID
	gone := leader%3 + 1
	left := slices.DeleteFunc([]int{1, 2, 3}, func(id int) bool { return id == gone })
	c.want(left...)
	s := c.servers[gone]
	says := func() bool { return strings.Contains(s.Status().NotReady, "no member of the ensemble any more") }
	eventuallyTrue(t, "its log has the removal", func() bool { return !s.isMember(s.stable.identity().raftID()) })
	for _, id := range left {
		c.stop(id)
	}
	eventuallyTrue(t, "it says so", says)
	c.stop(gone)
	s.open(t)
	eventuallyTrue(t, "it says so after a restart", says)
}

// Who is left without a majority names the others, and what is wrong with each,
// until there is a leader again.
func TestAServerWithoutAMajoritySaysWhoIsMissing(t *testing.T) {
	c := newCompany(t, 3)
	c.leader()
	s, second := c.servers[1], c.servers[2]
	c.stop(2)
	c.stop(3)
	eventuallyTrue(t, "it names the two that are gone", func() bool {
		return s.Status().NotReady == "no leader is known: 1 of 3 participants are there and 2 are needed: server 2 does not answer, server 3 does not answer"
	})
	c.start(3, c.list(1, 2, 3)) // with an empty directory
	eventuallyTrue(t, "it tells the one that lost its data from the one that is gone", func() bool {
		return strings.HasSuffix(s.Status().NotReady, "server 2 does not answer, server 3 has come back without its data")
	})
	second.open(t)
	eventuallyTrue(t, "there is a leader again", func() bool { return s.Status().NotReady == "" })
}

func TestALeaderThatIsToGoHandsOver(t *testing.T) {
	c := newCompany(t, 3)
	for range 2 {
		leader := c.leader().config.ServerID
		others := slices.DeleteFunc([]int{1, 2, 3}, func(id int) bool { return id == leader })
		c.want(append(others, -leader)...)
		c.want(others...)
		c.want(1, 2, 3)
	}
}

// A change that names a server which is not there goes as far as it can: others
// are removed, be it the leader itself.
func TestARemovalDoesNotWaitForAServerThatIsAbsent(t *testing.T) {
	c := newCompany(t, 3)
	c.write(1, 2, 3)
	c.address(4)
	for _, leads := range []bool{false, true} {
		gone := c.leader().config.ServerID
		if !leads {
			gone = gone%3 + 1
		}
		rest := slices.DeleteFunc([]int{1, 2, 3}, func(id int) bool { return id == gone })
		for _, s := range c.servers {
			if err := s.SetMembership(c.list(append(rest, 4)...)); err != nil {
				t.Fatal(err)
			}
		}
		eventuallyTrue(t, fmt.Sprintf("server %d is removed", gone), func() bool {
			return slices.Equal(c.leader().Membership().Current, c.list(rest...))
		})
		c.want(1, 2, 3)
	}
}

// A voter is not removed when those that are left and can be reached would be
// no majority; a dead one is.
func TestALiveServerStaysWhileTheOthersWouldBeNoMajority(t *testing.T) {
	c := newCompany(t, 3)
	c.write(1, 2, 3)
	c.stop(1)
	for _, s := range c.servers {
		if err := s.SetMembership(c.list(1, 2)); err != nil {
			t.Fatal(err)
		}
	}
	eventuallyTrue(t, "server 2 leads and says what it waits for", func() bool {
		if c.servers[3].leading.Load() {
			_ = c.servers[3].TransferLeadership() // it goes, but nobody could go on
		}
		m := c.servers[2].Membership()
		return strings.Contains(m.WaitsFor, "a majority") && len(m.Current) == 3
	})
	c.want(2, 3)
}

// A member that waits for SetMembership leaves Raft's configuration alone.
func TestAStaleListAtTheStartChangesNothing(t *testing.T) {
	c := newCompany(t, 3)
	c.address(4)
	c.start(4, c.list(1, 2, 3, 4))
	c.want(1, 2, 3, 4)
	for id, s := range c.servers {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.config.Peers, s.config.MembershipIsSet = c.list(1, 2, 3), true
		if id == 4 {
			s.config.Peers = c.list(1, 2, 3, 4)
		}
	}
	for _, s := range c.servers {
		s.open(t)
	}
	c.write(1, 2, 3, 4)
	if m := c.leader().Membership(); len(m.Current) != 4 {
		t.Errorf("membership %+v", m)
	}
	c.want(1, 2, 3)
}

func TestAMembershipThatNoEnsembleCanHaveIsRefused(t *testing.T) {
	for name, peers := range map[string][]Peer{
		"nobody":           {},
		"only an observer": {{ID: 1, Address: "a:1"}},
		"a number twice":   {{ID: 1, Address: "a:1", Voter: true}, {ID: 1, Address: "b:1", Voter: true}},
		"no address":       {{ID: 1, Voter: true}},
		"a wrong number":   {{ID: 256, Address: "a:1", Voter: true}},
	} {
		if err := checkMembership(peers); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// again stops these servers and starts them with the lines as they are now.
func (c *company) again(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		if err := c.servers[id].Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, id := range ids {
		s := c.servers[id]
		s.config.Peers, s.config.PeerListen = c.list(ids...), c.peers[id].Address
		s.open(c.t)
	}
}
