package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// What a server line says that a server is.
const participant, observer = "participant", "observer"

// wayOfChange is how the list of members changes.
type wayOfChange int

const (
	never wayOfChange = iota
	// byFiles: all server lines are edited and one server after the other is
	// started anew.
	byFiles
	// byReconfig: a client asks for it.
	byReconfig
)

func (w wayOfChange) String() string { return [...]string{"never", "by files", "by reconfig"}[w] }

func (w wayOfChange) config() map[string]string {
	if w != byReconfig {
		return nil
	}
	return map[string]string{"reconfigEnabled": "true"}
}

// defines adds that every client may change the members.
func (w wayOfChange) defines(others map[string]string) map[string]string {
	if w != byReconfig {
		return others
	}
	all := map[string]string{"zookeeper.skipACL": "yes"}
	maps.Copy(all, others)
	return all
}

func (e *ensemble) ownDir(id int) string { return filepath.Join(e.servers[id].DataDir, "zooraft") }

// status is what the leader says of the ensemble.
func (e *ensemble) status() (s admin.EnsembleStatus, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, id := range e.ids {
		if s, err = admin.FetchEnsemble(ctx, e.ownDir(id)); err == nil && s.Leader == int64(id) {
			return s, nil
		}
	}
	return s, fmt.Errorf("no leader answers: %w", err)
}

// asWanted tells whether the members are those of the lines, in their roles and
// in touch.
func (e *ensemble) asWanted() bool {
	s, err := e.status()
	if err != nil || !s.Settled {
		return false
	}
	there := 0
	for _, m := range s.Members {
		line, wanted := e.lines[int(m.ID)]
		if !wanted && e.options.members == byReconfig {
			continue // it follows until it is stopped, as on Apache's
		}
		there++
		if !wanted || !strings.HasPrefix(line, m.Address+":") || m.Role != e.role(int(m.ID)) || !m.Follows && m.ID != s.Leader {
			return false
		}
	}
	return there == len(e.lines)
}

// published tells whether /zookeeper/config has the lines at every server.
func (e *ensemble) published() bool {
	for _, id := range e.ids {
		c, err := dial(e.address(id), 0, nil, 0)
		if err != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		text, _, err := c.Get(ctx, "/zookeeper/config", false)
		cancel()
		c.Drop()
		var lines []string
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "server.") {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		if err != nil || !slices.Equal(lines, e.file()) {
			return false
		}
	}
	return true
}

// awaitMembers waits until the members are those of the lines and everybody
// says so.
func (e *ensemble) awaitMembers() {
	e.t.Helper()
	e.eventually(fmt.Sprintf("the members are %v", e.lines), e.asWanted)
	e.eventually("all servers show them", e.published)
}

// rewrite gives a server's file the newest lines.
func (e *ensemble) rewrite(id int) {
	e.t.Helper()
	path := e.servers[id].ConfigFile
	text, err := os.ReadFile(path)
	if err != nil {
		e.t.Fatal(err)
	}
	kept := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "server.") || strings.HasPrefix(line, "dynamicConfigFile") || strings.HasPrefix(line, "peerType")
	})
	if err := os.WriteFile(path, []byte(strings.Join(append(kept, e.file()...), "\n")+"\n"), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

// changeMembers moves the ensemble from the lines that it had to those that
// there are now. The new servers run already. Harm is done once in the middle.
func (r *runner) changeMembers(before map[int]string, harm func()) {
	r.e.t.Helper()
	begun := r.now()
	if r.e.options.members == byFiles {
		r.roll(before, harm)
	} else {
		r.reconfig(before, harm)
	}
	r.e.awaitMembers()
	r.count("changes of the members " + r.e.options.members.String())
	r.e.t.Logf("%8.3fs the members have changed, after %.1f s", r.now().Seconds(), (r.now() - begun).Seconds())
}

// roll gives each of the members so far that stay the newest lines and starts
// it anew, one after the other.
func (r *runner) roll(before map[int]string, harm func()) {
	var stay []int
	for _, id := range r.e.ids {
		if _, was := before[id]; was && r.e.hasOld(id) {
			stay = append(stay, id)
		}
	}
	r.rng.Shuffle(len(stay), func(i, j int) { stay[i], stay[j] = stay[j], stay[i] })
	for i, id := range stay {
		r.e.rewrite(id)
		r.restartCleanly(id)
		r.e.eventually(fmt.Sprintf("server %d is back with its new file", id), func() bool { return r.e.takesClients(id) })
		if i == 0 {
			harm()
		}
	}
}

// hasOld tells whether a server's file lacks any of the newest lines.
func (e *ensemble) hasOld(id int) bool {
	text, err := os.ReadFile(e.servers[id].ConfigFile)
	return err != nil || !strings.Contains(string(text), strings.Join(e.file(), "\n"))
}

// reconfig asks for the change, again and again until it is in force: a leader
// that is killed may have undone it.
func (r *runner) reconfig(before map[int]string, harm func()) {
	var joining, leaving []string
	for id, line := range r.e.lines {
		if before[id] != line {
			joining = append(joining, fmt.Sprintf("server.%d=%s", id, line))
		}
	}
	for id := range before {
		if _, stays := r.e.lines[id]; !stays {
			leaving = append(leaving, fmt.Sprint(id))
		}
	}
	body := (&proto.ReconfigRequest{Joining: strings.Join(joining, ","), Leaving: strings.Join(leaving, ","),
		NewMembers: proto.NullString, CurConfigID: -1}).Append(nil)
	said := "none"
	defer func() {
		if r.e.t.Failed() {
			r.e.t.Logf("the last answer to a reconfig: %s", said)
		}
	}()
	asked := false
	r.e.within(3*patience, "the members are changed", func() bool {
		if asked && r.e.published() {
			return true
		}
		c, err := dial(r.e.address(r.pick(r.e.ids)), 0, nil, 0)
		if err != nil {
			return false
		}
		defer c.Drop()
		call := c.Do(proto.OpReconfig, body)
		if !asked {
			asked = true
			harm()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*callTimeout)
		defer cancel()
		if _, err = call.Wait(ctx); err != nil {
			r.count(fmt.Sprintf("reconfigs answered with %v", client.Code(err)))
		}
		said = fmt.Sprint(err)
		return false
	})
}

// harm is what befalls an ensemble in the middle of a change, or nothing.
func (r *runner) harm() func() {
	switch r.rng.IntN(4) {
	case 0:
		return func() { r.killFor(2*time.Second, r.leaderNow()) }
	case 1:
		return func() { r.stopFor(2*time.Second, r.pick(r.e.ids)) }
	case 2:
		return func() { r.e.net.closeConns(func(*pipe) bool { return true }) }
	}
	return func() {}
}

// membershipFaults are changes of the members while clients work.
func membershipFaults() []fault {
	return []fault{
		{name: "two servers join, or leave again", needs: changingMembers, run: func(r *runner) { r.joinOrLeave(r.harm()) }},
		{name: "a member is replaced by an empty one at another address", needs: changingMembers, run: func(r *runner) { r.replace(r.pick(r.e.ids)) }},
		{name: "the leader is replaced by an empty server at another address", needs: changingMembers, run: func(r *runner) { r.replace(r.leaderNow()) }},
		{name: "a member's role changes", needs: changingMembers, run: func(r *runner) { r.changeRole() }},
	}
}

// guests are the numbers of the servers that join and leave.
func (e *ensemble) guests() []int {
	first := e.options.servers + e.options.observers + 1
	return []int{first, first + 1}
}

func (r *runner) joinOrLeave(harm func()) {
	if slices.Contains(r.e.ids, r.e.guests()[0]) {
		r.leave(harm)
	} else {
		r.join(harm)
	}
}

// join adds the guests, with empty directories or with what they had when they
// left.
func (r *runner) join(harm func()) {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	again := e.servers[e.guests()[0]] != nil && r.rng.IntN(2) == 0
	for _, id := range e.guests() {
		at, client := e.freeAddress(), ""
		if again {
			at, client = e.net.targets[id], e.address(id)
		}
		e.net.join(e.t, id, at)
		e.name(id, participant, client)
	}
	for _, id := range e.guests() {
		if again {
			e.rewrite(id)
			e.servers[id].Launch(e.t)
		} else {
			e.replaceProcess(id)
		}
	}
	e.ids = append(e.ids, e.guests()...)
	r.changeMembers(before, harm)
	e.openDoors()
}

// leave takes the guests out, and ends them some time later.
func (r *runner) leave(harm func()) {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	for _, id := range e.guests() {
		delete(e.lines, id)
	}
	e.ids = slices.DeleteFunc(e.ids, func(id int) bool { return slices.Contains(e.guests(), id) })
	r.changeMembers(before, harm)
	r.hold(2 * time.Second)
	for _, id := range e.guests() {
		e.kill(id)
	}
	e.openDoors()
}

// replace puts an empty server in the place of a member.
func (r *runner) replace(id int) {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	role := e.role(id)
	e.kill(id)
	e.net.join(e.t, id, e.freeAddress())
	e.name(id, role, "")
	e.replaceProcess(id)
	e.openDoors()
	r.changeMembers(before, func() {})
	r.awaitMember(id)
}

// replaceProcess starts an empty server under a number.
func (e *ensemble) replaceProcess(id int) {
	if old := e.servers[id]; old != nil {
		e.former = append(e.former, old)
		if err := os.RemoveAll(old.DataDir); err != nil {
			e.t.Fatal(err)
		}
	}
	e.add(id)
}

// changeRole makes some member an observer, or an observer a participant. Three
// participants remain at least.
func (r *runner) changeRole() {
	e := r.e
	e.awaitAll()
	before := maps.Clone(e.lines)
	participants := slices.DeleteFunc(slices.Clone(e.ids), func(id int) bool { return e.role(id) == observer })
	observers := e.without(participants)
	from, to := observers, participant
	if len(participants) > 3 && (len(observers) == 0 || r.rng.IntN(2) == 0) {
		from, to = participants, observer
	}
	if len(from) == 0 {
		return
	}
	id := r.pick(from)
	e.lines[id] = strings.Replace(e.lines[id], ":"+e.role(id), ":"+to, 1)
	r.changeMembers(before, r.harm())
}

// without are the members that are not among these.
func (e *ensemble) without(ids []int) (others []int) {
	for _, id := range e.ids {
		if !slices.Contains(ids, id) {
			others = append(others, id)
		}
	}
	return others
}

// fillDisk takes all space of the one server with a small disk for a while,
// half of the time while it leads.
func (r *runner) fillDisk() {
	e := r.e
	id := e.options.smallDisk
	if l := r.leaderNow(); l != id && e.role(id) == participant && r.rng.IntN(2) == 0 {
		_ = e.handOver(l, id) // it may no longer lead
	}
	ballast := peer.Fill(e.t, e.options.smallDiskAt)
	r.hold(4 * time.Second)
	if err := os.Remove(ballast); err != nil {
		e.t.Fatal(err)
	}
	r.e.eventually("the server whose disk was full takes clients again", func() bool {
		return e.running(id) && e.takesClients(id)
	})
}

// mountable tells whether this machine lets the test mount a disk that it can
// fill.
func mountable(dir string) bool {
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k") != nil {
		return false
	}
	return syscall.Unmount(dir, 0) == nil
}
