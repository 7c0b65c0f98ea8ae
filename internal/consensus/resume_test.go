package consensus

import (
	"testing"
	"time"
)

// With a timeout of an hour only a server that campaigns at once can lead.
func TestAnEnsembleThatStartsAgainAsAWholeWaitsForNoTimer(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = time.Hour })
	for round := range 4 {
		leader, others := leaderOf(t, servers)
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
