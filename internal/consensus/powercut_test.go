package consensus

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

var (
	powerSeed = flag.Uint64("power.seed", uint64(time.Now().UnixNano()), "first seed of the power cut runs")
	powerRuns = flag.Int("power.runs", 60, "number of power cut runs")
)

// cutLog is a log store on a file layer that loses power, and a model of what
// it has acknowledged.
type cutLog struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	fs     *powerFS
	disk   FS // in place of fs, if set
	dir    string
	log    *logStore
	failed error
	leads  bool // appends are a leader's, synced beside replication

	first, last uint64
	entries     map[uint64][]byte // acknowledged
	pending     []*raft.Log       // of the append that lost the power
	cutting     uint64            // entries after it were being removed when the power went; 0 for none
	trimming    uint64            // entries up to it were being removed
	term        uint64
}

func (c *cutLog) open(create bool) {
	c.t.Helper()
	var m *mark
	var err error
	var files FS = c.fs
	if c.disk != nil {
		files = c.disk
	}
	if create {
		m, err = createMark(c.fs, c.dir, markName)
	} else {
		m, err = openMark(c.fs, c.dir, markName)
	}
	if err != nil {
		c.t.Fatalf("seed %d: mark: %v\n%s", c.seed, err, c.fs.describe())
	}
	acknowledged, _ := m.get()
	opener := func(create bool, acknowledged uint64) (engine, error) {
		return openWALLog(files, c.dir, minSegmentBytes/16, create, acknowledged, testCodec, hclog.NewNullLogger())
	}
	eng, err := opener(create, acknowledged)
	if err != nil {
		c.t.Fatalf("seed %d: open: %v\n%s", c.seed, err, c.fs.describe())
	}
	if last, _ := eng.LastIndex(); last < acknowledged {
		c.t.Fatalf("seed %d: the log ends at %d, the mark is %d", c.seed, last, acknowledged)
	}
	if err := eng.confirm(); err != nil {
		c.t.Fatalf("seed %d: confirm: %v", c.seed, err)
	}
	c.failed = nil
	c.log = &logStore{
		logger: slog.New(slog.DiscardHandler), open: opener, cache: newLogCache(0), mark: m,
		keepFrom: func() (uint64, bool) { return 1 << 62, true },
		covered:  func() uint64 { return 1 << 62 },
		applied:  func() uint64 { return 0 }, broken: func(error) {},
		disk: &disk{now: time.Now, broken: func(err error) { c.failed = err }},
		eng:  eng, fs: files, probeDir: c.dir + "/root",
	}
	c.log.beside, c.log.unsynced = func() bool { return c.leads }, newUnsynced(c.log.store)
	c.log.patient.Store(true)
}

// step does one random thing; false means that the power went.
func (c *cutLog) step() bool {
	c.pending, c.cutting, c.trimming = nil, 0, 0
	var err error
	switch kind := c.random.IntN(20); {
	case kind == 0 && c.last > c.first+2: // a conflict
		at := c.first + 1 + c.random.Uint64N(c.last-c.first)
		c.cutting = at - 1
		if err = c.log.DeleteRange(at, c.last); err == nil {
			for i := at; i <= c.last; i++ {
				delete(c.entries, i)
			}
			c.last, c.cutting = at-1, 0
			c.term++
		}
	case kind == 1 && c.last > c.first+2: // trimming
		to := c.first + c.random.Uint64N(c.last-c.first)
		c.trimming = to
		if err = c.log.DeleteRange(c.first, to); err == nil {
			for i := c.first; i <= to; i++ {
				delete(c.entries, i)
			}
			c.first, c.trimming = to+1, 0
		}
	default:
		appends := 1
		if c.leads = kind%2 == 0; c.leads { // acknowledged is what has been waited for
			appends += c.random.IntN(4)
		}
		for range appends {
			from := len(c.pending)
			for range 1 + c.random.IntN(4) {
				data := make([]byte, c.random.IntN(3000))
				for j := range data {
					data[j] = byte(c.random.Uint32()) & 3 // looks like frames, often
				}
				c.pending = append(c.pending, &raft.Log{Index: c.last + 1 + uint64(len(c.pending)), Term: c.term, Type: raft.LogCommand, Data: data})
			}
			if err == nil {
				err = c.log.StoreLogs(c.pending[from:])
			}
		}
		if err == nil {
			err = c.log.awaitSync(everything)
		}
		if err == nil {
			for _, l := range c.pending {
				c.entries[l.Index] = l.Data
			}
			c.last += uint64(len(c.pending))
			c.pending = nil
		}
	}
	return err == nil
}

// check compares the log with the model after the power came back, and takes
// over what the disk decided about the operation that was under way.
func (c *cutLog) check() {
	c.t.Helper()
	first, err := c.log.FirstIndex()
	if err != nil {
		c.t.Fatal(err)
	}
	last, err := c.log.LastIndex()
	if err != nil {
		c.t.Fatal(err)
	}
	low := c.last
	if c.cutting > 0 {
		low = c.cutting
	}
	if last < low || last > c.last+uint64(len(c.pending)) {
		c.t.Fatalf("seed %d: the log ends at %d, acknowledged was %d", c.seed, last, c.last)
	}
	if last > 0 && first > max(c.first, c.trimming+1) {
		c.t.Fatalf("seed %d: the log begins at %d, want %d", c.seed, first, c.first)
	}
	for _, l := range c.pending {
		if l.Index <= last {
			c.entries[l.Index] = l.Data
		}
	}
	for i := max(first, 1); i <= last; i++ {
		var l raft.Log
		if err := c.log.GetLog(i, &l); err != nil {
			c.t.Fatalf("seed %d: entry %d of %d to %d: %v", c.seed, i, first, last, err)
		}
		if !bytes.Equal(l.Data, c.entries[i]) {
			c.t.Fatalf("seed %d: entry %d has other data", c.seed, i)
		}
	}
	c.first, c.last = max(first, 1), last
}

// TestAPowerCutLosesNoAcknowledgedEntry stands for durability in the wal log
// store: whatever the moment, what was acknowledged is there afterwards. A seed
// replays its run, up to the order of two goroutines: raft-wal replaces a full
// segment beside the write of the mark.
func TestAPowerCutLosesNoAcknowledgedEntry(t *testing.T) {
	t.Logf("-power.seed=%d -power.runs=%d", *powerSeed, *powerRuns)
	for run := range *powerRuns {
		seed := *powerSeed + uint64(run)
		random := rand.New(rand.NewPCG(seed, 0))
		c := &cutLog{
			t: t, seed: seed, random: random, fs: newPowerFS(rand.New(rand.NewPCG(seed, 1))), dir: t.TempDir(),
			first: 1, entries: map[uint64][]byte{}, term: 1,
		}
		c.open(true)
		for range 5 { // lives
			c.fs.mu.Lock()
			c.fs.calls, c.fs.cutAt = 0, 1+random.IntN(150)
			c.fs.mu.Unlock()
			for c.step() {
			}
			if c.failed == nil && c.pending != nil || errors.Is(c.failed, os.ErrExist) {
				t.Fatalf("seed %d: the append failed and the store was not poisoned: %v", seed, c.failed)
			}
			c.log.unsynced.idle()
			_ = c.log.eng.Close()
			c.fs.restore()
			c.open(false)
			c.check()
		}
	}
}
