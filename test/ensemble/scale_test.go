package ensemble

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	sessions "github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// An operator scales from one server to three, to one, to three, to two and to
// three again, and takes out the first one, with the number 0, and puts it back:
// by reconfig alone, with the disks and files that the servers have. Data and
// sessions survive; who is no member waits to be added, has no vote and says so
// (case 64).
func TestAnEnsembleScalesDownAndUpWithItsOldDisks(t *testing.T) {
	e := newEnsemble(t, peer.StartZooraft)
	e.config["maxSessionTimeout"] = "60000"
	e.add(0, 0)
	e.awaitMode(0, "leader")
	e.add(1, 0, 1)
	e.add(2, 0, 1, 2)
	holder, owner := e.hold("/held", 0, 1, 2)
	w := e.write(e.addresses(0))
	e.must(0, "0p 1p 2p", change{joining: e.line(1, "participant") + "," + e.line(2, "participant")})
	e.agree("0p 1p 2p", 0, 1, 2)

	e.must(0, "0p", change{leaving: "1,2"})
	e.awaitMode(0, "leader")
	for _, id := range []int{1, 2} {
		e.servers[id].Stop(t)
	}
	for _, id := range []int{1, 2} {
		e.servers[id].Launch(t)
	}
	for _, id := range []int{1, 2} {
		e.waitsToBeAdded(id)
	}
	e.must(0, "0p 1p 2p", change{joining: e.line(1, "participant") + "," + e.line(2, "participant")})
	e.agree("0p 1p 2p", 0, 1, 2)

	// The pod goes first, and its membership afterwards.
	e.servers[2].Kill(t)
	e.must(1, "0p 1p", change{leaving: "2"})
	e.agree("0p 1p", 0, 1)
	late := e.write(e.addresses(0, 1))
	e.servers[2].Launch(t)
	e.waitsToBeAdded(2)
	e.must(1, "0p 1p 2p", change{joining: e.line(2, "participant")})
	e.agree("0p 1p 2p", 0, 1, 2)

	e.must(1, "1p 2p", change{leaving: "0"})
	e.agree("1p 2p", 1, 2)
	e.servers[0].Stop(t)
	e.servers[0].Launch(t)
	e.waitsToBeAdded(0)
	e.must(1, "0p 1p 2p", change{joining: e.line(0, "participant")})
	e.agree("0p 1p 2p", 0, 1, 2)
	e.awaitMode(0, "leader", "follower")

	e.check(w, 0, 1, 2)
	e.check(late, 0, 1, 2)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if st, err := holder.Exists(ctx, "/held", false); err != nil || st.EphemeralOwner != int64(owner) || holder.ID() != owner {
		t.Errorf("the session %v of before is %v, and its ephemeral %+v, %v", owner, holder.ID(), st, err)
	}
}

// hold opens a session over these servers that has a node.
func (e *ensemble) hold(path string, ids ...int) (*sessions.Session, proto.SessionID) {
	e.t.Helper()
	s := sessions.NewSession(sessions.SessionOptions{Servers: e.addresses(ids...)(), Timeout: time.Minute, Patient: true})
	e.t.Cleanup(s.Drop)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := s.Create(ctx, proto.CreateRequest{Path: path, ACL: proto.OpenACL, Flags: proto.CreateEphemeral}); err != nil {
		e.t.Fatal(err)
	}
	return s, s.ID()
}

// waitsToBeAdded waits until a server that is no member says so, in its health
// and, once for each membership that it hears of, in its log: it lives, and if it
// still follows it has no vote.
func (e *ensemble) waitsToBeAdded(id int) {
	e.t.Helper()
	const says = "this server is no member of the ensemble any more"
	e.eventually(fmt.Sprintf("server %d says that it is no member", id), func() bool {
		h, err := admin.FetchHealth(context.Background(), filepath.Join(e.servers[id].DataDir, "zooraft"))
		return err == nil && h.Live && (h.Ready && strings.Contains(h.Warning, says) || strings.Contains(h.Reason, says))
	})
	if mode := e.mode(id); mode == "leader" {
		e.t.Errorf("server %d, which is no member, is a %s", id, mode)
	}
	told := map[string]bool{}
	for _, line := range strings.Split(e.servers[id].Log(), "\n") {
		if _, version, ok := strings.Cut(line, says+`" version=`); ok && told[version] {
			e.t.Errorf("server %d says twice that it is no member of version %s", id, version)
		} else if ok {
			told[version] = true
		}
		if strings.Contains(line, "the election ports of the server lines are not used") { // it is started again
			told = map[string]bool{}
		}
	}
}
