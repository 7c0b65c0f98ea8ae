package consensus

import (
	"testing"
	"time"
)

// With a timeout of an hour only a server that campaigns at once can lead.
func TestAnEnsembleThatStartsAgainAsAWholeWaitsForNoTimer(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = time.Hour })
	for range 3 {
		leader, others := leaderOf(t, servers)
		for _, s := range append(others, leader) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range servers {
			s.open(t)
		}
	}
	leaderOf(t, servers)
}
