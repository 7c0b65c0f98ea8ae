package consensus

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// With a timeout of an hour no follower loses its leader by its own timer. One that
// has heard nothing of the leader for long is to take a candidate all the same, if
// its log is new enough, and one that hears the leader is to take none.
func TestAFollowerOfASilentLeaderJudgesACandidateByItsLog(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.ElectionTimeout = time.Hour })
	_, others := leaderOf(t, servers)
	asked, candidate := others[0], others[1]
	eventuallyTrue(t, "both followers have the same log", func() bool {
		return asked.raft.LastIndex() == candidate.raft.LastIndex()
	})
	last := asked.raft.LastIndex()
	var newest raft.Log
	if err := asked.log.GetLog(last, &newest); err != nil {
		t.Fatal(err)
	}
	id := candidate.stable.identity().raftID()
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id + "@127.0.0.1:1")}
	ask := func(command any, silence time.Duration) (granted bool) {
		asked.judgeByLog(command, silence)
		answer := make(chan raft.RPCResponse, 1)
		asked.network.rpcs <- raft.RPC{Command: command, RespChan: answer}
		switch response := (<-answer).Response.(type) {
		case *raft.RequestPreVoteResponse:
			return response.Granted
		case *raft.RequestVoteResponse:
			return response.Granted
		}
		t.Fatal("another answer than was asked for")
		return false
	}
	term := asked.raft.CurrentTerm() + 1
	for _, row := range []struct {
		name    string
		silence time.Duration
		index   uint64
		granted bool
	}{
		{"the leader was heard lately", time.Hour, last, false},
		{"the leader is silent, the log is older", 0, last - 1, false},
		{"the leader is silent, the log is as new", 0, last, true},
	} {
		pre := &raft.RequestPreVoteRequest{RPCHeader: header, Term: term, LastLogIndex: row.index, LastLogTerm: newest.Term}
		if got := ask(pre, row.silence); got != row.granted {
			t.Errorf("%s: a pre-vote is granted: %v", row.name, got)
		}
	}
	vote := func() *raft.RequestVoteRequest {
		return &raft.RequestVoteRequest{RPCHeader: header, Term: term, LastLogIndex: last, LastLogTerm: newest.Term}
	}
	if ask(vote(), time.Hour) {
		t.Error("a vote is granted although the leader was heard lately")
	}
	if !ask(vote(), 0) {
		t.Error("no vote is granted although the leader is silent")
	}
}
