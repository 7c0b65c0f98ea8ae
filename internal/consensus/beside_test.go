package consensus

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// Rules "apply" and "tell": while the leader's own sync is awaited, an entry that
// all others have stored is not applied and not told to be committed anywhere.
func TestNothingIsSeenOfAnEntryThatTheLeaderHasNotSynced(t *testing.T) {
	servers, disks := losing(t)
	leader, others := leaderOf(t, servers)
	hang := make(chan struct{})
	disks[leader].set(nil, nil, hang)
	index := leader.unsyncedTail(t, 1, "first")
	stored(t, others, index)
	eventuallyTrue(t, "Raft takes it for committed", func() bool { return leader.raft.CommitIndex() >= index })
	stored(t, others, leader.unsyncedTail(t, 2, "second")) // an append that tells of commits

	args := &raft.AppendEntriesRequest{LeaderCommitIndex: index} // and one of the other kind
	_ = leader.network.AppendEntries("9-9", "127.0.0.1:1", args, &raft.AppendEntriesResponse{})
	if args.LeaderCommitIndex >= index {
		t.Errorf("an append tells of commit %d, entry %d is not synced", args.LeaderCommitIndex, index)
	}
	for _, s := range others { // each has asked what is committed, and has its answer
		awaitQueries(t, leader, s, 3)
	}
	for _, s := range servers {
		if got := s.journal.list(); len(got) != 0 {
			t.Errorf("server %d has applied %q before the leader's sync", s.config.ServerID, got)
		}
		if got := s.Status().CommitIndex; got >= index {
			t.Errorf("server %d says that %d is committed", s.config.ServerID, got)
		}
	}
	for _, s := range others {
		if got := s.raft.CommitIndex(); got >= index {
			t.Errorf("server %d has been told that %d is committed", s.config.ServerID, got)
		}
	}
	disks[leader].set(nil, nil, nil)
	close(hang)
	for _, s := range servers {
		s.journal.await(t, 2)
		if got := fmt.Sprint(s.journal.list()); got != "[first second]" {
			t.Errorf("server %d has applied %s", s.config.ServerID, got)
		}
	}
}

// awaitQueries waits until a follower has said so often how far it is; with each
// time it asks what is committed.
func awaitQueries(t *testing.T, leader, follower *testServer, times int) {
	t.Helper()
	id := follower.stable.identity().raftID()
	heard := func() (at time.Time) {
		leader.followers.mu.Lock()
		defer leader.followers.mu.Unlock()
		if f := leader.followers.open[id]; f != nil {
			at = f.heard
		}
		return at
	}
	for range times {
		last := heard()
		eventuallyTrue(t, "a follower asks", func() bool { return heard() != last })
	}
}

// A leader that loses power with an entry that it has not synced has promised
// nothing: if nobody has the entry it never was, and if the others have it, it is
// applied once, everywhere.
func TestALeaderThatLosesPowerBeforeItsSyncHasPromisedNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		sent bool
		want string
	}{
		{"and nobody else has the entry", false, "[before after]"},
		{"and the others have stored the entry", true, "[before tail after]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			servers, disks := losing(t)
			leader, others := leaderOf(t, servers)
			eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(1, []byte("before")) == nil })
			for _, s := range servers {
				s.journal.await(t, 1)
			}
			hang := make(chan struct{})
			disks[leader].set(nil, nil, hang)
			if !row.sent {
				for _, s := range others {
					s.port.mute(true)
				}
			}
			index := leader.unsyncedTail(t, 2, "tail")
			if row.sent {
				stored(t, others, index)
				eventuallyTrue(t, "Raft takes it for committed", func() bool { return leader.raft.CommitIndex() >= index })
			}
			disks[leader].cut(hang)
			<-leader.Failed()
			if got := leader.journal.len(); got != 1 {
				t.Errorf("the leader has applied %d commands", got)
			}
			eventuallyTrue(t, "the fate of the write is unknown", func() bool { return leader.events.unknown.Load() == 1 })
			_ = leader.Close()
			disks[leader].restore(t)
			for _, s := range others {
				s.port.mute(false)
			}
			next, _ := leaderOf(t, others)
			eventuallyTrue(t, "a proposal is taken", func() bool { return next.Propose(1, []byte("after")) == nil })
			leader.open(t)
			for _, s := range servers {
				eventuallyTrue(t, "all have the last write", func() bool { return slices.Contains(s.journal.list(), "after") })
				if got := fmt.Sprint(s.journal.list()); got != row.want {
					t.Errorf("server %d has %s, want %s", s.config.ServerID, got, row.want)
				}
			}
		})
	}
}

// Rules "answer" and "ask": a former leader says that it has an entry, votes, and asks
// for votes, only after its own sync of all that its log held when it was asked.
func TestAFormerLeaderAnswersOnlyForWhatItHasSynced(t *testing.T) {
	servers, disks := losing(t)
	leader, others := leaderOf(t, servers)
	hang := make(chan struct{})
	disks[leader].set(nil, nil, hang)
	index := leader.unsyncedTail(t, 1, "tail")
	stored(t, others, index)
	id, term := raft.ServerID(leader.stable.identity().raftID()), leader.raft.CurrentTerm()
	var next *testServer
	eventuallyTrue(t, "another server leads", func() bool {
		if leader.raft.State() == raft.Leader {
			_ = leader.raft.LeadershipTransfer().Error()
		}
		for _, s := range others {
			if s.raft.State() == raft.Leader {
				next = s
			}
		}
		return next != nil
	})

	answers := make(chan error, 5)
	for _, question := range []any{&raft.AppendEntriesRequest{}, &raft.RequestVoteRequest{}, &raft.InstallSnapshotRequest{}} {
		go func() { answers <- leader.network.settle(question) }()
	}
	from := next.network
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(next.stable.identity().raftID()), Addr: []byte(next.network.LocalAddr())}
	go func() {
		var resp raft.AppendEntriesResponse
		err := from.AppendEntries(id, "", &raft.AppendEntriesRequest{RPCHeader: header, Term: next.raft.CurrentTerm(), PrevLogEntry: index, PrevLogTerm: term}, &resp)
		if err == nil && !resp.Success {
			err = errors.New("the entry was not found")
		}
		answers <- err
	}()
	go func() { // a vote of an old term changes nothing
		answers <- leader.network.RequestVote(raft.ServerID(header.ID), "", &raft.RequestVoteRequest{RPCHeader: header, Term: 1}, &raft.RequestVoteResponse{})
	}()
	select {
	case err := <-answers:
		t.Fatalf("the former leader has answered before its sync: %v", err)
	case <-time.After(400 * time.Millisecond): // long enough for a wrong answer
	}
	disks[leader].set(nil, nil, nil)
	close(hang)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	for _, s := range servers {
		eventuallyTrue(t, "all have the entry", func() bool { return fmt.Sprint(s.journal.list()) == "[tail]" })
	}
}

// Rule "failure": a sync that fails beside replication stops the node, as any
// failed sync does; nothing was applied, and it answers for nothing any more.
func TestALeaderWhoseSyncFailsBesideReplicationStops(t *testing.T) {
	servers, disks := losing(t)
	leader, others := leaderOf(t, servers)
	hang := make(chan struct{})
	disks[leader].set(nil, syscall.EIO, hang)
	stored(t, others, leader.unsyncedTail(t, 1, "tail"))
	close(hang)
	<-leader.Failed()
	if err := leader.Err(); !errors.Is(err, ErrDiskFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("the node has stopped because of %v", err)
	}
	if err := leader.network.settle(&raft.AppendEntriesRequest{}); err == nil {
		t.Error("it would still answer the others")
	}
	eventuallyTrue(t, "the fate of the write is unknown", func() bool { return leader.events.unknown.Load() == 1 })
	if got := leader.journal.list(); len(got) != 0 {
		t.Errorf("it has applied %q", got)
	}
	next, _ := leaderOf(t, others)
	eventuallyTrue(t, "a proposal is taken", func() bool { return next.Propose(1, []byte("after")) == nil })
	for _, s := range others {
		eventuallyTrue(t, "the others go on", func() bool { return fmt.Sprint(s.journal.list()) == "[tail after]" })
	}
}

// A leader's disk that is full waits for space beside replication, and nothing is
// applied meanwhile.
func TestALeaderWhoseDiskIsFullBesideReplicationHeals(t *testing.T) {
	servers, disks := losing(t)
	leader, others := leaderOf(t, servers)
	disks[leader].set(syscall.ENOSPC, nil, nil)
	stored(t, others, leader.unsyncedTail(t, 1, "tail"))
	eventuallyTrue(t, "the disk is full", func() bool { return leader.Status().Disk == DiskFull })
	for _, s := range servers {
		if got := s.journal.list(); len(got) != 0 {
			t.Errorf("server %d has applied %q", s.config.ServerID, got)
		}
	}
	disks[leader].set(nil, nil, nil)
	for _, s := range servers {
		s.journal.await(t, 1)
	}
}

// Rule "other entries", of followers: nothing runs beside their sync, and a majority
// is one of disks.
func TestFollowersAnswerAfterTheirSync(t *testing.T) {
	servers, disks := losing(t)
	leader, others := leaderOf(t, servers)
	hang := make(chan struct{})
	for _, s := range others {
		disks[s].set(nil, nil, hang)
	}
	eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(1, []byte("write")) == nil })
	var index uint64
	eventuallyTrue(t, "the leader's disk has the entry", func() bool {
		last, err := leader.log.LastIndex()
		index = last
		return err == nil && last > leader.Status().CommitIndex && leader.log.newest() == 0
	})
	<-time.After(400 * time.Millisecond) // long enough for wrong answers
	if got := leader.raft.CommitIndex(); got >= index || leader.journal.len() != 0 {
		t.Errorf("Raft takes %d for committed and the leader has applied %q, but no follower has synced entry %d", got, leader.journal.list(), index)
	}
	close(hang)
	for _, s := range others {
		disks[s].set(nil, nil, nil)
	}
	for _, s := range servers {
		s.journal.await(t, 1)
	}
}
