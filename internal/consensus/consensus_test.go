package consensus

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// journal is the state machine of these tests: it remembers every command in
// order, with the entry it came in.
type journal struct {
	mu       sync.Mutex
	commands []string // guarded by mu
	times    []int64  // guarded by mu; of each command's entry
	terms    []uint64 // guarded by mu
	flags    []uint32 // guarded by mu
	entries  int      // guarded by mu; Apply calls in this life
	restores int      // guarded by mu
	changed  chan struct{}

	refuse string        // a command that Apply does not understand
	gate   chan struct{} // guarded by mu; Apply and Restore wait for it, if set
	// beforePersist runs at the start of persist, if set.
	beforePersist func()
}

func newJournal() *journal { return &journal{changed: make(chan struct{}, 1)} }

// block makes Apply and Restore wait until the channel is closed.
func (j *journal) block(gate chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gate = gate
}

func (j *journal) pass() {
	j.mu.Lock()
	gate := j.gate
	j.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

func (j *journal) Apply(_, term uint64, millis int64, flags uint32, commands [][]byte) error {
	j.pass()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range commands {
		if j.refuse != "" && string(c) == j.refuse {
			return fmt.Errorf("unknown version in %q", c)
		}
	}
	for _, c := range commands {
		j.commands = append(j.commands, string(c))
		j.times = append(j.times, millis)
		j.terms = append(j.terms, term)
		j.flags = append(j.flags, flags)
	}
	j.entries++
	select {
	case j.changed <- struct{}{}:
	default:
	}
	return nil
}

func (j *journal) Freeze() (func(io.Writer) error, func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	frozen := slices.Clone(j.commands)
	return func(w io.Writer) error {
		if j.beforePersist != nil {
			j.beforePersist()
		}
		b := bufio.NewWriter(w)
		for _, c := range frozen {
			_, _ = b.Write(binary.AppendUvarint(nil, uint64(len(c))))
			_, _ = b.WriteString(c)
		}
		return b.Flush()
	}, func() {}
}

func (j *journal) Restore(r io.Reader) error {
	j.pass()
	b := bufio.NewReader(r)
	var commands []string
	for {
		n, err := binary.ReadUvarint(b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c := make([]byte, n)
		if _, err := io.ReadFull(b, c); err != nil {
			return err
		}
		commands = append(commands, string(c))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.commands = commands
	j.times, j.terms, j.flags = make([]int64, len(commands)), make([]uint64, len(commands)), make([]uint32, len(commands))
	j.restores++
	return nil
}

func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.commands)
}

func (j *journal) list() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.commands)
}

// await waits until the journal holds n commands.
func (j *journal) await(t testing.TB, n int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for j.len() < n {
		select {
		case <-j.changed:
		case <-deadline:
			t.Fatalf("%d commands were applied, want %d", j.len(), n)
		}
	}
}

// observer records events.
type observer struct {
	mu      sync.Mutex
	unknown []uint64 // guarded by mu
	leading chan bool
	leaders chan int
	lost    chan []uint64
}

func newObserver() *observer {
	return &observer{leading: make(chan bool, 64), leaders: make(chan int, 64), lost: make(chan []uint64, 1024)}
}

func (o *observer) FateUnknown(tokens []uint64) {
	o.mu.Lock()
	o.unknown = append(o.unknown, tokens...)
	o.mu.Unlock()
	o.lost <- tokens
}
func (o *observer) LeaderChanged(id int) {
	select {
	case o.leaders <- id:
	default:
	}
}
func (o *observer) Leading(l bool)      { o.leading <- l }
func (o *observer) Route(bool)          {}
func (o *observer) Message(int, []byte) {}

// testConfig is a configuration whose limits are small.
func testConfig(dir string) Config {
	c := DefaultConfig(dir)
	c.SegmentBytes = minSegmentBytes
	c.DiskProbeInterval = 5 * time.Millisecond
	c.CloseTimeout = 5 * time.Second
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

// captured is a logger whose lines can be read.
type captured struct {
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (c *captured) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *captured) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

func captureLogs(c *Config) *captured {
	out := &captured{}
	c.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return out
}

// running is a node that leads.
type running struct {
	*Node
	journal  *journal
	observer *observer
	next     uint64
}

func start(t testing.TB, c Config) *running { return startWith(t, c, newJournal()) }

func startWith(t testing.TB, c Config, j *journal) *running {
	t.Helper()
	o := newObserver()
	n, err := Open(c, j, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	r := &running{Node: n, journal: j, observer: o}
	t.Cleanup(func() { _ = n.Close() })
	r.awaitLeading(t)
	return r
}

func (r *running) awaitLeading(t testing.TB) {
	t.Helper()
	select {
	case leading := <-r.observer.leading:
		if !leading {
			t.Fatal("the node stopped leading")
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("the node does not lead: %+v", r.Status())
	}
}

// write proposes commands and waits until all are applied.
func (r *running) write(t testing.TB, commands ...string) {
	t.Helper()
	want := r.journal.len() + len(commands)
	for _, c := range commands {
		r.next++
		if err := r.Propose(r.next, []byte(c)); err != nil {
			t.Fatalf("propose: %v", err)
		}
	}
	r.journal.await(t, want)
}

func (r *running) close(t testing.TB) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func numbered(from, to int) []string {
	var list []string
	for i := from; i <= to; i++ {
		list = append(list, fmt.Sprintf("command-%d", i))
	}
	return list
}

func requireCommands(t testing.TB, j *journal, want []string) {
	t.Helper()
	if got := j.list(); !slices.Equal(got, want) {
		t.Fatalf("the state machine holds %d commands %.200q, want %d", len(got), got, len(want))
	}
}

// eachLogStore runs a test for both log stores.
func eachLogStore(t *testing.T, test func(t *testing.T, c Config)) {
	for _, store := range []string{LogStoreWAL, LogStoreBolt} {
		t.Run(store, func(t *testing.T) {
			c := testConfig(t.TempDir())
			c.LogStore = store
			test(t, c)
		})
	}
}

// flip changes one bit of a file.
func flip(t testing.TB, path string, offset int64, bit uint) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var b [1]byte
	if _, err := f.ReadAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
}
