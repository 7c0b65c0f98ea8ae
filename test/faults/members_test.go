package faults

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// fleet is an ensemble without proxies between its servers, whose files are
// edited by hand.
type fleet struct {
	*ensemble
	world *world
	own   map[string]string // settings of the servers that are launched next
	nodes int               // created so far, and acknowledged
}

func newFleet(t *testing.T, ids ...int) *fleet {
	t.Helper()
	f := &fleet{ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, lines: map[int]string{}}}
	for _, id := range ids {
		f.address(id, "127.0.0.1")
	}
	for _, id := range ids {
		f.launch(id)
	}
	f.awaitAll()
	f.world = newWorld(f.ensemble, 1)
	return f
}

// address gives a server's line new ports.
func (f *fleet) address(id int, host string) {
	f.lines[id] = fmt.Sprintf("%s:%d:%d", host, peer.FreePort(f.t), peer.FreePort(f.t))
}

// launch starts a server with an empty directory and the newest lines.
func (f *fleet) launch(id int) {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	writeMyID(f.t, dir, id)
	config := map[string]string{"tickTime": strconv.FormatInt(tick.Milliseconds(), 10), "initLimit": "20",
		"syncLimit": strconv.Itoa(syncLimit), "4lw.commands.whitelist": "*"}
	maps.Copy(config, f.own)
	s := peer.StartZooraft(f.t, peer.Options{
		Config: config, Lines: f.file(), DataDir: dir, NoWait: true,
	})
	f.servers[id] = s
	if !slices.Contains(f.ids, id) {
		f.ids = append(f.ids, id)
	}
	f.t.Cleanup(func() {
		if f.t.Failed() {
			keepLog(f.t, id, s)
		}
	})
}

// drop ends a server for good.
func (f *fleet) drop(id int) {
	f.t.Helper()
	f.servers[id].Kill(f.t)
	f.ids = slices.DeleteFunc(f.ids, func(o int) bool { return o == id })
}

// roll gives each of these servers the newest lines and starts it anew, one
// after the other.
func (f *fleet) roll(ids ...int) {
	f.t.Helper()
	for _, id := range ids {
		path := f.servers[id].ConfigFile
		text, err := os.ReadFile(path)
		if err != nil {
			f.t.Fatal(err)
		}
		kept := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "server.") })
		if err := os.WriteFile(path, []byte(strings.Join(append(kept, f.file()...), "\n")+"\n"), 0o644); err != nil {
			f.t.Fatal(err)
		}
		f.servers[id].Stop(f.t)
		f.servers[id].Launch(f.t)
		f.eventually(fmt.Sprintf("server %d is back", id), func() bool { return f.takesClients(id) })
	}
}

// settle waits until the members are these, negative numbers for observers, all
// follow, and then writes at one of each role and reads all at each.
func (f *fleet) settle(ids ...int) {
	f.t.Helper()
	var last admin.EnsembleStatus
	defer func() {
		if f.t.Failed() {
			f.t.Logf("the members at last: %+v", last)
		}
	}()
	f.eventually(fmt.Sprintf("the members are %v and all follow", ids), func() bool {
		s, err := f.status()
		if err != nil {
			return false
		}
		last = s
		var now []int
		for _, m := range s.Members {
			number := int(m.ID)
			if !m.Follows && m.ID != s.Leader || m.Role == "none" {
				return false
			}
			if m.Role == "observer" {
				number = -number
			}
			now = append(now, number)
		}
		return s.Settled && slices.Equal(now, ids)
	})
	f.awaitAll()
	for _, id := range ids {
		f.write(max(id, -id))
	}
	for _, id := range ids {
		f.readAll(max(id, -id))
	}
}

func (f *fleet) write(id int) {
	f.t.Helper()
	f.nodes++
	path := fmt.Sprintf("/n%d", f.nodes)
	f.eventually("a write at server "+strconv.Itoa(id), func() bool {
		c, err := dial(f.ensemble.address(id), 0, nil, 0)
		if err != nil {
			return false
		}
		defer c.Drop()
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		if _, err := c.Exists(ctx, path, false); err == nil {
			return true // an attempt whose answer was lost
		}
		_, err = c.Create(ctx, path, nil, proto.CreatePersistent)
		return err == nil
	})
}

// readAll looks for all that was written.
func (f *fleet) readAll(id int) {
	f.t.Helper()
	c := f.world.mustDial(id)
	defer c.Drop()
	if err := c.Sync(context.Background(), "/"); err != nil {
		f.t.Fatal(err)
	}
	for n := 1; n <= f.nodes; n++ {
		if _, err := c.Exists(context.Background(), fmt.Sprintf("/n%d", n), false); err != nil {
			f.t.Errorf("server %d has no /n%d: %v", id, n, err)
		}
	}
}

// An ensemble grows, has a server replaced by one elsewhere, another one move to
// other ports and a third become an observer, and shrinks, by nothing but edited
// files and one restart after another.
func TestMembersChangeByEditingFilesOneAfterAnother(t *testing.T) {
	f := newFleet(t, 1, 2, 3)
	f.settle(1, 2, 3)
	f.address(4, "127.0.0.1")
	f.address(5, "127.0.0.1")
	f.launch(4)
	f.launch(5)
	f.roll(1)
	f.eventually("servers whose files differ say so", func() bool {
		for _, id := range []int{1, 2, 3} {
			h, err := admin.FetchHealth(context.Background(), f.ownDir(id))
			if err == nil && strings.Contains(h.Warning, "server.4 is") && strings.Contains(f.servers[id].Log(), "the files of the servers differ") {
				return true
			}
		}
		return false
	})
	f.roll(2, 3)
	f.settle(1, 2, 3, 4, 5)
	// With an old file, the leader has to find the server that moves.
	f.lead(4)
	f.drop(2)
	f.address(2, "127.0.0.2")
	f.address(3, "127.0.0.1")
	f.lines[5] += ":observer"
	f.launch(2)
	f.roll(1, 3, 4, 5)
	f.settle(1, 2, 3, 4, -5)
	delete(f.lines, 4)
	delete(f.lines, 5)
	f.roll(1, 2, 3)
	f.lead(1) // not one that is to go and has the old file
	f.ids = []int{1, 2, 3}
	f.settle(1, 2, 3)
	for _, id := range []int{4, 5} {
		f.eventually(fmt.Sprintf("server %d says that it is no member", id), func() bool {
			h, err := admin.FetchHealth(context.Background(), f.ownDir(id))
			return err == nil && !h.Ready && strings.Contains(h.Reason, "no member of the ensemble any more")
		})
	}
}

// lead hands leadership to a server.
func (f *fleet) lead(id int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("server %d leads", id), func() bool {
		leader := f.leader(f.ids...)
		if leader != id {
			f.ensembleCommand(leader, "transfer", strconv.Itoa(id))
		}
		return leader == id
	})
}

// command runs zooraft.
func (f *fleet) command(args ...string) (string, int) {
	f.t.Helper()
	cmd := exec.Command(peer.ZooraftBinary(f.t, false), args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (f *fleet) ensembleCommand(id int, args ...string) (string, int) {
	f.t.Helper()
	return f.command(append([]string{"ensemble", "--config", f.servers[id].ConfigFile}, args...)...)
}

// An operator looks at the ensemble, hands leadership over, removes dead
// members, and, when only one server's data is left, starts again from it.
func TestAnOperatorMovesLeadershipRemovesTheDeadAndRecovers(t *testing.T) {
	f := newFleet(t, 1, 2, 3)
	f.settle(1, 2, 3)
	leader := f.leader(f.ids...)
	target := f.others(leader)[0]
	other := f.others(leader)[1]
	expect := func(out string, code, wantCode int, want string) {
		t.Helper()
		if code != wantCode || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %d with %q:\n%s", code, wantCode, want, out)
		}
	}
	out, code := f.ensembleCommand(target, "transfer", strconv.Itoa(target))
	expect(out, code, 1, fmt.Sprintf("where server %d is", leader))
	out, code = f.ensembleCommand(leader, "transfer", "9")
	expect(out, code, 1, "server 9 is not a member")
	out, code = f.ensembleCommand(leader, "transfer", strconv.Itoa(target))
	expect(out, code, 0, "handed over")
	f.eventually("the other one leads", func() bool { return f.leader(f.ids...) == target })
	f.settle(1, 2, 3)
	out, code = f.ensembleCommand(target, "status")
	expect(out, code, 0, fmt.Sprintf("leader         server %d", target))
	out, code = f.ensembleCommand(target, "remove", strconv.Itoa(other))
	expect(out, code, 1, "is alive")

	// One dies for good and is removed; then the other one's death is too much
	// for neither: a single member is a majority of itself.
	f.drop(other)
	f.eventually("the dead one is removed", func() bool {
		out, code = f.ensembleCommand(target, "remove", strconv.Itoa(other))
		return code == 0
	})
	f.write(target)
	f.write(leader)

	// All but one lose their disks.
	last := target
	out, code = f.command("recover", f.servers[last].ConfigFile, "--accept-data-loss")
	expect(out, code, 3, "in use by another server")
	f.drop(leader)
	f.servers[last].Stop(t)
	out, code = f.command("recover", f.servers[last].ConfigFile)
	expect(out, code, 1, "nothing was changed")
	old := f.servers[leader]
	out, code = f.command("recover", f.servers[last].ConfigFile, "--accept-data-loss")
	expect(out, code, 0, "is the only member now")
	for line := range strings.Lines(out) { // nothing of a log is among it
		if !strings.HasPrefix(line, "server ") && !strings.HasPrefix(line, "  server ") {
			t.Errorf("recover printed %q", line)
		}
	}
	f.servers[last].Launch(t)
	f.awaitAll()
	if zxid := field(f.srvr(last), "Zxid"); len(zxid) < len("0x40000000000") {
		t.Errorf("the zxid is %s, which the lost majority may have used", zxid)
	}
	f.write(last)
	f.readAll(last)

	// A server of before that turns up with its old data is refused; with an
	// empty directory it is added.
	old.Launch(t)
	f.eventually("the old data are refused", func() bool { // by whichever of the two asks the other first
		return strings.Contains(f.servers[last].Log(), "belongs to ensemble") || strings.Contains(old.Log(), "goes on alone as ensemble")
	})
	old.Kill(t)
	f.launch(leader)
	f.launch(other)
	f.settle(1, 2, 3)
}

// Each server's own line says 0.0.0.0, as is common in containers.
func TestServersWhoseOwnLinesSayEverywhereFormAnEnsemble(t *testing.T) {
	f := &fleet{ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, lines: map[int]string{}}}
	for _, id := range []int{1, 2, 3} {
		f.address(id, "127.0.0.1")
	}
	for _, id := range []int{1, 2, 3} {
		known := f.lines[id]
		_, ports, _ := strings.Cut(known, ":")
		f.lines[id] = net.IPv4zero.String() + ":" + ports
		f.launch(id)
		f.lines[id] = known
	}
	f.awaitAll()
	f.world = newWorld(f.ensemble, 1)
	f.settle(1, 2, 3)
}
