package consensus

import (
	"bytes"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// commandLengths are lengths of commands at which the way of one changes: buffers of
// 4 and 64 KiB, the bound of a batch, and lengths that take a byte more to write.
func commandLengths() (lengths []int) {
	for _, bound := range []int{1 << 7, walReadLen, 1 << 14, walProbeLen, maxBatchBytes, 1 << 20, 1 << 21} {
		for d := -entryHeaderLen - commandLenLen - walFrameLen - 2; d <= 2; d++ {
			if bound < maxBatchBytes || d%5 == 0 {
				lengths = append(lengths, bound+d)
			}
		}
	}
	return append(lengths, 0, 1, 2, 3)
}

// TestCommandsOfEveryLengthReachAllServers stands for it that a command's length
// decides nothing: it is proposed at a follower, goes through the leader's log, and
// then from that log to a server that was away, and through starts of all of them.
func TestCommandsOfEveryLengthReachAllServers(t *testing.T) {
	servers := ensembleWith(t, 3, func(c *Config) { c.LogCacheBytes, c.ElectionTimeout = 0, 3*time.Second })
	_, others := leaderOf(t, servers)
	away, proposer := others[0], others[1]
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, n := range commandLengths() {
		command := bytes.Repeat([]byte{byte(i)}, n)
		eventuallyTrue(t, "a proposal is taken", func() bool { return proposer.Propose(uint64(i+1), command) == nil })
		want = append(want, string(command))
	}
	proposer.journal.await(t, len(want))
	same := func(what string) {
		t.Helper()
		for i, s := range servers {
			eventuallyTrue(t, "it has everything", func() bool { return s.journal.len() >= len(want) })
			if !slices.Equal(s.journal.list(), want) {
				t.Fatalf("%s: server %d has other commands than were proposed", what, i+1)
			}
		}
	}
	away.open(t)
	same("after catching up")
	for _, s := range servers {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		s.open(t)
	}
	leaderOf(t, servers)
	same("after a start of all")
}

// A follower that catches up gets 64 entries in one message. raft-wal would write all
// of them in one append, whose buffer the segment keeps.
func TestALargeAppendIsDoneInParts(t *testing.T) {
	dir := t.TempDir() + "/log-wal"
	e := openTestWAL(t, OSFS{}, dir, true)
	var logs []*raft.Log
	for i := range uint64(20) {
		logs = append(logs, testLog(i+1, mib))
	}
	logs = append(logs, testLog(21, 2*walAppendBytes))
	if err := e.StoreLogs(sealLogs(logs)); err != nil {
		t.Fatal(err)
	}
	requireTestLogs(t, e, 1, 21)
	_ = e.Close()
	names, err := OSFS{}.ListDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	full := 0 // each append fills a segment
	for _, name := range names {
		info, err := os.Stat(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > minSegmentBytes {
			full++
		}
		if info.Size() > walAppendBytes+mib && info.Size() < 2*walAppendBytes {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
	if full != 8 { // 6 of 3 MiB, one of 2 MiB, and the long entry's
		t.Errorf("%d appends: %v", full, names)
	}
	requireTestLogs(t, openTestWAL(t, OSFS{}, dir, false), 1, 21)
}

func TestASnapshotOfEveryLengthAroundAChunkIsReadAgain(t *testing.T) {
	for _, chunks := range []int{0, 1, 2, 5} {
		for d := -1; d <= 1; d++ {
			size := chunks*snapshotChunk + d
			if size < 0 {
				continue
			}
			dir := t.TempDir()
			state := make([]byte, size)
			for i := range state {
				state[i] = byte(i) ^ byte(i>>8)
			}
			id := writeSnapshot(t, openTestStore(t, dir), 7, state)
			meta, r, err := openTestStore(t, dir).Open(id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || meta.Size != int64(size) || !bytes.Equal(got, state) {
				t.Errorf("a snapshot of %d bytes is read as %d of %d, %v", size, len(got), meta.Size, err)
			}
			_ = r.Close()
		}
	}
}
