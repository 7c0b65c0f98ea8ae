package admin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	zk "github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// rolesOf starts three participants and an observer, writes and reads at each,
// and returns what mntr says by role.
func rolesOf(t *testing.T, ensemble func(testing.TB, int, peer.Options) *peer.Ensemble, one func(testing.TB, peer.Options) *peer.Server) map[string]map[string]string {
	t.Helper()
	config := map[string]string{"4lw.commands.whitelist": "*", "initLimit": "100", "syncLimit": "50"}
	observer := fmt.Sprintf("server.4=127.0.0.1:%d:%d:observer", peer.FreePort(t), peer.FreePort(t))
	args := []string{"--allow-unprotected"} // for zooraft
	e := ensemble(t, 3, peer.Options{Config: config, Lines: []string{observer}, Args: args})
	lines := []string{observer}
	for i, m := range e.Members {
		lines = append(lines, fmt.Sprintf("server.%d=%s", i+1, m))
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config["peerType"] = "observer"
	e.Servers = append(e.Servers, one(t, peer.Options{Config: config, Lines: lines, DataDir: dir, Args: args}))
	roles := map[string]map[string]string{}
	for _, s := range e.Servers {
		use(t, s)
		_, values := monitor(t, &scene{t: t, server: s, names: map[string]string{}})
		roles[values["zk_server_state"]] = values
	}
	return roles
}

// use writes, reads and watches at a server.
func use(t *testing.T, s *peer.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), peer.ReadyTimeout)
	defer cancel()
	c, err := zk.Dial(ctx, s.Address, zk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/n"
	if _, err := c.Create(ctx, path, []byte("x"), proto.CreateEphemeral); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Get(ctx, path, true); err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(ctx, path); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// ofLearners are the leader's keys for each learner's queue of packets. We have no
// such queue (docs/metrics.md).
var ofLearners = regexp.MustCompile(`^zk_[a-z0-9]+_\d+_learner_handler_qp_(size|time_ms)$`)

// movedBy are keys that in each role have moved on both servers once clients have
// written there: the real server is the judge of where. A server alone counts none
// of them.
var movedBy = map[string][]string{
	"leader": {"looking_count", "cnt_election_time", "cnt_unavailable_time", "cnt_leader_unavailable_time",
		"proposal_count", "commit_count", "cnt_quorum_ack_latency", "cnt_propagation_latency"},
	"follower": {"looking_count", "cnt_election_time", "cnt_unavailable_time", "cnt_follower_sync_time",
		"learner_proposal_received_count", "learner_commit_received_count", "cnt_commit_propagation_latency", "cnt_propagation_latency"},
	"observer": {"looking_count", "cnt_unavailable_time", "cnt_observer_sync_time",
		"learner_commit_received_count", "cnt_commit_propagation_latency", "cnt_propagation_latency"},
}

// Dashboards and readiness checks look for keys by role (case 70): what the real
// server says as leader, follower and observer, ours says too, and in the same
// form.
func TestMntrHasEveryKeyOfApachesInEachRole(t *testing.T) {
	want := rolesOf(t, peer.StartApacheEnsemble, peer.StartApache)
	got := rolesOf(t, peer.StartZooraftEnsemble, peer.StartZooraft)
	for _, role := range []string{"leader", "follower", "observer"} {
		if len(want[role]) < 100 || len(got[role]) < 100 {
			t.Errorf("as %s the real server says %d lines, ours %d", role, len(want[role]), len(got[role]))
		}
		var wrong []string
		for key, value := range want[role] {
			ours, ok := got[role][key]
			switch {
			case !ok && ofLearners.MatchString(key):
			case !ok:
				wrong = append(wrong, key+" is missing")
			case kindOfNumber(ours) != kindOfNumber(value):
				wrong = append(wrong, fmt.Sprintf("%s is %q, on the real server %q", key, ours, value))
			}
		}
		for _, name := range movedBy[role] {
			if ours, theirs := got[role]["zk_"+name], want[role]["zk_"+name]; strings.Trim(ours, "0") == "" || strings.Trim(theirs, "0") == "" {
				wrong = append(wrong, fmt.Sprintf("%s is %s, on the real server %s", name, ours, theirs))
			}
		}
		wrong = append(wrong, movedWithoutReason(t, got[role])...)
		slices.Sort(wrong)
		if len(wrong) > 0 {
			t.Errorf("as %s:\n%s", role, strings.Join(wrong, "\n"))
		}
	}
}
