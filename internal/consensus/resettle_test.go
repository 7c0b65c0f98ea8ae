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
	for id := 1; id <= 3; id++ {
		peers = append(peers, Peer{ID: id, Address: peerAddress(t), Voter: true})
	}
	return peers, func(id int, dir string) Config {
		c := testConfig(dir)
		c.ServerID, c.Peers, c.PeerListen = id, peers, peers[id-1].Address
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
	eachLogStore(t, func(t *testing.T, alone Config) {
		peers, member := neighbours(t)
		n := start(t, alone)
		want := numbered(1, 20)
		n.write(t, want...)
		n.close(t)
		dirs := []string{t.TempDir(), alone.DataDir, t.TempDir()}
		// Twice: the second time the others have what they had when they left.
		for round := range 2 {
			var servers []*testServer
			for id := 1; id <= 3; id++ {
				c := member(id, dirs[id-1])
				c.LogStore = alone.LogStore
				s := &testServer{config: c}
				s.open(t)
				servers = append(servers, s)
			}
			leaderOf(t, servers)
			want = holds(t, servers, want, "one", "two", "three")
			second := servers[1]
			eventuallyTrue(t, "server 2 is the only member", func() bool {
				for _, s := range servers {
					_ = s.SetMembership(peers[1:2])
				}
				m := second.Membership()
				return second.events.leading.Load() && m.Settled && slices.Equal(m.Current, peers[1:2])
			})
			want = holds(t, servers[1:2], want, "last")
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
	})
}

// At each moment of it the data are whole, and both files start.
func TestAServerThatIsKilledWhileItChangesItsNumberGoesOnOrBack(t *testing.T) {
	moments := []struct {
		name string
		kill func(t *testing.T, n *Node, number int, address string)
	}{
		{"before Raft's configuration", func(t *testing.T, n *Node, number int, _ string) {
			was := n.id.ServerID
			if err := n.stable.update(func(i *identity) { i.ServerID, i.Former = number, &was }); err != nil {
				t.Fatal(err)
			}
		}},
		{"after Raft's configuration", func(t *testing.T, n *Node, number int, address string) {
			was := n.id.ServerID
			if err := n.stable.update(func(i *identity) { i.ServerID, i.Former = number, &was }); err != nil {
				t.Fatal(err)
			}
			id := n.stable.identity().raftID()
			if err := n.rewriteMembers(raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(address)}, n.fsm); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, moment := range moments {
		for _, back := range []bool{false, true} {
			name := moment.name + ", on"
			if back {
				name = moment.name + ", back"
			}
			t.Run(name, func(t *testing.T) {
				peers, member := neighbours(t)
				alone := testConfig(t.TempDir())
				n := start(t, alone)
				want := numbered(1, 20)
				n.write(t, want...)
				n.close(t)
				killedWhileItOpens(t, alone, func(n *Node) { moment.kill(t, n, 1, peers[0].Address) })
				for _, store := range []string{LogStoreBolt, LogStoreWAL} { // a log can be moved at each moment
					if _, err := MoveLog(alone, store); err != nil {
						t.Fatal(err)
					}
				}
				if back {
					n := start(t, alone)
					n.journal.await(t, len(want))
					requireCommands(t, n.journal, want)
					return
				}
				var servers []*testServer
				for id, dir := range []string{alone.DataDir, t.TempDir(), t.TempDir()} {
					s := &testServer{config: member(id+1, dir)}
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
