package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// writer creates sequential nodes through one server after another, and keeps
// those that were acknowledged.
type writer struct {
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	acked  []string // guarded by mu
	failed int      // guarded by mu
}

// write starts a writer; addresses are the servers that it may use.
func (e *ensemble) write(addresses func() []string) *writer {
	w := &writer{stop: make(chan struct{})}
	w.done.Add(1)
	go func() {
		defer w.done.Done()
		for i := 0; ; i++ {
			select {
			case <-w.stop:
				return
			default:
			}
			all := addresses()
			w.session(all[i%len(all)])
		}
	}()
	e.t.Cleanup(w.end)
	return w
}

func (w *writer) end() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.done.Wait()
}

// session writes until its connection breaks or the test ends.
func (w *writer) session(address string) {
	conn, err := peer.Open(address)
	if err != nil {
		<-time.After(10 * time.Millisecond) // a pause before the next server
		return
	}
	defer conn.Close()
	if r, err := conn.Connect(proto.ConnectRequest{TimeoutMillis: 10000, Password: make([]byte, 16)}, 5*time.Second); err != nil || r.SessionID == 0 {
		return
	}
	body := proto.CreateRequest{Path: "/w-", ACL: proto.OpenACL, Flags: proto.CreatePersistentSequential}
	for xid := int32(1); ; xid++ {
		select {
		case <-w.stop:
			return
		default:
		}
		h, reply, err := conn.Call(xid, proto.OpCreate, body.Append(nil, proto.OpCreate), 5*time.Second)
		w.mu.Lock()
		if err != nil || h.Err != proto.ErrOK {
			w.failed++
			w.mu.Unlock()
			return
		}
		w.acked = append(w.acked, proto.NewDecoder(reply).String())
		w.mu.Unlock()
	}
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// check ends the writer and looks for every node that was acknowledged.
func (e *ensemble) check(w *writer, ids ...int) {
	e.t.Helper()
	w.end()
	if len(w.acked) == 0 {
		e.t.Error("nothing was written")
	}
	e.t.Logf("%d writes acknowledged, %d broken off", len(w.acked), w.failed)
	for _, id := range ids {
		c := e.connect(id)
		if h, _, err := c.call(proto.OpSync, proto.AppendString(nil, "/")); err != nil || h.Err != proto.ErrOK {
			e.t.Fatalf("sync at server %d: %v, %v", id, h.Err, err)
		}
		h, body, err := c.call(proto.OpGetChildren, (&proto.PathWatch{Path: "/"}).Append(nil))
		if err != nil || h.Err != proto.ErrOK {
			e.t.Fatalf("children at server %d: %v, %v", id, h.Err, err)
		}
		d := proto.NewDecoder(body)
		there := map[string]bool{}
		for range d.Count(4) {
			there["/"+d.String()] = true
		}
		lost := 0
		for _, path := range w.acked {
			if !there[path] {
				lost++
			}
		}
		if lost > 0 {
			e.t.Errorf("server %d lacks %d of %d acknowledged writes", id, lost, len(w.acked))
		}
	}
}

// must makes a change that may not be refused, through any server that takes
// it; a broken connection is tried again with what /zookeeper/config then says.
func (e *ensemble) must(via int, want string, x change) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("the change %+v", x), func() bool {
		c := e.connectSuper(via)
		defer c.conn.Close()
		if members(c.config(false)) == want {
			return true
		}
		h, _, err := c.call(proto.OpReconfig, change{x.joining, x.leaving, x.members, -1}.body())
		switch {
		case errors.Is(err, peer.ErrClosed), h.Err == proto.ErrReconfigInProgress, h.Err == proto.ErrNewConfigNoQuorum:
			return false // a joiner may not be up yet, a leader may have changed
		case err != nil || h.Err != proto.ErrOK:
			e.t.Fatalf("the change %+v: %v, %v", x, h.Err, err)
		}
		if got := members(c.config(false)); got != want {
			e.t.Errorf("after %+v: %s, want %s", x, got, want)
		}
		return true
	})
}

// members is a membership text as "1p 2o": numbers and roles.
func members(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		number, spec, ok := strings.Cut(strings.TrimPrefix(line, "server."), "=")
		if !ok || !strings.HasPrefix(line, "server.") {
			continue
		}
		role := "p"
		if strings.Contains(spec, ":observer") {
			role = "o"
		}
		out = append(out, number+role)
	}
	return strings.Join(out, " ")
}

// agree waits until all given servers say the same in /zookeeper/config and in
// their own files.
func (e *ensemble) agree(want string, ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		e.eventually(fmt.Sprintf("server %d knows %s", id, want), func() bool {
			c := e.connect(id)
			defer c.conn.Close()
			return members(c.config(false)) == want
		})
		e.eventually(fmt.Sprintf("the files of server %d say %s", id, want), func() bool { return members(e.dynamicFile(id)) == want })
	}
}

// dynamicFile is the text of the file that a server's zoo.cfg names.
func (e *ensemble) dynamicFile(id int) string {
	static, err := os.ReadFile(e.servers[id].ConfigFile)
	if err != nil {
		e.t.Fatal(err)
	}
	_, path, _ := strings.Cut(string(static), "dynamicConfigFile=")
	text, err := os.ReadFile(strings.TrimSpace(path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.t.Fatal(err)
	}
	return string(text)
}

func (e *ensemble) addresses(ids ...int) func() []string {
	var all []string
	for _, id := range ids {
		all = append(all, e.servers[id].Address)
	}
	return func() []string { return all }
}

// Growing from one to three to five and shrinking to three needs no hand edit,
// while clients write; a removed server keeps its data and is added again.
func TestAnEnsembleGrowsFromOneToFiveAndShrinksToThreeWhileServing(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.add(1, 1)
	e.awaitMode(1, "leader")
	w := e.write(e.addresses(1))

	e.add(2, 1, 2)
	e.add(3, 1, 2, 3)
	e.must(1, "1p 2p 3p", change{joining: e.line(2, "participant") + "," + e.line(3, "participant")})
	e.agree("1p 2p 3p", 1, 2, 3)
	e.add(4, 1, 2, 3, 4)
	e.add(5, 1, 2, 3, 5)
	e.must(2, "1p 2p 3p 4p 5o", change{joining: e.line(4, "participant") + "," + e.line(5, "observer")})
	e.agree("1p 2p 3p 4p 5o", 1, 2, 3, 4, 5)
	e.awaitMode(5, "observer")
	e.must(5, "1p 2p 3p 4p 5p", change{joining: e.line(5, "participant")})
	e.awaitMode(5, "follower")

	// The server that has led from the start goes, and a follower with it.
	e.must(3, "3p 4p 5p", change{leaving: "1,2"})
	e.agree("3p 4p 5p", 3, 4, 5)
	e.leaderAmong(3, 4, 5)
	e.eventually("a server that was removed says so in its health", func() bool {
		h, err := admin.FetchHealth(context.Background(), filepath.Join(e.servers[2].DataDir, "zooraft"))
		return err == nil && h.Ready && strings.Contains(h.Warning, "no member of the ensemble any more")
	})
	e.servers[1].Stop(t)
	e.servers[2].Stop(t)
	late := e.write(e.addresses(3, 4, 5))

	// One that was removed comes back with its old data and files: it waits.
	e.servers[1].Launch(t)
	e.must(4, "1p 3p 4p 5p", change{joining: e.line(1, "participant")})
	e.agree("1p 3p 4p 5p", 1, 3, 4, 5)
	e.must(1, "1p 3p 4p", change{leaving: "5"})
	e.check(w, 1, 3, 4)
	e.check(late, 1, 3, 4)
	if late.count() == 0 {
		t.Error("nothing was written after the shrinking")
	}

	// All start again from the files that they wrote themselves.
	for _, id := range []int{1, 3, 4} {
		e.servers[id].Stop(t)
	}
	e.eventually("server 5, which is left alone, says that it is no member", func() bool {
		h, err := admin.FetchHealth(context.Background(), filepath.Join(e.servers[5].DataDir, "zooraft"))
		return err == nil && !h.Ready && strings.Contains(h.Reason, "no member of the ensemble any more")
	})
	for _, id := range []int{1, 3, 4} {
		e.servers[id].Launch(t)
	}
	e.agree("1p 3p 4p", 1, 3, 4)
	e.check(w, 1, 3, 4)
}

func (e *ensemble) leaderAmong(ids ...int) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("one of %v leads", ids), func() bool {
		return slices.ContainsFunc(ids, func(id int) bool { return e.mode(id) == "leader" })
	})
}

// A leader that is killed during a change of several members leaves it to the
// next one, which finishes it or goes back: all servers agree on the old or the
// new members, never on something between, and the next change works.
func TestAReconfigWhoseLeaderIsKilledIsFinishedOrUndone(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("RECONFIG_ROUNDS")); err == nil {
		rounds = n
	}
	e := newEnsemble(t, peer.StartZooraft)
	e.form(1, 2, 3, 4, 5)
	w := e.write(e.addresses(1, 2, 3, 4, 5))
	const all = "1p 2p 3p 4p 5p"
	finished := 0
	for round := range rounds {
		leader := e.leader()
		var rest []int
		for id := 1; id <= 5; id++ {
			if id != leader {
				rest = append(rest, id)
			}
		}
		from, a, b := rest[0], rest[2], rest[3]
		watcher := e.connect(from)
		before := watcher.config(false)
		x := change{joining: e.line(a, "observer") + "," + e.line(b, "observer"), version: -1}
		asker := e.connectSuper(from)
		if err := asker.conn.SendRequest(1000, proto.OpReconfig, x.body()); err != nil {
			t.Fatal(err)
		}
		// Each round kills it a little later: before, within, behind the change.
		after := time.NewTimer(time.Duration(round*40) * time.Millisecond)
		<-after.C
		e.servers[leader].Kill(t)
		e.leaderAmong(rest...)
		var now string
		e.eventually("the change is finished or undone", func() bool {
			c := e.connectSuper(from)
			defer c.conn.Close()
			// A change that asks for a version that is none tells whether one is
			// under way, and changes nothing.
			h, _, err := c.call(proto.OpReconfig, change{version: 1}.body())
			if err != nil || h.Err != proto.ErrBadVersion {
				return false
			}
			now = c.config(false)
			return true
		})
		both := strings.NewReplacer(fmt.Sprintf("%dp", a), fmt.Sprintf("%do", a), fmt.Sprintf("%dp", b), fmt.Sprintf("%do", b)).Replace(all)
		switch members(now) {
		case all:
			if now != before {
				t.Errorf("the same members under another version:\n%s\n%s", before, now)
			}
		case both:
			finished++
		default:
			t.Errorf("half a change is known: %s", members(now))
		}
		e.servers[leader].Launch(t)
		e.must(from, all, change{joining: e.line(a, "participant") + "," + e.line(b, "participant")})
		e.agree(all, 1, 2, 3, 4, 5)
		for id := 1; id <= 5; id++ {
			e.awaitMode(id, "leader", "follower")
		}
	}
	t.Logf("%d of %d changes were finished", finished, rounds)
	e.check(w, 1, 2, 3, 4, 5)
}

// A leader may remove or demote itself: it hands over, and whoever asked, at a
// follower or at the leader itself, gets the answer on the same connection.
func TestALeaderThatIsToGoHandsOverAndTheAskerIsAnswered(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.form(1, 2, 3)
	for _, askLeader := range []bool{false, true} {
		leader := e.leader()
		via := leader%3 + 1
		if askLeader {
			via = leader
		}
		c := e.connectSuper(via)
		text, code := c.reconfig(change{leaving: strconv.Itoa(leader)})
		if code != proto.ErrOK || strings.Contains(text, fmt.Sprintf("server.%d=", leader)) {
			t.Errorf("leader %d removed through server %d: %v, %q", leader, via, code, text)
		}
		if now := e.leader(); now == leader {
			t.Errorf("server %d still leads", leader)
		}
		e.must(leader%3+1, "1p 2p 3p", change{joining: e.line(leader, "participant")})
		leader = e.leader()
		if text, code := e.connectSuper(leader).reconfig(change{joining: e.line(leader, "observer")}); code != proto.ErrOK {
			t.Errorf("leader %d demoted: %v, %q", leader, code, text)
		}
		e.awaitMode(leader, "observer")
		e.must(leader, "1p 2p 3p", change{joining: e.line(leader, "participant")})
	}
}

// Servers that are down do not stop a change that a majority carries: they can
// be made observers, removed, and replaced, and one that is added joins when it
// is started.
func TestADownServerIsReplacedWithoutWaitingForIt(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.form(1, 2, 3)
	leader := e.leader()
	var rest []int
	for id := 1; id <= 3; id++ {
		if id != leader {
			rest = append(rest, id)
		}
	}
	dead, other := rest[0], rest[1]
	e.servers[dead].Kill(t)
	say := func(format string, ids ...int) string {
		slices.Sort(ids)
		var out []string
		for _, id := range ids {
			role := "p"
			if id == dead {
				role = format
			}
			out = append(out, fmt.Sprintf("%d%s", id, role))
		}
		return strings.Join(out, " ")
	}
	e.must(leader, say("o", 1, 2, 3), change{joining: e.line(dead, "observer")})
	e.must(leader, say("", leader, other), change{leaving: strconv.Itoa(dead)})
	// Server 4 is not started yet; two of three participants are there.
	want := say("", leader, other, 4)
	e.must(leader, want, change{joining: e.line(4, "participant")})
	e.add(4, leader, other, 4)
	e.agree(want, leader, other, 4)
	e.awaitMode(4, "follower")
	// It counts: with it the ensemble survives the loss of another one.
	e.servers[other].Kill(t)
	c := e.connect(4)
	body := proto.CreateRequest{Path: "/alive", ACL: proto.OpenACL}
	if h, _, err := c.call(proto.OpCreate, body.Append(nil, proto.OpCreate)); err != nil || h.Err != proto.ErrOK {
		t.Errorf("a write through the server that replaced the dead one: %v, %v", h.Err, err)
	}
}

// The static file loses its server lines to a dynamic file, keeps what it was
// as a backup, and a server without reconfigEnabled touches nothing.
func TestFilesAreRewrittenOnlyWhereReconfigIsEnabled(t *testing.T) {
	for _, enabled := range []string{"true", "false"} {
		t.Run("reconfigEnabled="+enabled, func(t *testing.T) {
			e := newEnsemble(t, peer.StartZooraft)
			e.config["reconfigEnabled"] = enabled
			e.form(1, 2, 3)
			path := e.servers[1].ConfigFile
			if enabled == "true" {
				e.agree("1p 2p 3p", 1, 2, 3)
				backup, err := os.ReadFile(path + ".bak")
				if err != nil || !strings.Contains(string(backup), "server.1=") {
					t.Errorf("the backup says %q, %v", backup, err)
				}
				return
			}
			if text := e.connect(1).config(false); members(text) != "1p 2p 3p" || !strings.HasSuffix(text, "version=0") {
				t.Errorf("%s says %q", proto.PathConfig, text)
			}
			if _, code := e.connectSuper(1).reconfig(change{leaving: "3"}); code != proto.ErrReconfigDisabled {
				t.Errorf("a reconfig is answered with %v", code)
			}
			for _, name := range []string{".bak", ".dynamic*"} {
				if found, err := filepath.Glob(path + name); err != nil || len(found) > 0 {
					t.Errorf("found %v, %v", found, err)
				}
			}
		})
	}
}
