package consensus

import (
	"fmt"
	"testing"
	"time"
)

// A kill of the leader whose first campaigns cannot succeed: the one that notices has
// no majority, and the one that returns has an older log. With a timeout of an hour
// nobody leads unless the first one tries again.
func TestACampaignThatCameToNothingIsBegunAgainAfterAKill(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = time.Hour })
	leader, others := leaderOf(t, servers)
	left, older := others[0], others[1]
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		eventuallyTrue(t, "a proposal is taken", func() bool { return left.Propose(uint64(i+1), fmt.Append(nil, i)) == nil })
		left.journal.await(t, i+1)
	}
	term := left.Status().Term
	leader.shutdown() // without handing over, as if it were killed
	eventuallyTrue(t, "the one that is left campaigns", func() bool { return left.Status().Term > term })
	older.open(t)
	eventuallyTrue(t, "the one with the newer log leads", func() bool {
		return left.events.leading.Load() && older.events.route.Load()
	})
}

// The follower that campaigns first has the older log, and the other one learns of
// the loss by that campaign alone.
func TestAVoterWithTheNewerLogTakesOverFromACandidateThatCannotWin(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = time.Hour })
	leader, others := leaderOf(t, servers)
	newer, older := others[0], others[1]
	newer.hurrying.Store(true) // so that a refused connection does not tell it
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "a proposal is taken", func() bool { return newer.Propose(1, []byte("a")) == nil })
	newer.journal.await(t, 1)
	leader.shutdown()
	older.open(t)
	eventuallyTrue(t, "the candidate's request has come", newer.leaderless)
	newer.hurrying.Store(false)
	eventuallyTrue(t, "the one with the newer log leads", func() bool {
		return newer.events.leading.Load() && older.events.route.Load()
	})
}

// With a timeout of an hour only a server that campaigns at once can lead. One whose
// port was not open yet when it did hears of it by a heartbeat, minutes later, so
// that one other follows is enough.
func TestAnEnsembleThatStartsAgainAsAWholeWaitsForNoTimer(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = time.Hour })
	for round := range 4 {
		var leader *testServer
		var others []*testServer
		eventuallyTrue(t, "one leads and another one follows", func() bool {
			leader, others = nil, nil
			following := 0
			for _, s := range servers {
				if s.events.leading.Load() {
					leader = s
					continue
				}
				others = append(others, s)
				if s.events.route.Load() {
					following++
				}
			}
			return leader != nil && following > 0 && len(others) == 2
		})
		// The leader last: with such a timeout it could hand over for an hour.
		for _, s := range append(others, leader) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if round == 3 {
			break
		}
		for _, s := range servers {
			s.open(t)
		}
	}
}

// A leader whose process is gone is replaced because its port is shut: no timer
// would help for an hour.
func TestALeaderWhoseProcessIsGoneIsReplacedWithoutATimer(t *testing.T) {
	leader, others, _ := untimed(t)
	leader.shutdown() // without handing over, as if it were killed
	leaderOf(t, others)
}
