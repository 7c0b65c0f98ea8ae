package consensus

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"
)

// Case 58: a server's log conflicts with the leader's from an entry in an earlier
// segment on. Whatever call the power goes at while the log is cut there and the
// leader's entries are written, the log opens again, what was acknowledged is
// there, and once the cut has been made again what it replaced is gone.
func TestACrashAtAnyStepOfALogConflictLosesNothing(t *testing.T) {
	const entries, conflictAt = 40, 9 // of 1 KiB, in segments of 16 KiB
	steps := 0
	for cutAt, through := 1, false; !through; cutAt++ {
		steps++
		seed := uint64(cutAt)
		c := &cutLog{
			t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), fs: newPowerFS(rand.New(rand.NewPCG(seed, 1))),
			dir: t.TempDir(), first: 1, entries: map[uint64][]byte{}, term: 1,
		}
		c.open(true)
		for c.last < entries {
			if !c.append(1, "old") {
				t.Fatalf("cannot fill the log: %v", c.failed)
			}
		}
		c.fs.mu.Lock()
		c.fs.calls, c.fs.cutAt = 0, cutAt
		c.fs.mu.Unlock()
		c.term = 2
		through = c.cut(conflictAt) && c.append(entries, "new")
		_ = c.log.eng.Close()
		c.fs.restore()
		c.open(false)
		c.check()
		if c.last >= conflictAt && !bytes.HasPrefix(c.entries[conflictAt], []byte("new")) && !c.cut(conflictAt) {
			t.Fatalf("power cut at call %d: the conflict cannot be resolved afterwards: %v", cutAt, c.failed)
		}
		if !c.append(3, "new") {
			t.Fatalf("power cut at call %d: nothing can be appended afterwards: %v", cutAt, c.failed)
		}
		c.check()
		for i := uint64(1); i <= c.last; i++ {
			want := "old"
			if i >= conflictAt {
				want = "new"
			}
			if !bytes.HasPrefix(c.entries[i], []byte(want)) {
				t.Fatalf("power cut at call %d: entry %d is not of the %s log", cutAt, i, want)
			}
		}
		_ = c.log.eng.Close()
	}
	if steps < 10 {
		t.Errorf("only %d calls of the file layer were looked at", steps)
	}
	t.Logf("%d calls", steps)
}

// append appends entries in one call.
func (c *cutLog) append(n int, data string) bool {
	c.pending, c.cutting = nil, 0
	for i := range uint64(n) {
		text := fmt.Appendf(nil, "%s %d", data, c.last+1+i)
		c.pending = append(c.pending, &raft.Log{Index: c.last + 1 + i, Term: c.term, Type: raft.LogCommand,
			Data: append(text, make([]byte, 1000)...)})
	}
	if c.log.StoreLogs(c.pending) != nil {
		return false
	}
	for _, l := range c.pending {
		c.entries[l.Index] = l.Data
	}
	c.last += uint64(n)
	c.pending = nil
	return true
}

// cut removes all entries from at on.
func (c *cutLog) cut(at uint64) bool {
	c.cutting = at - 1
	if c.log.DeleteRange(at, c.last) != nil {
		return false
	}
	for i := at; i <= c.last; i++ {
		delete(c.entries, i)
	}
	c.last, c.cutting = at-1, 0
	return true
}
