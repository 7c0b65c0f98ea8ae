package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// newer is the command level of the later version that these tests upgrade to.
// Once it is in force every command in the log is of that version.
const newer = 2

// upgraded starts three servers and an observer, with snapshots often enough to
// be taken between all steps, and clients that work all the time.
func upgraded(t *testing.T) *world {
	e := start(t, options{observers: 1, crooked: true, config: map[string]string{"snapCount": "300"}})
	w := newWorld(e, seedOf(t, 1))
	w.prepare()
	w.startWorkers()
	return w
}

// replace stops a server, and starts it as a version that supports a level; 0
// is the product as it is. It does not wait.
func (e *ensemble) replace(id int, level byte) {
	e.t.Helper()
	e.stop(id)
	e.crook(id, func(m *machine) { m.CommandLevel = level })
	e.restart(id)
}

// levelOf is the command level in force at a server, "" if it does not serve.
func (e *ensemble) levelOf(id int) string {
	text, err := peer.Word(e.address(id), "mntr")
	found := mntrLevel.FindStringSubmatch(text)
	if err != nil || found == nil {
		return ""
	}
	return found[1]
}

var mntrLevel = regexp.MustCompile(`(?m)^zk_command_level\t(\d+)$`)

// awaitLevel waits until all servers have the level.
func (e *ensemble) awaitLevel(level int) {
	e.t.Helper()
	for _, id := range e.ids {
		e.eventually(fmt.Sprintf("server %d has command level %d", id, level), func() bool { return e.levelOf(id) == fmt.Sprint(level) })
	}
}

// stillServed writes and reads at servers, so that the clients' load is not all
// that says that they serve.
func (w *world) stillServed(path string, ids ...int) {
	w.e.t.Helper()
	for _, id := range ids {
		c := w.mustDial(id)
		w.e.eventually(fmt.Sprintf("server %d takes a write", id), func() bool {
			if c.Err() != nil {
				c = w.mustDial(id)
			}
			_, err := c.Create(context.Background(), fmt.Sprintf("%s-%d-", path, id), nil, proto.CreatePersistentSequential)
			return err == nil
		})
		c.Drop()
	}
}

// refusal is what an older version says when it meets a higher level: both
// numbers, and what to do.
var refusal = regexp.MustCompile(`supports command level 1 at most, and the ensemble is at level 2: it needs a newer version|it is 2, and 1 is supported at most; start a newer version`)

// putBack starts the older version in a server's place, after the level has
// risen, and waits until it has said why it cannot be.
func (w *world) putBack(id int, wiped bool) {
	e := w.e
	e.t.Helper()
	e.stop(id)
	if wiped {
		e.wipe(id)
	}
	e.crook(id, func(m *machine) { m.CommandLevel = 0 })
	said := len(e.servers[id].Log())
	e.restart(id)
	e.eventually(fmt.Sprintf("server %d says that it is too old", id), func() bool { return refusal.MatchString(e.servers[id].Log()[said:]) })
	w.stillServed("/beside-an-old-server", e.others(id)...)
	if mode := e.srvrMode(id); mode != "" {
		w.wrong("server %d serves as %s", id, mode)
	}
	e.kill(id) // if it has not ended by itself
}

// Servers are replaced by a later version one after the other while clients
// work. The level rises when the last one is there, not before; from then on an
// older version is refused, whether it has its data (the follower) or none (the
// observer), and harms nobody.
func TestARollingUpgradeRaisesTheCommandLevelWhenAllSupportIt(t *testing.T) {
	t.Parallel()
	w := upgraded(t)
	e := w.e
	for _, id := range e.ids {
		e.awaitLevel(1)
		e.replace(id, newer)
		e.awaitAll()
	}
	e.awaitLevel(newer)
	w.stillServed("/upgraded", e.ids...)
	follower := e.others(e.leader(e.ids...))[0]
	observer := e.ids[len(e.ids)-1]
	for _, id := range []int{follower, observer} {
		w.putBack(id, id == observer)
		e.crook(id, func(m *machine) { m.CommandLevel = newer })
		e.restart(id)
		e.awaitAll()
	}
	e.awaitLevel(newer)
	w.finish()
}

// Until the last server has been replaced the upgrade can be taken back: every
// server reads what the later version has written.
func TestAnUpgradeIsTakenBackBeforeTheLastServerIsReplaced(t *testing.T) {
	t.Parallel()
	w := upgraded(t)
	e := w.e
	all := slices.Clone(e.ids)
	for _, id := range all[:len(all)-1] {
		e.replace(id, newer)
		e.awaitAll()
	}
	w.stillServed("/half-upgraded", all...)
	last := all[len(all)-1]
	e.eventually("the leader names the server for which a higher level waits", func() bool {
		return slices.ContainsFunc(e.others(last), func(id int) bool {
			s, err := admin.FetchEnsemble(context.Background(), filepath.Join(e.servers[id].DataDir, "zooraft"))
			return err == nil && s.CommandLevel == 1 && slices.Equal(s.LevelWaitsFor, []int{last})
		})
	})
	e.awaitLevel(1)
	for _, id := range all[:len(all)-1] {
		e.replace(id, 0)
		e.awaitAll()
	}
	w.stillServed("/taken-back", all...)
	e.awaitLevel(1)
	for _, id := range all {
		if log := e.servers[id].Log(); refusal.MatchString(log) || strings.Contains(log, "the command level has been raised") {
			t.Errorf("server %d met a level above 1:\n%s", id, refusal.FindString(log))
		}
	}
	w.finish()
}
