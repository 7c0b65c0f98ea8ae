package faults

import (
	"fmt"
	"strings"
	"testing"
)

// Seven servers, the largest ensemble that users build, go on without any three of
// them, the leader among them, and not without four; those that come back hold what
// the others were told meanwhile.
func TestSevenServersGoOnWithoutThree(t *testing.T) {
	t.Parallel()
	e := start(t, options{servers: 7})
	w := newWorld(e, 1)
	w.prepare()
	leader := e.leader(e.ids...)
	killed, left := append([]int{leader}, e.others(leader)[:2]...), e.others(leader)[2:]
	for _, id := range killed {
		e.kill(id)
	}
	var paths []string
	for _, id := range left {
		paths = append(paths, fmt.Sprintf("/through-%d", id))
		e.eventually(fmt.Sprintf("server %d takes a write without servers %v", id, killed), func() bool { return writes(e, id, paths[len(paths)-1]) })
	}
	e.kill(left[0])
	for _, id := range left[1:] {
		e.eventually(fmt.Sprintf("server %d says that three of seven are no majority", id), func() bool {
			h := e.health(id)
			return !h.Ready && strings.Contains(h.Reason, "3 of 7 participants are there and 4 are needed")
		})
	}
	for _, id := range append(killed, left[0]) {
		e.restart(id)
	}
	e.awaitAll()

	for _, id := range e.ids {
		for _, path := range append(paths, "/w/1") {
			e.eventually(fmt.Sprintf("server %d shows %s", id, path), func() bool { return shows(e, id, path) })
		}
	}
	w.finish()
}
