package consensus

import (
	"testing"
	"time"
)

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
