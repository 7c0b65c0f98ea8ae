package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

// manualFuture resolves when the test says so.
type manualFuture struct{ result chan error }

func (f *manualFuture) Error() error { return <-f.result }

// benchedBatcher is a batcher whose entries wait for the test.
type benchedBatcher struct {
	*batcher
	entries chan entry
	futures chan *manualFuture
	lost    chan []uint64
	stop    chan struct{}
	done    sync.WaitGroup
}

func newBenchedBatcher(t *testing.T, change func(*Config)) *benchedBatcher {
	t.Helper()
	c := testConfig(t.TempDir())
	change(&c)
	b := &benchedBatcher{
		entries: make(chan entry, 1000), futures: make(chan *manualFuture, 1000),
		lost: make(chan []uint64, 1000), stop: make(chan struct{}),
	}
	b.batcher = newBatcher(c, b.stop)
	b.apply = func(data []byte) raft.Future {
		e, err := decodeEntry(data)
		if err != nil {
			t.Error(err)
		}
		f := &manualFuture{result: make(chan error, 1)}
		b.entries <- e
		b.futures <- f
		return f
	}
	b.unknown = func(tokens []uint64) { b.lost <- tokens }
	b.setLeading(true)
	b.done.Add(1)
	go func() { defer b.done.Done(); b.reap() }()
	t.Cleanup(func() {
		close(b.stop)
		ended := make(chan struct{})
		go func() { b.done.Wait(); close(ended) }()
		for {
			select {
			case f := <-b.futures:
				f.result <- raft.ErrRaftShutdown
				continue
			case <-ended:
			}
			break
		}
	})
	return b
}

func (b *benchedBatcher) put(t *testing.T, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := b.propose(proposal{token: uint64(i), command: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func commandsOf(e entry) []string {
	var list []string
	for _, c := range e.commands {
		list = append(list, string(c))
	}
	return list
}

func TestAGroupGrowsWhileEntriesAreOnTheirWay(t *testing.T) {
	for _, inFlight := range []int{1, 2} {
		t.Run(fmt.Sprint(inFlight, " in flight"), func(t *testing.T) {
			b := newBenchedBatcher(t, func(c *Config) { c.InFlight, c.MaxBatchCommands = inFlight, 3 })
			for i := 1; i <= inFlight; i++ { // each leaves alone, at once
				b.put(t, i, i)
				if got := commandsOf(<-b.entries); !slices.Equal(got, []string{fmt.Sprint(i)}) {
					t.Fatalf("entry %d holds %v", i, got)
				}
			}
			b.put(t, 11, 15)
			select {
			case e := <-b.entries:
				t.Fatalf("%v left beyond the limit", commandsOf(e))
			default:
			}
			(<-b.futures).result <- nil
			if got := commandsOf(<-b.entries); !slices.Equal(got, []string{"11", "12", "13"}) {
				t.Fatalf("the group is %v", got)
			}
			(<-b.futures).result <- nil
			if got := commandsOf(<-b.entries); !slices.Equal(got, []string{"14", "15"}) {
				t.Fatalf("the rest is %v", got)
			}
		})
	}
}

func TestGroupsAreBoundedByBytesAndALargeCommandGoesAlone(t *testing.T) {
	b := newBenchedBatcher(t, func(c *Config) { c.InFlight, c.MaxBatchBytes = 1, 100 })
	b.put(t, 1, 1)
	<-b.entries
	for _, size := range []int{40, 40, 40, 1000, 10} {
		if err := b.propose(proposal{command: bytes.Repeat([]byte("x"), size)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][]int{{40, 40}, {40}, {1000}, {10}} {
		(<-b.futures).result <- nil
		var sizes []int
		for _, c := range (<-b.entries).commands {
			sizes = append(sizes, len(c))
		}
		if !slices.Equal(sizes, want) {
			t.Fatalf("an entry holds commands of %v bytes, want %v", sizes, want)
		}
	}
}

func TestTheQueueHasLimits(t *testing.T) {
	b := newBenchedBatcher(t, func(c *Config) { c.InFlight, c.MaxQueueCommands, c.MaxQueueBytes = 1, 5, 100 })
	b.put(t, 1, 1)
	<-b.entries
	b.put(t, 2, 6)
	if err := b.propose(proposal{token: 7}); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("a sixth waiting command: %v", err)
	}
	(<-b.futures).result <- nil
	<-b.entries
	if err := b.propose(proposal{command: make([]byte, 1000)}); err != nil {
		t.Fatalf("one command larger than the limit, alone: %v", err)
	}
	if err := b.propose(proposal{command: make([]byte, 1)}); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("bytes beyond the limit: %v", err)
	}
	if err := b.propose(proposal{command: make([]byte, maxEntryBytes)}); !errors.Is(err, ErrCommandTooLarge) {
		t.Fatalf("a command larger than an entry: %v", err)
	}
}

func TestEachTokenIsNamedOnceWhenItsFateIsUnknown(t *testing.T) {
	b := newBenchedBatcher(t, func(c *Config) { c.InFlight = 1 })
	b.put(t, 1, 1)
	<-b.entries
	b.put(t, 2, 3)
	(<-b.futures).result <- raft.ErrLeadershipLost
	if got := <-b.lost; !slices.Equal(got, []uint64{1}) {
		t.Fatalf("lost %v", got)
	}
	<-b.entries
	b.put(t, 4, 5)
	b.setLeading(false) // what waits is given up, what is on its way is not
	if got := <-b.lost; !slices.Equal(got, []uint64{4, 5}) {
		t.Fatalf("lost %v", got)
	}
	if err := b.propose(proposal{token: 6}); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("propose without leading: %v", err)
	}
	b.setLeading(true)
	b.put(t, 7, 7)
	b.setDiskFull(true)
	if err := b.propose(proposal{token: 8}); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("propose on a full disk: %v", err)
	}
	b.giveUpIfFull()
	if got := <-b.lost; !slices.Equal(got, []uint64{2, 3, 7}) {
		t.Fatalf("lost %v", got)
	}
	(<-b.futures).result <- raft.ErrLeadershipLost // named already
	b.setDiskFull(false)
	b.put(t, 9, 9)
	<-b.entries
	(<-b.futures).result <- raft.ErrLeadershipLost
	if got := <-b.lost; !slices.Equal(got, []uint64{9}) {
		t.Fatalf("lost %v", got)
	}
}

func TestLeaderTimeNeverRunsBackwardsWithinATerm(t *testing.T) {
	clock := []int64{100, 90, 95, 101, 50, 60}
	b := newBenchedBatcher(t, func(c *Config) {
		c.InFlight = 1
		c.Stamp = func() (int64, uint32) {
			now := clock[0]
			clock = clock[1:]
			return now, 7
		}
	})
	for i, want := range []int64{100, 100, 100, 101, 50, 60} {
		if i == 4 { // a new term takes the clock as it is
			b.setLeading(false)
			b.setLeading(true)
		}
		b.put(t, i, i)
		e := <-b.entries
		if e.timeMillis != want || e.flags != 7 {
			t.Fatalf("entry %d has time %d and flags %d, want time %d", i, e.timeMillis, e.flags, want)
		}
		(<-b.futures).result <- nil
	}
}

// A lone command has left when propose returns: it waits for no other goroutine.
// And while one proposer is giving an entry to Raft the others leave theirs to it.
func TestALoneCommandLeavesOnTheProposersGoroutine(t *testing.T) {
	b := newBenchedBatcher(t, func(c *Config) { c.InFlight = 2 })
	b.put(t, 1, 1)
	select {
	case e := <-b.entries:
		if got := commandsOf(e); !slices.Equal(got, []string{"1"}) {
			t.Fatalf("the entry holds %v", got)
		}
	default:
		t.Fatal("propose returned, and no entry has left")
	}
	(<-b.futures).result <- nil

	apply, held := b.apply, make(chan struct{})
	inside := make(chan struct{}, 2)
	b.apply = func(data []byte) raft.Future {
		inside <- struct{}{}
		<-held
		return apply(data)
	}
	first := make(chan error, 1)
	go func() { first <- b.propose(proposal{token: 2, command: []byte("2")}) }()
	<-inside
	b.put(t, 3, 4) // does not wait for the one that is at it
	close(held)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"2"}, {"3", "4"}} {
		if got := commandsOf(<-b.entries); !slices.Equal(got, want) {
			t.Fatalf("an entry holds %v, want %v", got, want)
		}
	}
}

// Many proposers at once: each command is in one entry, those of one proposer in its
// order, and nothing is left in the queue when all entries have been settled.
func TestProposersPackForEachOtherAndLoseNothing(t *testing.T) {
	const proposers, each = 8, 200
	b := newBenchedBatcher(t, func(c *Config) { c.InFlight, c.MaxBatchCommands = 2, 7 })
	var all sync.WaitGroup
	for p := range proposers {
		all.Go(func() {
			for i := range each {
				if err := b.propose(proposal{token: uint64(p), command: fmt.Append(nil, p*each+i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make([]int, proposers)
	for taken := 0; taken < proposers*each; {
		e := <-b.entries
		(<-b.futures).result <- nil
		for _, c := range commandsOf(e) {
			var n int
			if _, err := fmt.Sscan(c, &n); err != nil {
				t.Fatal(err)
			}
			if p := n / each; n%each != next[p] {
				t.Fatalf("proposer %d: command %d came when %d was due", p, n%each, next[p])
			}
			next[n/each]++
			taken++
		}
	}
	all.Wait()
}

// A batcher that stops while entries are on their way ends when they are settled,
// and sends nothing any more.
func TestAStoppedBatcherWaitsForWhatIsOnItsWay(t *testing.T) {
	b := newBenchedBatcher(t, func(c *Config) { c.InFlight = 2 })
	b.put(t, 1, 5)
	for range 2 {
		<-b.entries
	}
	b.refuse()
	for range 2 {
		(<-b.futures).result <- nil
	}
	b.giveUp(ErrStopped, true)
	if got := <-b.lost; !slices.Contains(got, 5) {
		t.Fatalf("lost %v", got)
	}
	select {
	case e := <-b.entries:
		t.Fatalf("%v left after the end", commandsOf(e))
	default:
	}
}
