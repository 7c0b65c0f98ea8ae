package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
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
		if err != nil || !slices.Equal(membersIn(string(text)), e.file()) {
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
		r.e.eventually("the members are those of the files", func() bool {
			r.handHome(before)
			return r.e.asWanted()
		})
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

// handHome does what is left to the operator: the leader's file is what counts,
// so one that is to go, and has the old file, must not go on to lead.
func (r *runner) handHome(before map[int]string) {
	var members []int
	for _, id := range r.e.ids {
		if r.e.role(id) == participant {
			members = append(members, id)
		}
	}
	for id := range before {
		if _, stays := r.e.lines[id]; !stays && field(r.e.srvr(id), "Mode") == "leader" {
			_ = r.e.handOver(id, r.pick(members)) // else it is asked again
		}
	}
}

// hasOld tells whether a server's file has other lines than the newest.
func (e *ensemble) hasOld(id int) bool {
	text, err := os.ReadFile(e.servers[id].ConfigFile)
	if err != nil {
		e.t.Fatal(err)
	}
	return !slices.Equal(membersIn(string(text)), e.file())
}

// membersIn are the server lines of a file, in order.
func membersIn(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "server.") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
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
