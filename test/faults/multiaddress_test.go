package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/peer"
)

// Servers get a second address, and lose the first one, by nothing but edited
// files and one restart after another, where reconfig is not enabled: the leader,
// too, and those whose addresses the others have to learn.
func TestServersGetSeveralAddressesByEditedFiles(t *testing.T) {
	t.Parallel()
	f := &fleet{ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, lines: map[int]string{}},
		own: map[string]string{"multiAddress.enabled": "true"}}
	for _, id := range []int{1, 2, 3} {
		f.address(id, "127.0.0.1")
	}
	for _, id := range []int{1, 2, 3} {
		f.launch(id)
	}
	f.awaitAll()
	f.world = newWorld(f.ensemble, 1)
	f.settle(1, 2, 3)
	first, second := map[int]string{}, map[int]string{}
	for _, id := range f.ids {
		first[id] = f.lines[id]
		second[id] = fmt.Sprintf("127.0.0.2:%d:%d", peer.FreePort(t), peer.FreePort(t))
	}

	// One server first, and its own file last: the others dial an address that
	// nobody has yet beside the one that there is.
	leader := f.leader(f.ids...)
	one := f.others(leader)[0]
	f.lines[one] = first[one] + "|" + second[one]
	f.roll(f.others(leader)[1], leader, one)
	f.settle(1, 2, 3)
	f.reachable(one, first[one], second[one])

	// Then the other two, of which one leads.
	for _, id := range f.others(one) {
		f.lines[id] = first[id] + "|" + second[id]
	}
	f.roll(f.ids...)
	f.settle(1, 2, 3)
	for _, id := range f.ids {
		f.reachable(id, first[id], second[id])
	}

	// The first ones go: the second ones are all there is.
	for _, id := range f.ids {
		f.lines[id] = second[id]
	}
	f.roll(f.ids...)
	f.settle(1, 2, 3)
	for _, id := range f.ids {
		f.reachable(id, second[id])
		if _, port, _ := net.SplitHostPort(quorumAddress(first[id])); f.listens(id, port) {
			t.Errorf("server %d listens at the address that was taken away", id)
		}
	}
}

// reachable waits until the leader has exactly these addresses for a server,
// which listens at each.
func (f *fleet) reachable(id int, lines ...string) {
	f.t.Helper()
	var now string
	f.eventually(fmt.Sprintf("server %d has the addresses %v", id, lines), func() bool {
		s, err := f.status()
		if err != nil || !s.Settled {
			return false
		}
		for _, m := range s.Members {
			if m.ID == int64(id) {
				now = m.Address
			}
		}
		for _, line := range lines {
			if !strings.Contains(now, quorumAddress(line)) {
				return false
			}
		}
		return strings.Count(now, "|") == len(lines)-1
	})
	for _, line := range lines {
		c, err := net.Dial("tcp", quorumAddress(line))
		if err != nil {
			f.t.Errorf("server %d, which has the addresses %s: %v", id, now, err)
			continue
		}
		_ = c.Close()
	}
}

// quorumAddress is host:port of host:port:port.
func quorumAddress(line string) string { return line[:strings.LastIndex(line, ":")] }

// The election ports of the server lines are accepted and not used, which each
// server says once: nobody listens there.
func TestElectionPortsAreNotUsedWhichIsSaidOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2, 3)
	f.servers[2].Kill(t)
	f.servers[2].Launch(t)
	f.awaitAll()
	for id, starts := range map[int]int{1: 1, 2: 2, 3: 1} {
		if n := strings.Count(f.servers[id].Log(), "the election ports of the server lines are not used: elections go over the quorum ports"); n != starts {
			t.Errorf("server %d, started %d times, says %d times that the election ports are not used", id, starts, n)
		}
		quorum, election := quorumAddress(f.lines[id]), f.lines[id][strings.LastIndex(f.lines[id], ":")+1:]
		if _, port, _ := net.SplitHostPort(quorum); !f.listens(id, port) {
			t.Errorf("server %d does not listen at %s", id, quorum)
		}
		if f.listens(id, election) {
			t.Errorf("server %d listens at its election port %s", id, election)
		}
	}
}

// listens tells whether a server's process, and no other one, listens at a port.
func (f *fleet) listens(id int, port string) bool {
	f.t.Helper()
	number, err := strconv.Atoi(port)
	if err != nil {
		f.t.Fatal(err)
	}
	process := fmt.Sprintf("/proc/%d/", f.servers[id].PID())
	sockets := map[string]bool{}
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		table, err := os.ReadFile(process + name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.t.Fatal(err)
		}
		for line := range strings.Lines(string(table)) {
			row := strings.Fields(line) // number, local, remote, state, … and the inode as the tenth
			if len(row) > 9 && row[3] == "0A" && strings.HasSuffix(row[1], fmt.Sprintf(":%04X", number)) {
				sockets["socket:["+row[9]+"]"] = true
			}
		}
	}
	files, err := filepath.Glob(process + "fd/*")
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		to, err := os.Readlink(file)
		return err == nil && sockets[to] // it may have been closed meanwhile
	})
}
