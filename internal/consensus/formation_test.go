package consensus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// The moments at which a server can be killed while an ensemble forms, by what
// it has stored.
const (
	nothing  = "nothing"               // it was wiped, or never started
	empty    = "an incarnation"        // it may have been heard
	promised = "a promise"             // of the list
	listed   = "the list"              // of founders; no term
	termed   = "the list and a term"   // no first entry
	voted    = "the list and a vote"   // in a later term, without the first entry
	entered  = "the first entry"       // no floor
	complete = "all of a founder"      //
	called   = "a call, without list"  // it was added as a later member is
	absent   = "something, but is off" // it does not start at all
)

// founding are the directories of three servers in the middle of formation.
type founding struct {
	peers    []Peer
	founders []member
	cluster  string
	configs  []Config
}

// newFounding makes three servers of which each has stored what is named.
func newFounding(t *testing.T, stored [3]string) *founding {
	t.Helper()
	f := &founding{}
	for i := range 3 {
		p := Peer{ID: i + 1, Address: peerAddress(t), Voter: true}
		f.peers = append(f.peers, p)
		f.founders = append(f.founders, member{ID: fmt.Sprintf("%d-%d", p.ID, 1000+p.ID), Address: p.Address, Voter: true})
	}
	var err error
	if f.cluster, err = clusterOf(f.founders); err != nil {
		t.Fatal(err)
	}
	for i, p := range f.peers {
		c := testConfig("")
		c.ServerID, c.Peers, c.PeerListen = p.ID, f.peers, p.Address
		c.LogStore, c.Memory = LogStoreMemory, NewMemory()
		c.ElectionTimeout = 500 * time.Millisecond
		f.store(t, c, stored[i])
		f.configs = append(f.configs, c)
	}
	return f
}

// store puts into a server's memory what it had stored when it was killed.
func (f *founding) store(t *testing.T, c Config, what string) {
	t.Helper()
	id := identity{ServerID: c.ServerID, Incarnation: uint64(1000 + c.ServerID), LogStore: LogStoreMemory, Raft: map[string][]byte{}}
	term := func(v byte) { id.Raft[string(currentTermKey)] = []byte{7: v} }
	switch what {
	case nothing, absent:
		return
	case empty:
	case promised:
		id.Promised = f.founders
	case called:
		id.Formed, id.ClusterID = true, f.cluster
	default:
		id.Formed, id.ClusterID, id.Founders = true, f.cluster, f.founders
	}
	switch what {
	case termed, entered, complete:
		term(1)
	case voted:
		term(5)
		id.Raft["LastVoteTerm"], id.Raft["LastVoteCand"] = []byte{7: 5}, []byte(f.peers[1].Address)
	}
	if what == entered || what == complete {
		entry := &raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(firstConfiguration(f.founders))}
		if err := c.Memory.log.StoreLogs(sealLogs([]*raft.Log{entry})); err != nil {
			t.Fatal(err)
		}
	}
	if what == complete {
		id.FloorIndex, id.FloorTerm = 1, 1
	}
	data, err := sealRecord("stable", id)
	if err != nil {
		t.Fatal(err)
	}
	c.Memory.stable = data
}

// A server may be killed at each moment of formation, and another be wiped or
// stay away: one ensemble comes of it, by itself, and takes writes.
func TestFormationGoesOnFromEachMomentAtWhichAServerIsKilled(t *testing.T) {
	moments := []string{empty, promised, listed, termed, voted, entered, complete}
	cases := [][3]string{
		{nothing, nothing, nothing},
		{nothing, empty, empty},
		// Server 1, which decides, is wiped after others have heard its decision.
		{nothing, listed, empty}, {nothing, empty, voted}, {nothing, called, termed}, {nothing, complete, entered},
		// Another one is wiped after the decision.
		{listed, nothing, empty}, {complete, empty, nothing}, {voted, termed, nothing},
		// One does not come back.
		{absent, listed, empty}, {absent, voted, called}, {listed, empty, absent}, {termed, absent, termed},
		// Wiped after the promises, before the list or after it.
		{nothing, promised, promised}, {nothing, promised, listed}, {promised, nothing, promised}, {listed, nothing, promised},
		{absent, promised, listed}, {listed, promised, absent},
		// One was called without hearing the list.
		{listed, called, empty}, {complete, called, called},
	}
	for _, first := range moments[1:] {
		for _, second := range moments {
			cases = append(cases, [3]string{first, second, empty})
		}
		cases = append(cases, [3]string{first, first, first})
	}
	for _, c := range cases {
		t.Run(strings.Join(c[:], ", "), func(t *testing.T) {
			t.Parallel()
			f := newFounding(t, c)
			var servers []*testServer
			for i, config := range f.configs {
				if c[i] != absent {
					s := &testServer{config: config}
					s.open(t)
					servers = append(servers, s)
				}
			}
			f.check(t, servers)
		})
	}
}

// check waits until the servers are one ensemble, and writes at each.
func (f *founding) check(t *testing.T, servers []*testServer) {
	t.Helper()
	leaderOf(t, servers)
	for i, s := range servers {
		var proposed time.Time
		eventuallyTrue(t, "a proposal is applied at each", func() bool {
			if time.Since(proposed) > 2*time.Second && s.Propose(uint64(i+1), []byte{byte('a' + i)}) == nil {
				proposed = time.Now() // one may be lost in an election
			}
			return !slices.ContainsFunc(servers, func(o *testServer) bool {
				return !strings.Contains(strings.Join(o.journal.list(), ""), string(rune('a'+i)))
			})
		})
	}
	cluster := servers[0].stable.identity().ClusterID
	for _, s := range servers {
		if got := s.stable.identity().ClusterID; got != cluster || got == "" {
			t.Errorf("server %d belongs to %q, another to %q", s.config.ServerID, got, cluster)
		}
	}
	for _, s := range servers {
		_ = s.Close()
	}
}

// A wiped founder does not vote under its old incarnation, and two servers that
// were formed from lists with different members do not join.
func TestAFounderRefusesACallForItsOldIncarnation(t *testing.T) {
	f := newFounding(t, [3]string{nothing, complete, complete})
	s := &testServer{config: f.configs[0]}
	s.open(t)
	w := s.answer(hello{Version: helloVersion, Kind: kindRaft, ClusterID: f.cluster, From: f.founders[1].ID, To: f.founders[0].ID, Founders: f.founders})
	if !strings.Contains(w.Refused, "was replaced") {
		t.Errorf("the answer to a call for the old incarnation: %+v", w)
	}
}

// A start beside the real files of each log store makes up for the first entry.
func TestAFounderKilledBeforeItsFirstEntryStartsAgain(t *testing.T) {
	eachLogStore(t, func(t *testing.T, c Config) {
		f := newFounding(t, [3]string{nothing, nothing, nothing})
		c.ServerID, c.Peers, c.PeerListen = 1, f.peers, f.peers[0].Address
		s := &testServer{config: c}
		for _, term := range []byte{0, 1, 5} {
			s.config.DataDir = t.TempDir()
			s.open(t)
			if err := s.stable.update(func(i *identity) {
				i.Formed, i.Founders = true, []member{{ID: i.raftID(), Address: "a", Voter: true}, {ID: "2-1", Address: "b", Voter: true}}
				if term > 0 {
					i.Raft[string(currentTermKey)] = []byte{7: term}
				}
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s.open(t)
				if got := s.raft.LastIndex(); got != 1 || len(s.raftServers()) != 2 || s.stable.identity().FloorIndex != 1 {
					t.Errorf("term %d: last entry %d, members %v", term, got, s.raftServers())
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
