package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// writers are clients that write to an ensemble without end, and go to another
// server when their connection breaks, as client libraries do. They note the
// longest time in which nothing was acknowledged.
type writers struct {
	addresses                []string
	connections, outstanding int
	reads                    int // share of requests that read, of 100

	acknowledged atomic.Int64
	line         atomic.Pointer[timeline] // nil: not followed
	quit         chan struct{}            // closed to stop; nil while none run
	running      sync.WaitGroup

	mu      sync.Mutex
	all     lull   // guarded by mu
	clients []lull // guarded by mu; each client's own
}

// lull follows acknowledgements.
type lull struct {
	last    time.Time // of the last, or when it was begun to look
	longest time.Duration
	any     bool // since it was begun to look
}

func (l *lull) acknowledge(now time.Time) {
	l.longest = max(l.longest, now.Sub(l.last))
	l.last, l.any = now, true
}

func newWriters(addresses []string, connections, outstanding int) *writers {
	return &writers{addresses: addresses, connections: connections, outstanding: outstanding, clients: make([]lull, connections)}
}

// start puts the load on.
func (w *writers) start() {
	w.forget()
	w.quit = make(chan struct{})
	for i := range w.connections {
		w.running.Add(1)
		go w.client(i)
	}
}

// stop takes the load off and waits until it is.
func (w *writers) stop() {
	if w.quit != nil {
		close(w.quit)
		w.quit = nil
		w.running.Wait()
	}
}

// follow has a timeline count all answers from now on; nil ends it.
func (w *writers) follow(line *timeline) { w.line.Store(line) }

func (w *writers) writes() int64 { return w.acknowledged.Load() }

// forget begins to look anew, from now.
func (w *writers) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.all = lull{last: now}
	for i := range w.clients {
		w.clients[i] = lull{last: now}
	}
}

// gaps are the longest times since forget.
func (w *writers) gaps() (any, worst time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		worst = max(worst, c.longest)
	}
	return w.all.longest, worst
}

// awaitAll waits until each client has had a write acknowledged that was
// begun after the last forget, so far as one can tell: a second one.
func (w *writers) awaitAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !w.allWrite() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: a client's writes are not acknowledged", ErrEnsemble)
		case <-poll.C:
		}
	}
	return nil
}

// recently is how fresh an acknowledgement must be for its client to count as
// writing.
const recently = time.Second

func (w *writers) allWrite() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		if !c.any || time.Since(c.last) > recently {
			return false
		}
	}
	return true
}

func (w *writers) acknowledge(client int) {
	now := time.Now()
	w.acknowledged.Add(1)
	if line := w.line.Load(); line != nil {
		line.add(now, 1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.acknowledge(now)
	w.clients[client].acknowledge(now)
}

const (
	// failoverDial bounds one attempt to connect: a server without a leader may
	// accept and never answer.
	failoverDial = 500 * time.Millisecond
	// failoverSession is the session timeout that is asked for.
	failoverSession = 10 * time.Second
	// failoverAnswer is how long a client waits for an answer before it takes
	// the connection for dead.
	failoverAnswer = 5 * time.Second
	// betweenServers is the pause before the next server is tried.
	betweenServers = 10 * time.Millisecond
)

// client is a goroutine: one client.
func (w *writers) client(number int) {
	defer w.running.Done()
	var session proto.SessionID
	var password []byte
	quit := w.quit
	for try := number; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), failoverDial)
		c, err := client.Dial(ctx, w.addresses[try%len(w.addresses)],
			client.Options{Timeout: failoverSession, Session: session, Password: password})
		cancel()
		switch {
		case errors.Is(err, client.ErrExpired):
			session, password = 0, nil
		case err == nil:
			session, password = c.Session(), c.Password()
			w.write(c, number, quit)
			c.Drop()
		}
		select {
		case <-quit:
			return
		case <-time.After(betweenServers):
		}
	}
}

// write sets the client's node until the connection ends.
func (w *writers) write(c *client.Conn, number int, quit <-chan struct{}) {
	path := fmt.Sprintf("/failover-%d", number)
	done := make(chan *client.Call, w.outstanding)
	turn := number
	send := func() {
		if turn++; turn*37%100 < w.reads { // 37 has no factor in common with 100
			get := proto.PathWatch{Path: path}
			c.Go(&client.Call{Op: proto.OpGetData, Body: get.Append(nil), Done: done})
			return
		}
		set := proto.SetDataRequest{Path: path, Data: make([]byte, 100), Version: -1}
		c.Go(&client.Call{Op: proto.OpSetData, Body: set.Append(nil), Done: done})
	}
	c.Go(&client.Call{Op: proto.OpCreate, Body: createBody(path, nil), Done: done})
	for range w.outstanding - 1 {
		send()
	}
	silent := time.NewTimer(failoverAnswer)
	defer silent.Stop()
	for {
		select {
		case <-quit:
			return
		case <-silent.C:
			return
		case call := <-done:
			if call.Err != nil {
				return
			}
			if call.Header.Err == proto.ErrOK {
				w.acknowledge(number)
			}
			silent.Reset(failoverAnswer)
			send()
		}
	}
}
