package consensus

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

var (
	lengthsSeed = flag.Uint64("lengths.seed", uint64(time.Now().UnixNano()), "first seed of the runs with lengths around the code's constants")
	lengthsRuns = flag.Int("lengths.runs", 3, "number of those runs for each log store")
)

// lengthLog is a log store with entries whose lengths lie around every power of
// two and every constant that a log compares lengths with, and what it must hold.
type lengthLog struct {
	t      *testing.T
	random *rand.Rand
	store  string
	dir    string
	eng    engine
	trace  []string // what was done

	first, last uint64
	entries     map[uint64]*raft.Log
	end         int // of what is in the open segment
	frames      int // entries in it
}

func (c *lengthLog) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("-lengths.seed: %s\nafter %v", fmt.Sprintf(format, args...), c.trace)
}

func openLengthLog(store, dir string, create bool, last uint64) (engine, error) {
	if store == LogStoreBolt {
		return openBoltLog(dir, create, nil)
	}
	return openWALLog(OSFS{}, dir, minSegmentBytes, create, last, testCodec, hclog.NewNullLogger())
}

func (c *lengthLog) open(create bool) {
	c.t.Helper()
	eng, err := openLengthLog(c.store, c.dir, create, c.last)
	if err == nil {
		err = eng.confirm()
	}
	if err != nil {
		c.fail("open: %v", err)
	}
	c.eng = eng
}

// length draws a length at a power of two or beside it, where a frame may be padded.
func (c *lengthLog) length() int {
	return 1<<(2+c.random.IntN(17)) + []int{-walFrameLen, -1, 0, 1, walFrameLen, c.random.IntN(160) - 80}[c.random.IntN(6)]
}

// sized draws an entry that takes size bytes of a segment beside those of its append
// that are before it: as it is encoded, with its frame, or with all of the append.
func (c *lengthLog) sized(index uint64, size int, before []*raft.Log) *raft.Log {
	shape := c.random.Uint64()
	const guess = 200
	size -= len(packed(c.t, testCodec, entryOf(shape, index, guess))) - guess // what its form adds
	switch c.random.IntN(4) {
	case 0:
		size -= walFrameLen
	case 1:
		for _, l := range before {
			size -= c.frameBytes(l)
		}
		size -= walFrameLen
	}
	return entryOf(shape, index, max(0, size))
}

// entryOf makes an entry of the given number of bytes of data: a command that is
// packed, several, or one of a form that is not known. Half of them look like frames.
func entryOf(shape, index uint64, size int) *raft.Log {
	random := rand.New(rand.NewPCG(shape, 0))
	form, looks := random.IntN(3), random.IntN(2) == 0
	l := &raft.Log{Index: index, Term: 1 << random.IntN(64), Type: raft.LogCommand, AppendedAt: time.UnixMilli(packedEpoch)}
	millis, flags := int64(packedEpoch+1<<random.IntN(packedTimeBits)), uint32(1<<random.IntN(32))
	data := make([]byte, size)
	for i := range data {
		if data[i] = byte(i); looks {
			data[i] = byte(random.Uint32()) & 3
		}
	}
	l.Data = data
	if n := size - entryHeaderLen - form*commandLenLen; form > 0 && n >= 0 {
		commands := [][]byte{data[:n]}
		if form == 2 {
			at := random.IntN(n + 1)
			commands = [][]byte{data[:at], data[at:n]}
		}
		l.Data = encodeEntry(millis, flags, commands)
	}
	return l
}

// frameBytes is how much of a segment an entry takes.
func (c *lengthLog) frameBytes(l *raft.Log) int {
	return walFrameLen + (len(packed(c.t, testCodec, l))+walFrameLen-1)/walFrameLen*walFrameLen
}

// filling draws an entry that ends near the end of the open segment: with the index
// block that would follow it, or the commit alone.
func (c *lengthLog) filling(index uint64) *raft.Log {
	size := minSegmentBytes - c.end + 8*c.random.IntN(4) - 24
	if c.random.IntN(2) == 0 {
		size -= 4 * (c.frames + 1)
	}
	return c.sized(index, size, nil)
}

func (c *lengthLog) append() {
	var group []*raft.Log
	for range 1 + c.random.IntN(3) {
		index := c.last + 1 + uint64(len(group))
		if c.random.IntN(8) == 0 {
			group = append(group, c.filling(index))
		} else {
			group = append(group, c.sized(index, c.length(), group))
		}
		c.trace = append(c.trace, fmt.Sprint("+", len(group[len(group)-1].Data)))
	}
	if err := c.eng.StoreLogs(sealLogs(group)); err != nil {
		c.fail("append: %v", err)
	}
	for _, l := range group {
		c.entries[l.Index] = l
		c.end, c.frames = c.end+c.frameBytes(l), c.frames+1
	}
	if index := walFrameLen + (4*c.frames+7)/8*8; c.end+index > minSegmentBytes {
		c.end, c.frames = walHeaderLen-walFrameLen, 0 // full: the next one follows
	}
	c.end += walFrameLen
	c.last += uint64(len(group))
}

// remove takes a part of the log away, at the front or at the end.
func (c *lengthLog) remove() {
	if c.last < c.first+4 {
		return
	}
	from, to := c.first, c.first+c.random.Uint64N(c.last-c.first)
	if c.random.IntN(3) == 0 {
		from, to = to+1, c.last
	}
	c.trace = append(c.trace, fmt.Sprintf("-%d…%d", from, to))
	if err := c.eng.DeleteRange(from, to); err != nil {
		c.fail("remove %d to %d: %v", from, to, err)
	}
	if from == c.first {
		c.first = to + 1
	} else {
		c.last, c.end, c.frames = from-1, walHeaderLen, 0 // the next segment is begun
	}
}

// check compares a log with what it must hold.
func (c *lengthLog) check(eng engine, what string) {
	c.t.Helper()
	first, err := eng.FirstIndex()
	last, err2 := eng.LastIndex()
	if err != nil || err2 != nil || first != c.first || last != c.last {
		c.fail("%s: entries %d to %d (%v, %v), want %d to %d", what, first, last, err, err2, c.first, c.last)
	}
	for i := c.first; i <= c.last; i++ {
		var l raft.Log
		if err := readEntry(eng, i, &l); err != nil {
			c.fail("%s: entry %d: %v", what, i, err)
		}
		if want := c.entries[i]; !bytes.Equal(l.Data, want.Data) || l.Term != want.Term {
			c.fail("%s: entry %d has %d bytes, want %d, or others", what, i, len(l.Data), len(want.Data))
		}
	}
}

// copied opens what a kill at this moment would leave.
func (c *lengthLog) copied() {
	if w, ok := c.eng.(*walLog); ok {
		if err := w.rotation.wait(); err != nil {
			c.fail("rotation: %v", err)
		}
	}
	dir := c.t.TempDir() + "/log"
	copyTree(c.t, c.dir, dir)
	eng, err := openLengthLog(c.store, dir, false, c.last)
	if err != nil {
		c.fail("open a copy: %v", err)
	}
	defer func() { _ = eng.Close() }()
	c.check(eng, "the copy")
}

// TestEntriesOfEveryLengthAreReadAgain stands for durability at the lengths where
// code changes its ways: as it runs, after a start, and after a kill.
func TestEntriesOfEveryLengthAreReadAgain(t *testing.T) {
	t.Logf("-lengths.seed=%d -lengths.runs=%d", *lengthsSeed, *lengthsRuns)
	for _, store := range []string{LogStoreWAL, LogStoreBolt} {
		t.Run(store, func(t *testing.T) {
			for run := range *lengthsRuns {
				seed := *lengthsSeed + uint64(run)
				c := &lengthLog{t: t, random: rand.New(rand.NewPCG(seed, 0)), store: store, dir: t.TempDir() + "/log",
					first: 1, entries: map[uint64]*raft.Log{}, end: walHeaderLen, trace: []string{fmt.Sprint("seed ", seed, ":")}}
				c.open(true)
				c.append()
				for range 60 {
					switch c.random.IntN(16) {
					case 0:
						c.remove()
					case 1:
						c.trace = append(c.trace, "start")
						if err := c.eng.Close(); err != nil {
							c.fail("close: %v", err)
						}
						c.open(false)
						c.check(c.eng, "after a start")
					case 2:
						c.copied()
					default:
						c.append()
					}
				}
				c.check(c.eng, "as it runs")
				_ = c.eng.Close()
			}
		})
	}
}
