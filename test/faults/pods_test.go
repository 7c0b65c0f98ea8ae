package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// Two pods of three, the leader's among them, are deleted at once: they come back
// with their disks, under new addresses of the same names. The third, which runs
// on, finds them; nothing is lost, and nobody edits a file (case 64).
func TestTwoOfThreePodsDeletedAtOnceComeBackUnderNewAddresses(t *testing.T) {
	t.Parallel()
	needNamespaces(t) // TestAnEnsembleWhoseServersHaveAllMovedFormsAgain does what can be done without
	n := startIslands(t)
	w := newWorld(n.ensemble, 1)
	leader := n.leader(n.ids...)
	gone := []int{leader, n.others(leader)[0]}
	stays := n.others(leader)[1]
	keeper := w.mustDial(gone[1])
	create(t, keeper, "/before", proto.CreatePersistent)
	create(t, keeper, "/held", proto.CreateEphemeral)
	keeper.Drop()
	survivor := n.servers[stays].PID()

	n.servers[gone[0]].Kill(t)
	n.servers[gone[1]].Stop(t)
	for _, id := range gone {
		n.move(id)
	}
	n.rename()
	for _, id := range gone {
		n.servers[id].Launch(t)
	}
	// The third one may take longer to learn the new addresses than a session
	// lives without a connection.
	first := must(w.resume(gone[0], keeper.Session(), keeper.Password()))(t)
	n.awaitAll()
	again := must(w.resume(stays, keeper.Session(), keeper.Password()))(t)
	if st := must(again.Exists(context.Background(), "/held", false))(t); st.EphemeralOwner != int64(keeper.Session()) {
		t.Errorf("the ephemeral belongs to %x, not to %v", st.EphemeralOwner, keeper.Session())
	}
	first.Drop()
	again.Drop()
	for _, id := range n.ids {
		path := fmt.Sprintf("/after-%d", id)
		n.eventually(path+" is taken", func() bool { return writes(n.ensemble, id, path) })
		c := w.mustDial(id)
		if _, err := c.Exists(context.Background(), "/before", false); client.Code(err) == proto.ErrNoNode {
			t.Errorf("server %d has lost /before", id)
		}
		c.Drop()
	}
	if now := n.servers[stays].PID(); now != survivor {
		t.Errorf("the server that stayed was process %d and is %d", survivor, now)
	}
}

// The same with wiped disks: two empty servers are a majority of three, and may
// neither form an ensemble of their own, while the third is away, nor elect it
// when it is back. Each says so once. What the third has is the way out.
func TestTwoOfThreePodsThatLostTheirDisksNeverVote(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2, 3)
	f.settle(1, 2, 3)
	leader := f.leader(f.ids...)
	wiped := []int{leader, f.others(leader)[0]}
	last := f.others(leader)[1]
	f.readAll(last)
	for _, id := range f.ids {
		f.servers[id].Kill(t)
	}
	before := map[int]int{}
	for _, id := range wiped {
		f.wipe(id)
		before[id] = len(f.servers[id].Log())
		f.servers[id].Launch(t)
	}
	f.eventually("both wait for the third", func() bool {
		return !slices.ContainsFunc(wiped, func(id int) bool {
			return !strings.Contains(f.servers[id].Log()[before[id]:], fmt.Sprintf(`waits_for="server %d at `, last))
		})
	})
	f.nobodyServes(wiped...)

	f.servers[last].Launch(t)
	for _, id := range wiped {
		f.eventually(fmt.Sprintf("server %d is refused, and says why", id), func() bool {
			h, err := admin.FetchHealth(context.Background(), f.ownDir(id))
			return err == nil && h.Live && !h.Ready && strings.Contains(h.Reason, "waits for the leader to add it") &&
				strings.Contains(h.Reason, fmt.Sprintf("server %d-", last))
		})
	}
	f.nobodyServes(f.ids...)
	for _, id := range wiped {
		text := f.servers[id].Log()[before[id]:]
		if line, twice := repeated(text, "waits_for="); twice { // it asks ten times a second
			t.Errorf("server %d says twice: %s", id, line)
		}
		if strings.Contains(text, "vote granted") || strings.Contains(text, "the ensemble is formed") {
			t.Errorf("server %d has voted:\n%s", id, text)
		}
	}
	f.eventually("the server with its disk says what is wrong with the others", func() bool {
		h, err := admin.FetchHealth(context.Background(), f.ownDir(last))
		return err == nil && h.Live && !h.Ready && strings.Contains(h.Reason, "1 of 3 participants are there and 2 are needed") &&
			strings.Count(h.Reason, "has come back without its data") == 2
	})

	f.servers[last].Stop(t)
	if out, code := f.command("recover", f.servers[last].ConfigFile, "--accept-data-loss"); code != 0 {
		t.Fatalf("recover: %d, %s", code, out)
	}
	f.servers[last].Launch(t)
	f.settle(1, 2, 3)
}

// nobodyServes looks for several election timeouts whether a server takes
// clients or leads.
func (f *fleet) nobodyServes(ids ...int) {
	f.t.Helper()
	for range 6 {
		f.world.rest(tick)
		for _, id := range ids {
			if mode := field(f.srvr(id), "Mode"); mode != "" || f.takesClients(id) {
				f.t.Errorf("server %d serves as %q", id, mode)
			}
		}
	}
}

// repeated finds a line with this text that is followed, among those, by one that
// says the same.
func repeated(log, text string) (string, bool) {
	last := ""
	for line := range strings.Lines(log) {
		_, says, ok := strings.Cut(line, text)
		if !ok {
			continue
		}
		if says == last {
			return line, true
		}
		last = says
	}
	return "", false
}
