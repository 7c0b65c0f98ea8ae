package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Without reconfig an operator scales by the files: from a server alone, with the
// number 0, to three, back to one that is alone again, to three, to two and to
// three, with the disks that the servers have. Data and sessions survive; who is no
// member says so and has no vote (case 64).
func TestServersScaleDownAndUpByEditedFilesWithTheirOldDisks(t *testing.T) {
	t.Parallel()
	f := &fleet{ensemble: &ensemble{t: t, servers: map[int]*peer.Server{}, lines: map[int]string{}},
		own: map[string]string{"maxSessionTimeout": "60000"}}
	f.address(0, "127.0.0.1")
	f.launch(0)
	f.alone(0)
	f.world = newWorld(f.ensemble, 1)
	f.write(0)

	f.address(1, "127.0.0.1")
	f.address(2, "127.0.0.1")
	all := map[int]string{0: f.lines[0], 1: f.lines[1], 2: f.lines[2]}
	f.launch(1)
	f.launch(2)
	holder := client.NewSession(client.SessionOptions{Timeout: time.Minute, Patient: true,
		Servers: []string{f.ensemble.address(0), f.ensemble.address(1), f.ensemble.address(2)}})
	t.Cleanup(holder.Drop)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	if _, err := holder.Create(ctx, proto.CreateRequest{Path: "/held", ACL: proto.OpenACL, Flags: proto.CreateEphemeral}); err != nil {
		t.Fatal(err)
	}
	owner := holder.ID()
	f.roll(0)
	f.settle(0, 1, 2)

	f.lead(0)
	delete(f.lines, 1)
	delete(f.lines, 2)
	f.edit(0, func(text string) string { return text + "standaloneEnabled=false\n" })
	f.roll(0)
	f.lead(0)
	f.eventually("server 0 is the only member", func() bool {
		s, err := f.status()
		return err == nil && s.Settled && len(s.Members) == 1
	})
	f.drop(1)
	f.drop(2)
	f.edit(0, func(text string) string { return strings.ReplaceAll(text, "standaloneEnabled=false\n", "") })
	f.servers[0].Stop(t)
	f.servers[0].Launch(t)
	f.alone(0)
	f.write(0)

	f.lines[1], f.lines[2] = all[1], all[2]
	f.again(1, 2)
	f.roll(0)
	f.settle(0, 1, 2)

	// The pod goes first, and its line afterwards.
	f.drop(2)
	delete(f.lines, 2)
	f.roll(0, 1)
	f.settle(0, 1)
	f.again(2)
	f.eventually("server 2 says that it is no member", func() bool {
		h, err := admin.FetchHealth(context.Background(), f.ownDir(2))
		return err == nil && h.Live && !h.Ready && strings.Contains(h.Reason, "no member of the ensemble any more")
	})
	if mode := field(f.srvr(2), "Mode"); mode != "" || f.takesClients(2) {
		t.Errorf("server 2, which is no member, serves as %q", mode)
	}
	f.lines[2] = all[2]
	f.roll(1, 0)
	f.settle(0, 1, 2)
	if st, err := holder.Exists(ctx, "/held", false); err != nil || st.EphemeralOwner != int64(owner) || holder.ID() != owner {
		t.Errorf("the session %v of before is %v, and its ephemeral %+v, %v", owner, holder.ID(), st, err)
	}
}

// again starts servers that were dropped, with the disks and files that they had.
func (f *fleet) again(ids ...int) {
	f.t.Helper()
	for _, id := range ids {
		f.servers[id].Launch(f.t)
		f.ids = append(f.ids, id)
	}
	f.t.Logf("servers %v are started again", ids)
}
