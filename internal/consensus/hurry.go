package consensus

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

/*
A leader whose process has died is known to be dead long before Raft's timers
say so: its streams end, and its peer port refuses the connection. Then the
followers need not wait for one to two heartbeat timeouts, and those can be long
enough for a loaded machine.

A refused connection alone proves little: a firewall may refuse this server and
nobody else. So the other voters are asked first whether one of them leads or
has a stream to the leader. If none has, this server's own Raft is told to
campaign now, with the message that a leader sends who hands over: it skips the
pre-vote, which the others would refuse for as long as their timers run. Votes
and logs are compared as always, so a wrong guess costs an election and nothing
else.

The voters take turns, in the order of their ids, so that their votes do not
split.

The same is done whenever a majority is there and says that it has no leader,
because nobody needs to wait for one then: when an ensemble starts again as a whole,
and when the first campaign after a loss has led to nothing.
*/

const (
	// hurryTurn is the distance of two voters' turns: several times what an
	// election takes.
	hurryTurn = 80 * time.Millisecond
	// hurryPause is the least time between two campaigns of one server begun
	// this way.
	hurryPause = 2 * time.Second
	// hurryAgain is the pause until a server begins another campaign after one that
	// has led to nothing, and half of it the distance of two voters then.
	hurryAgain = 400 * time.Millisecond
	// askTimeout bounds the question to the other voters.
	askTimeout = 150 * time.Millisecond
)

// leaderGone is told why the leader could not be reached, and who answered in
// its place, if anybody did.
func (n *Node) leaderGone(leader raft.ServerID, err error, answered string) {
	gone := errors.Is(err, syscall.ECONNREFUSED) || answered != "" && answered != string(leader)
	if gone && n.hurrying.CompareAndSwap(false, true) {
		go n.hurry(leader)
	}
}

// hurry is a goroutine that ends when another server leads, or when Raft's own
// timers have had their time. One runs at a time.
func (n *Node) hurry(leader raft.ServerID) {
	defer n.hurrying.Store(false)
	turn, voter := n.turnAfter(leader)
	if !voter || !n.disk.wait(time.Duration(turn)*hurryTurn) {
		return
	}
	stillGone := func() bool {
		_, id := n.raft.LeaderWithID()
		return (id == leader || id == "") && n.raft.State() == raft.Follower && n.route.get() == nil
	}
	if !stillGone() || n.someoneFollows() || !stillGone() {
		return
	}
	begin := time.Now()
	n.logger.Info("the leader's process is gone; this server campaigns at once", "leader", leader)
	n.campaign()
	if n.disk.wait(againAfter(turn)) {
		n.insist(turn, "nobody was elected in the place of the leader that is gone; this server campaigns at once")
	}
	n.disk.wait(hurryPause - time.Since(begin))
}

// leaderLost starts a goroutine that ends like hurry, unless one runs. The other voters may have
// learned of the loss by this server's campaign and not by their streams, or this
// one by theirs; and the one that has campaigned may have an older log, so that
// it cannot be elected however often it tries. So each waits until an election has
// had its time, and then campaigns in its turn.
func (n *Node) leaderLost() (started bool) {
	if !n.hurrying.CompareAndSwap(false, true) {
		return false
	}
	go func() {
		defer n.hurrying.Store(false)
		if turn, voter := n.turnAfter(""); voter && n.disk.wait(againAfter(turn)) {
			n.insist(turn, "the leader is lost and nobody was elected in its place; this server campaigns at once")
		}
	}()
	return true
}

// resume is a goroutine that ends when Raft's own timers have had their time: after
// a start this server campaigns at once if a majority is there without a leader.
func (n *Node) resume() {
	defer n.workers.Done()
	turn, voter := n.turnAfter("")
	if voter && n.disk.wait(time.Duration(turn)*hurryTurn) {
		n.insist(turn, "a majority is there and has no leader; this server campaigns at once")
	}
}

// insist campaigns whenever a majority is there and has no leader, until Raft's own
// timers have had their time. It goes on when a leader is known, for a voter with an
// older log that has asked just before, and campaigns now, costs that one its term.
func (n *Node) insist(turn int, why string) {
	for begin := time.Now(); time.Since(begin) < n.cfg.ElectionTimeout; {
		pause := hurryTurn
		if n.leaderless() && n.majorityLeaderless() && n.leaderless() {
			n.logger.Info(why)
			n.stepBack()
			n.campaign()
			pause = againAfter(turn)
		}
		if !n.disk.wait(pause) {
			return
		}
	}
}

// campaign has this server's Raft campaign without a pre-vote. It does so whatever it
// is: a candidate begins a later term, and a leader would lose its own.
func (n *Node) campaign() {
	n.network.inject(&raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}})
}

// againAfter is how long a voter waits for a campaign to lead to something.
func againAfter(turn int) time.Duration {
	return hurryAgain + time.Duration(turn)*hurryAgain/2
}

// stepBack makes a candidate that was not elected a follower again, for only a
// follower campaigns at once: by a candidate of a later term, whose log is too old
// to be voted for.
func (n *Node) stepBack() {
	if n.raft.State() != raft.Candidate {
		return
	}
	own := n.stable.identity().raftID()
	n.network.inject(&raft.RequestVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(own), Addr: []byte(own)},
		Term:      n.raft.CurrentTerm() + 1,
	})
}

// leaderless tells whether this server knows no leader and is none.
func (n *Node) leaderless() bool {
	_, id := n.raft.LeaderWithID()
	return id == "" && n.raft.State() != raft.Leader
}

// majorityLeaderless tells whether a majority of the voters, this one included,
// answers, and nobody knows of a leader.
func (n *Node) majorityLeaderless() bool {
	there := map[string]bool{n.stable.identity().raftID(): true}
	for _, w := range n.probeAll(n.everybody(), askTimeout) {
		if w.Leader != "" {
			return false
		}
		there[w.ID] = w.Formed && w.ClusterID == n.stable.identity().ClusterID
	}
	voters, answer := 0, 0
	for _, s := range n.raftServers() {
		if s.Suffrage == raft.Voter {
			voters++
			if there[string(s.ID)] {
				answer++
			}
		}
	}
	return answer > voters/2
}

// turnAfter is this server's place among the voters without the one that led.
func (n *Node) turnAfter(leader raft.ServerID) (turn int, voter bool) {
	var voters []raft.ServerID
	for _, s := range n.raftServers() {
		if s.Suffrage == raft.Voter && s.ID != leader {
			voters = append(voters, s.ID)
		}
	}
	slices.Sort(voters)
	turn = slices.Index(voters, raft.ServerID(n.stable.identity().raftID()))
	return turn, turn >= 0
}

// someoneFollows asks the other servers whether a leader is alive for them.
func (n *Node) someoneFollows() bool {
	for _, w := range n.probeAll(n.everybody(), askTimeout) {
		if w.Leader != "" {
			return true
		}
	}
	return false
}

// attached is the Raft id of the leader that this server has a stream to, or
// is itself; "" if there is none.
func (n *Node) attached() string {
	if n.raftState() == raft.Leader {
		return n.stable.identity().raftID()
	}
	return n.route.leader()
}

// leaderSilence is how long a follower may have heard nothing of its leader until it
// no longer refuses a candidate because of it: three quarters of the time after which
// followers campaign, five heartbeats or more.
func (n *Node) leaderSilence() time.Duration { return n.cfg.ElectionTimeout * 3 / 4 }

// judgeByLog is for a candidate's request. A follower refuses it as long as its own
// timer has not run out, and then the candidate waits for its timer again: if it is
// the only one whose log is new enough, a leader that has stopped is missed for four
// election timeouts instead of two. So a follower that has itself heard nothing of
// the leader for so long judges a candidate by terms and logs alone, which nothing
// else depends on: the worst that can come of it is one more election.
func (n *Node) judgeByLog(command any, silence time.Duration) {
	leader, _ := n.raft.LeaderWithID()
	if leader == "" || n.raft.State() != raft.Follower || n.raft.LastContact().IsZero() || time.Since(n.raft.LastContact()) < silence {
		return
	}
	switch request := command.(type) {
	case *raft.RequestPreVoteRequest:
		// The library has no word for it, but takes the leader itself. It is asked by
		// its address, and is a member and a voter by its id.
		request.Addr = []byte(leader)
	case *raft.RequestVoteRequest:
		request.LeadershipTransfer = true
	}
}
