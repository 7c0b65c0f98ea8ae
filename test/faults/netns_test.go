package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// islands are servers in network namespaces of their own, joined by a bridge,
// with names and addresses that can change.
type islands struct {
	*ensemble
	tag    string         // begins the names of what is made on this machine
	net    int            // second number of all addresses
	subnet map[int]int    // by server: third number of its address
	hosts  map[int]string // by server: the file of names that it sees
}

// needNamespaces skips the test where this machine does not let it make
// networks: without the right, or with a kernel that has no bridges.
func needNamespaces(t *testing.T) {
	t.Helper()
	toolchain.Need(t, "ip")
	tag := fmt.Sprintf("zrprobe%x", rand.IntN(1<<20))
	defer func() {
		_ = exec.Command("ip", "link", "del", tag).Run()
		_ = exec.Command("ip", "netns", "del", tag).Run()
	}()
	for _, args := range [][]string{
		{"netns", "add", tag}, {"link", "add", tag, "type", "bridge"},
		{"link", "add", tag + "v", "type", "veth", "peer", "name", "eth0", "netns", tag}, {"link", "del", tag + "v"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			said := strings.TrimSpace(string(out))
			lacking := strings.Contains(said, "Unknown device type") || strings.Contains(said, "not supported")
			toolchain.Denied(t, fmt.Sprintf("network namespaces: ip %s: %s", args[0], said), !lacking && toolchain.Holds(toolchain.NetAdmin, toolchain.SysAdmin))
		}
	}
}

func (n *islands) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// tryIP is for what may be gone already.
func (n *islands) tryIP(args ...string) { _ = exec.Command("ip", args...).Run() }

func (n *islands) space(id int) string       { return fmt.Sprintf("%sn%d", n.tag, id) }
func (n *islands) link(id int) string        { return fmt.Sprintf("%sl%d", n.tag, id) }
func (n *islands) numbers(id int) string     { return fmt.Sprintf("10.%d.%d.%d", n.net, n.subnet[id], id) }
func (n *islands) gateway(subnet int) string { return fmt.Sprintf("10.%d.%d.254/16", n.net, subnet) }

// startIslands makes the networks and starts three servers, which know each
// other by name only.
func startIslands(t *testing.T) *islands {
	t.Helper()
	n := &islands{
		ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, ids: []int{1, 2, 3}}, tag: fmt.Sprintf("zr%x", rand.IntN(1<<20)),
		net: 80 + rand.IntN(100), subnet: map[int]int{1: 1, 2: 1, 3: 1}, hosts: map[int]string{},
	}
	t.Cleanup(func() {
		for _, id := range n.ids {
			n.tryIP("netns", "del", n.space(id))
			_ = os.RemoveAll(filepath.Join("/etc/netns", n.space(id)))
		}
		n.tryIP("link", "del", n.tag)
	})
	n.ip("link", "add", n.tag, "type", "bridge")
	n.ip("link", "set", n.tag, "up")
	n.ip("addr", "add", n.gateway(1), "dev", n.tag)
	var lines []string
	for _, id := range n.ids {
		lines = append(lines, fmt.Sprintf("server.%d=zk%d.test:2888:3888", id, id))
		n.ip("netns", "add", n.space(id))
		n.ip("link", "add", n.link(id), "type", "veth", "peer", "name", "eth0", "netns", n.space(id))
		n.ip("link", "set", n.link(id), "master", n.tag, "up")
		n.ip("-n", n.space(id), "link", "set", "lo", "up")
		n.hosts[id] = filepath.Join("/etc/netns", n.space(id), "hosts")
		if err := os.MkdirAll(filepath.Dir(n.hosts[id]), 0o755); err != nil {
			t.Fatal(err)
		}
		n.settle(id)
	}
	n.rename()
	for _, id := range n.ids {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		writeMyID(t, dir, id)
		n.servers[id] = peer.StartZooraft(t, peer.Options{DataDir: dir, Lines: lines, NoWait: true,
			Wrapper: []string{"ip", "netns", "exec", n.space(id)},
			Config: map[string]string{"tickTime": strconv.FormatInt(tick.Milliseconds(), 10), "initLimit": "20", "syncLimit": strconv.Itoa(syncLimit),
				"clientPort": "2181", "clientPortAddress": "0.0.0.0", "4lw.commands.whitelist": "*"}})
		n.servers[id].Address = n.numbers(id) + ":2181"
		t.Cleanup(func() {
			if t.Failed() {
				keepLog(t, id, n.servers[id])
			}
		})
	}
	n.awaitAll()
	return n
}

// settle gives a server's namespace its address.
func (n *islands) settle(id int) {
	n.t.Helper()
	n.ip("-n", n.space(id), "addr", "flush", "dev", "eth0")
	n.ip("-n", n.space(id), "addr", "add", n.numbers(id)+"/16", "dev", "eth0")
	n.ip("-n", n.space(id), "link", "set", "eth0", "up")
}

// rename tells all namespaces the names' addresses. The files keep their place,
// because the servers see them mounted.
func (n *islands) rename() {
	n.t.Helper()
	text := "127.0.0.1 localhost\n"
	for _, id := range n.ids {
		text += fmt.Sprintf("%s zk%d.test\n", n.numbers(id), id)
	}
	for _, id := range n.ids {
		if err := os.WriteFile(n.hosts[id], []byte(text), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
}

// move gives a server that does not run another address under its old name.
func (n *islands) move(id int) {
	n.t.Helper()
	n.subnet[id]++
	n.settle(id)
	n.servers[id].Address = n.numbers(id) + ":2181"
}

func (n *islands) plug(id int, how string) { n.ip("link", "set", n.link(id), how) }

// Servers in namespaces of their own know each other by name: cables are pulled,
// all servers get other addresses at once, then one while the others run (case
// 62).
func TestServersFindEachOtherByNameWhateverTheirAddresses(t *testing.T) {
	t.Parallel()
	needNamespaces(t) // TestAnEnsembleWhoseServersHaveAllMovedFormsAgain does what can be done without
	n := startIslands(t)
	w := newWorld(n.ensemble, 1)
	write := func(path string, among ...int) {
		t.Helper()
		for _, id := range among {
			n.eventually(fmt.Sprintf("server %d takes %s", id, path), func() bool { return writes(n.ensemble, id, path) })
		}
	}
	write("/formed", n.ids...)
	leader := n.leader(n.ids...)
	n.plug(leader, "down")
	others := n.others(leader)
	n.leader(others...)
	write("/without-the-leader", others...)
	n.plug(leader, "up")
	n.awaitAll()

	keeper := w.mustDial(1)
	create(t, keeper, "/held", proto.CreateEphemeral)
	keeper.Drop()
	for _, id := range n.ids {
		n.servers[id].Stop(t)
	}
	for _, id := range n.ids {
		n.move(id)
	}
	n.rename()
	for _, id := range n.ids {
		n.servers[id].Launch(t)
	}
	n.awaitAll()
	again, err := dial(n.address(2), keeper.Session(), keeper.Password(), 0)
	if err != nil {
		t.Fatalf("the session does not go on at the new addresses: %v", err)
	}
	if _, err := again.Exists(context.Background(), "/held", false); err != nil {
		t.Errorf("its ephemeral: %v", err)
	}
	again.Drop()

	for _, id := range []int{n.leader(n.ids...), n.others(n.leader(n.ids...))[0]} {
		n.servers[id].Stop(t)
		n.move(id)
		n.rename()
		write(fmt.Sprintf("/while-%d-moves", id), n.others(id)...)
		n.servers[id].Launch(t)
		n.awaitAll()
		write(fmt.Sprintf("/after-%d-moved", id), n.ids...)
	}
	for _, id := range n.ids {
		c := w.mustDial(id)
		for _, path := range []string{"/formed", "/without-the-leader"} {
			if _, err := c.Exists(context.Background(), path, false); client.Code(err) == proto.ErrNoNode {
				t.Errorf("server %d has lost %s", id, path)
			}
		}
		c.Drop()
	}
}
