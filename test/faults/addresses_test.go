package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// twoNets are three servers in network namespaces of their own, with two
// networks between them, in both of which each server has an address, and a
// third network for clients.
type twoNets struct {
	*islands
	nets []string // bridges: two between servers, the clients' one
}

const clientNet = 2

func (n *twoNets) number(net, id int) string {
	return fmt.Sprintf("10.%d.%d.%d", n.net, 10*(net+1), id)
}

// startTwoNets makes the networks and starts the servers.
func startTwoNets(t *testing.T) *twoNets {
	t.Helper()
	n := &twoNets{islands: &islands{
		ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, ids: []int{1, 2, 3}},
		tag:      fmt.Sprintf("zt%x", rand.IntN(1<<20)), net: 180 + rand.IntN(70),
	}}
	t.Cleanup(func() {
		for _, id := range n.ids {
			n.tryIP("netns", "del", n.space(id))
		}
		for _, bridge := range n.nets {
			n.tryIP("link", "del", bridge)
		}
	})
	for _, id := range n.ids {
		n.ip("netns", "add", n.space(id))
		n.ip("-n", n.space(id), "link", "set", "lo", "up")
	}
	for net := range clientNet + 1 {
		bridge := fmt.Sprintf("%sb%d", n.tag, net)
		n.nets = append(n.nets, bridge)
		n.ip("link", "add", bridge, "type", "bridge")
		n.ip("link", "set", bridge, "up")
		for _, id := range n.ids {
			outer, inner := fmt.Sprintf("%s%d%d", n.tag, net, id), fmt.Sprintf("eth%d", net)
			n.ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", n.space(id))
			n.ip("link", "set", outer, "master", bridge, "up")
			n.ip("-n", n.space(id), "addr", "add", n.number(net, id)+"/24", "dev", inner)
			n.ip("-n", n.space(id), "link", "set", inner, "up")
		}
	}
	n.ip("addr", "add", n.number(clientNet, 254)+"/24", "dev", n.nets[clientNet])
	var lines []string
	for _, id := range n.ids {
		lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888|%s:2889:3889", id, n.number(0, id), n.number(1, id)))
	}
	for _, id := range n.ids {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		writeMyID(t, dir, id)
		n.servers[id] = peer.StartZooraft(t, peer.Options{DataDir: dir, Lines: lines, NoWait: true,
			Wrapper: []string{"ip", "netns", "exec", n.space(id)}, Defines: map[string]string{"zookeeper.multiAddress.enabled": "true"},
			Config: map[string]string{"tickTime": strconv.FormatInt(tick.Milliseconds(), 10), "initLimit": "20", "syncLimit": strconv.Itoa(syncLimit),
				"clientPort": "2181", "clientPortAddress": n.number(clientNet, id), "4lw.commands.whitelist": "*", "maxClientCnxns": "0"}})
		t.Cleanup(func() {
			if t.Failed() {
				keepLog(t, id, n.servers[id])
			}
		})
	}
	n.awaitAll()
	n.openDoors()
	return n
}

// epoch is the first half of the zxid of who leads: elections raise it.
func (e *ensemble) epoch() string {
	zxid := field(e.srvr(e.leader(e.ids...)), "Zxid")
	return zxid[:max(0, len(zxid)-8)]
}

// Servers with an address in each of two networks go on while either of the two
// drops everything without a word, under load and with every promise kept.
func TestOneOfTwoNetworksBetweenServersIsCut(t *testing.T) {
	t.Parallel()
	needNamespaces(t) // internal/consensus.TestServersReachEachOtherAtTheAddressThatIsLeft does what can be done without
	n := startTwoNets(t)
	w := newWorld(n.ensemble, seedOf(t, 1))
	w.prepare()
	w.startWorkers()
	before := n.epoch()
	for round, net := range []int{0, 1} {
		n.ip("link", "set", n.nets[net], "down")
		for _, id := range n.ids {
			path := fmt.Sprintf("/round-%d-server-%d", round, id)
			n.eventually(path+" is taken", func() bool { return writes(n.ensemble, id, path) })
		}
		w.rest(4 * tick)
		n.ip("link", "set", n.nets[net], "up")
	}
	t.Logf("the epoch was %s before and is %s after: without a busy machine's own elections it is the same", before, n.epoch())
	w.finish()
	for _, id := range n.ids {
		if !strings.Contains(n.servers[id].Log(), "another one of its addresses") {
			t.Errorf("server %d never went another way", id)
		}
	}
}
