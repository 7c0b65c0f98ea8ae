package consensus

import (
	"testing"

	"github.com/hashicorp/raft"
)

// A founder that another one asks for its vote before it has written the first
// entry can no longer write it. If it is killed then, it must start again.
func TestAFounderThatVotedBeforeItsFirstEntryStartsAgain(t *testing.T) {
	servers := ensemble(t, 3)
	one := servers[0]
	leaderOf(t, servers)
	for _, s := range servers {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The same on a directory of its own, with nobody else there.
	c := one.config
	c.DataDir, c.LogDir = t.TempDir(), ""
	early := &testServer{config: c}
	early.open(t)
	if err := early.stable.update(func(i *identity) {
		i.Formed, i.ClusterID, i.Founders = true, "x", []member{{ID: i.raftID(), Address: "a", Voter: true}, {ID: "2-1", Address: "b", Voter: true}}
	}); err != nil {
		t.Fatal(err)
	}
	answer := make(chan raft.RPCResponse, 1)
	early.network.rpcs <- raft.RPC{RespChan: answer, Command: &raft.RequestVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("2-1"), Addr: []byte("b")},
		Term:      2, LastLogIndex: 1, LastLogTerm: 1}}
	if r := <-answer; r.Error != nil || !r.Response.(*raft.RequestVoteResponse).Granted {
		t.Fatalf("no vote: %+v", r)
	}
	if err := early.writeFirst(early.stable.identity().Founders); err != nil {
		t.Fatal(err)
	}
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	early.open(t) // fails the test if it is refused
}
