package consensus

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A snapshot that begins to be written while it is given up is either not written or
// ends before its state is let go: nothing reads what others may change then.
func TestAStateThatIsLetGoIsNotBeingWritten(t *testing.T) {
	for range 2000 {
		var writing, released atomic.Bool
		own := newFrozen(func(w io.Writer) error {
			writing.Store(true)
			defer writing.Store(false)
			for !released.Load() {
				if _, err := w.Write([]byte("a")); err != nil {
					return err
				}
			}
			t.Error("the state was let go under the one who writes it")
			return nil
		}, func() {
			if writing.Load() {
				t.Error("the state is let go while it is written")
			}
			released.Store(true)
		})
		begin, wrote := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(wrote)
			<-begin
			_ = own.Persist(discardSink{})
			own.Release()
		}()
		close(begin)
		own.giveUp(nil)
		<-wrote
		if !released.Load() {
			t.Fatal("the state is kept")
		}
	}
}

// cable is the network between the servers of a test ensemble, from which one of
// them can be unplugged.
type cable struct {
	mu    sync.Mutex
	out   int                 // guarded by mu; the server that is unplugged, 0 for none
	conns map[net.Conn][2]int // guarded by mu; who dialled whom
}

// dial is the Config.PeerDial of a server.
func (c *cable) dial(from int) func(Peer, time.Duration) (net.Conn, error) {
	return func(to Peer, timeout time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout("tcp", to.Address, timeout)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.out == from || c.out == to.ID {
			_ = conn.Close()
			return nil, fmt.Errorf("server %d is unplugged", c.out)
		}
		c.conns[conn] = [2]int{from, to.ID}
		return conn, nil
	}
}

// unplug cuts a server's connections; 0 plugs all in.
func (c *cable) unplug(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = id
	for conn, ends := range c.conns {
		if ends[0] == id || ends[1] == id {
			_ = conn.Close()
			delete(c.conns, conn)
		}
	}
}

// endless is a state machine whose first snapshot is never written to its end.
type endless struct {
	*journal
	begun chan struct{} // closed when it is being written
	once  atomic.Bool
}

func (e *endless) Freeze() (func(io.Writer) error, func()) {
	if e.once.Swap(true) {
		return e.journal.Freeze()
	}
	return func(w io.Writer) error {
		close(e.begun)
		for {
			if _, err := w.Write(make([]byte, kib)); err != nil {
				return err
			}
			<-time.After(time.Millisecond) // a slow disk
		}
	}, func() {}
}

// The library asks for the leader's snapshot to be loaded while its own goroutine
// writes this server's: it comes to an end, the leader's is loaded, and the next own
// one is whole.
func TestTheLeadersSnapshotEndsOneThatIsBeingWritten(t *testing.T) {
	net := &cable{conns: map[net.Conn][2]int{}}
	servers := ensembleWith(t, 3, func(c *Config) {
		c.ElectionTimeout = 5 * time.Second
		c.LogCacheBytes = 0 // the leader would have what it cut
		c.PeerDial = net.dial(c.ServerID)
	})
	leader, others := leaderOf(t, servers)
	behind := others[0]
	if err := behind.Close(); err != nil {
		t.Fatal(err)
	}
	behind.journal, behind.events = newJournal(), &memberEvents{}
	slow := &endless{journal: behind.journal, begun: make(chan struct{})}
	n, err := Open(behind.config, slow, behind.events)
	if err != nil {
		t.Fatal(err)
	}
	behind.Node = n
	t.Cleanup(func() { _ = n.Close() })
	next, large := 0, make([]byte, 40*kib) // so that whole segments of the log go
	write := func(count int) {
		for end := next + count; next < end; next++ {
			eventuallyTrue(t, "a proposal is taken", func() bool { return leader.Propose(uint64(next+1), large) == nil })
		}
		leader.journal.await(t, next)
	}
	write(10)
	behind.journal.await(t, next)
	own := make(chan error, 1)
	go func() { own <- behind.Snapshot() }()
	<-slow.begun
	net.unplug(behind.config.ServerID)
	for range 5 {
		write(10)
		if err := leader.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	if s := leader.Status(); s.FirstIndex <= behind.Status().LastIndex {
		t.Fatalf("the leader's log begins at %d, the other's ends at %d", s.FirstIndex, behind.Status().LastIndex)
	}
	net.unplug(0)
	eventuallyTrue(t, "it has everything", func() bool { return behind.journal.len() == next })
	select {
	case err := <-own:
		if err == nil || !isGivenUp(err) {
			t.Errorf("the own snapshot: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the own snapshot is still being written")
	}
	behind.journal.mu.Lock()
	restores := behind.journal.restores
	behind.journal.mu.Unlock()
	if restores != 1 {
		t.Errorf("%d snapshots were loaded", restores)
	}
	write(10)
	eventuallyTrue(t, "it has everything", func() bool { return behind.journal.len() == next })
	if err := behind.Snapshot(); err != nil {
		t.Errorf("the next own snapshot: %v", err)
	}
	requireCommands(t, behind.journal, leader.journal.list())
}
