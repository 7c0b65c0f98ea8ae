package consensus

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// neighbours are three addresses for servers with directories of their own.
func neighbours(t *testing.T) (peers []Peer, member func(id int, dir string) Config) {
	t.Helper()
	return neighboursFrom(t, 1)
}

// neighboursFrom are those with these numbers.
func neighboursFrom(t *testing.T, first int) (peers []Peer, member func(id int, dir string) Config) {
	t.Helper()
	for id := first; id < first+3; id++ {
		peers = append(peers, Peer{ID: id, Address: peerAddress(t), Voter: true})
	}
	return peers, func(id int, dir string) Config {
		c := testConfig(dir)
		c.ServerID, c.Peers, c.PeerListen = id, peers, peers[id-first].Address
		c.StreamTimeout = time.Second
		return c
	}
}

// holds waits until the servers have taken a command each, and all commands.
func holds(t *testing.T, servers []*testServer, want []string, more ...string) []string {
	t.Helper()
	for i, text := range more {
		s := servers[i%len(servers)]
		eventuallyTrue(t, "a proposal is taken", func() bool { return s.Propose(uint64(len(want)+1), []byte(text)) == nil })
		want = append(want, text)
		for _, s := range servers {
			eventuallyTrue(t, "all have it", func() bool { return slices.Equal(s.journal.list(), want) })
		}
	}
	return want
}

func TestAServerAloneBecomesTheFirstOfAnEnsembleAndBack(t *testing.T) {
	eachLogStore(t, func(t *testing.T, alone Config) { becomesTheFirstAndBack(t, alone, 1, 2) })
	// The number that a server alone has as well.
	t.Run("as number 0", func(t *testing.T) { becomesTheFirstAndBack(t, testConfig(t.TempDir()), 0, 0) })
}

// becomesTheFirstAndBack has three members, of which the lowest number and that
// of the server alone are given.
func becomesTheFirstAndBack(t *testing.T, alone Config, lowest, number int) {
	peers, member := neighboursFrom(t, lowest)
	n := start(t, alone)
	want := numbered(1, 20)
	n.write(t, want...)
	n.close(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	own := number - lowest
	dirs[own] = alone.DataDir
	// Twice: the second time the others have what they had when they left.
	for round := range 2 {
		var servers []*testServer
		for i, dir := range dirs {
			c := member(lowest+i, dir)
			c.LogStore = alone.LogStore
			s := &testServer{config: c}
			s.open(t)
			servers = append(servers, s)
		}
		leaderOf(t, servers)
		want = holds(t, servers, want, "one", "two", "three")
		last, only := servers[own], peers[own:own+1]
		eventuallyTrue(t, "the server is the only member", func() bool {
			for _, s := range servers {
				_ = s.SetMembership(only)
			}
			m := last.Membership()
			return last.events.leading.Load() && m.Settled && slices.Equal(m.Current, only)
		})
		want = holds(t, servers[own:own+1], want, "last")
		for _, s := range servers {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		n := start(t, alone)
		n.journal.await(t, len(want))
		n.write(t, "alone")
		want = append(want, "alone")
		requireCommands(t, n.journal, want)
		n.close(t)
		if round == 0 {
			n := start(t, alone)
			n.journal.await(t, len(want))
			n.close(t)
		}
	}
}

// At each moment of it the data are whole, and both files start.
func TestAServerThatIsKilledWhileItChangesItsNumberGoesOnOrBack(t *testing.T) {
	member := false // of Alone
	moments := []struct {
		name string
		kill func(t *testing.T, n *Node, number int, address string)
	}{
		{"before Raft's configuration", func(t *testing.T, n *Node, number int, _ string) {
			was := n.id.ServerID
			if err := n.stable.update(func(i *identity) { i.ServerID, i.Former, i.Alone = number, &was, &member }); err != nil {
				t.Fatal(err)
			}
		}},
		{"after Raft's configuration", func(t *testing.T, n *Node, number int, address string) {
			was := n.id.ServerID
			if err := n.stable.update(func(i *identity) { i.ServerID, i.Former, i.Alone = number, &was, &member }); err != nil {
				t.Fatal(err)
			}
			id := n.stable.identity().raftID()
			if err := n.rewriteMembers(raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(address)}, n.fsm); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, moment := range moments {
		for _, c := range []struct {
			name   string
			number int
			back   bool
		}{{"on", 1, false}, {"back", 1, true}, {"on, as number 0", 0, false}, {"back, as number 0", 0, true}} {
			t.Run(moment.name+", "+c.name, func(t *testing.T) {
				peers, member := neighboursFrom(t, c.number)
				alone := testConfig(t.TempDir())
				n := start(t, alone)
				want := numbered(1, 20)
				n.write(t, want...)
				n.close(t)
				killedWhileItOpens(t, alone, func(n *Node) { moment.kill(t, n, c.number, peers[0].Address) })
				for _, store := range []string{LogStoreBolt, LogStoreWAL} { // a log can be moved at each moment
					if _, err := MoveLog(alone, store); err != nil {
						t.Fatal(err)
					}
				}
				if c.back {
					n := start(t, alone)
					n.journal.await(t, len(want))
					requireCommands(t, n.journal, want)
					return
				}
				var servers []*testServer
				for i, dir := range []string{alone.DataDir, t.TempDir(), t.TempDir()} {
					s := &testServer{config: member(c.number+i, dir)}
					s.open(t)
					servers = append(servers, s)
				}
				leaderOf(t, servers)
				holds(t, servers, want, "one", "two", "three")
			})
		}
	}
}

// killedWhileItOpens opens a server's files, does part of a start, and lets go
// of them.
func killedWhileItOpens(t *testing.T, c Config, part func(*Node)) {
	t.Helper()
	n := newNode(c, newJournal(), nil)
	defer close(n.opened)
	locks, err := c.layout().lock()
	if err != nil {
		t.Fatal(err)
	}
	n.locks = locks
	if err := n.openFiles(); err != nil {
		t.Fatal(err)
	}
	part(n)
	if err := n.closeFiles(); err != nil {
		t.Fatal(err)
	}
}

// Nor is the one with the number that a server alone has as well; and its data
// are no other member's.
func TestAMemberOfSeveralWithTheNumberZeroIsNoServerAlone(t *testing.T) {
	peers, member := neighboursFrom(t, 0)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var servers []*testServer
	for id, dir := range dirs {
		s := &testServer{config: member(id, dir)}
		s.open(t)
		servers = append(servers, s)
	}
	leaderOf(t, servers)
	want := holds(t, servers, nil, "one", "two", "three")
	if err := servers[0].Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(testConfig(dirs[0]), newJournal(), newObserver())
	if !errors.Is(err, ErrIdentityMismatch) || !strings.Contains(err.Error(), "server 0 of an ensemble of 3") {
		t.Errorf("alone: %v", err)
	}
	other := member(1, dirs[0])
	other.PeerListen = peers[0].Address
	if _, err := Open(other, newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) {
		t.Errorf("under the number of another member: %v", err)
	}
	servers[0].open(t)
	holds(t, servers, want, "four")
}

func TestAMemberOfSeveralIsNoServerAlone(t *testing.T) {
	servers := ensemble(t, 3)
	leaderOf(t, servers)
	want := holds(t, servers, nil, "one", "two", "three")
	for _, s := range servers {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(testConfig(servers[0].config.DataDir), newJournal(), newObserver())
	if !errors.Is(err, ErrIdentityMismatch) || !strings.Contains(err.Error(), "server 1 of an ensemble of 3") || !strings.Contains(err.Error(), "zooraft recover") {
		t.Errorf("alone: %v", err)
	}
	other := servers[0].config
	other.ServerID, other.PeerListen = 2, servers[1].config.PeerListen
	if _, err := Open(other, newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) {
		t.Errorf("under the number of another member: %v", err)
	}
	for _, s := range servers {
		s.open(t)
	}
	leaderOf(t, servers)
	holds(t, servers, want, "four")
}

func TestTheDataOfAServerAloneDoNotBecomeAnObservers(t *testing.T) {
	alone := testConfig(t.TempDir())
	n := start(t, alone)
	n.write(t, numbered(1, 3)...)
	n.close(t)
	peers, member := neighbours(t)
	peers[2].Voter = false
	if _, err := Open(member(3, alone.DataDir), newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) || !strings.Contains(err.Error(), "observer") {
		t.Errorf("got %v", err)
	}
	peers[2].Voter = true
	if _, err := Recover(member(3, alone.DataDir), newJournal(), true, func() {}); !errors.Is(err, ErrIdentityMismatch) {
		t.Errorf("recovered under a number that it has not: %v", err)
	}
	n = start(t, alone)
	n.journal.await(t, 3)
}

// Whoever started a server with a wrong myid mends the file, and need not empty a
// directory that holds nothing.
func TestANumberCanBePutRightBeforeTheEnsembleIsFormed(t *testing.T) {
	peers, member := neighbours(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	wrong := &testServer{config: member(2, dirs[2])}
	wrong.open(t)
	if err := wrong.Close(); err != nil {
		t.Fatal(err)
	}
	var servers []*testServer
	for id := 1; id <= 3; id++ {
		s := &testServer{config: member(id, dirs[id-1])}
		s.open(t)
		servers = append(servers, s)
	}
	leaderOf(t, servers)
	holds(t, servers, nil, "one", "two", "three")
	if err := servers[2].Close(); err != nil {
		t.Fatal(err)
	}
	c := member(2, dirs[2])
	c.PeerListen = peers[2].Address
	if _, err := Open(c, newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) {
		t.Errorf("once it is formed: %v", err)
	}
}

func TestAServerThatHasPromisedItselfKeepsItsNumber(t *testing.T) {
	_, numbered := neighbours(t)
	c := numbered(2, t.TempDir())
	killedWhileItOpens(t, c, func(n *Node) {
		if err := n.stable.update(func(i *identity) { i.Promised = []member{{ID: i.raftID(), Address: "a:1"}} }); err != nil {
			t.Fatal(err)
		}
	})
	other := numbered(3, c.DataDir)
	if _, err := Open(other, newJournal(), newObserver()); !errors.Is(err, ErrIdentityMismatch) {
		t.Errorf("got %v", err)
	}
}
