package faults

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// sampleConfig is the timing of the sample file that Apache ships.
var sampleConfig = map[string]string{"tickTime": "2000", "initLimit": "10", "syncLimit": "5"}

const (
	// loadConns lead to each server, with loadWindow requests on their way each,
	// half of them writes of loadBytes.
	loadConns  = 4
	loadWindow = 32
	// loadNodes are written and read.
	loadNodes = 1000
)

// Three servers as they are shipped stand as much load as clients can make,
// without an election and without closing a connection. FAULTS_LOAD_SECONDS says
// for how long; then one election is too many. Without it, beside other tests, a
// busy machine may cause one by itself, so that two more tries are made.
func TestFullLoadCausesNoElection(t *testing.T) {
	length := time.Duration(number(t, "FAULTS_LOAD_SECONDS", 20)) * time.Second
	tries := 3
	if os.Getenv("FAULTS_LOAD_SECONDS") != "" {
		tries = 1
	}
	e := peer.StartZooraftEnsemble(t, 3, peer.Options{Config: sampleConfig})
	for try := 1; ; try++ {
		unsteady := fullLoad(t, e, length)
		if unsteady == "" {
			return
		}
		if try == tries {
			for i, s := range e.Servers {
				keepLog(t, i+1, s)
			}
			t.Fatalf("%d of %d tries: %s", try, tries, unsteady)
		}
		t.Logf("again, as this may be the machine: %s", unsteady)
		if err := e.AwaitReady(patience); err != nil {
			t.Fatal(err)
		}
	}
}

// reign is who leads, and how often anybody has stood for it.
type reign struct {
	leader    int
	epoch     int64 // of the zxid: it goes up with Raft's term
	elections int
}

func reignOf(t *testing.T, e *peer.Ensemble) (r reign) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		if r.leader = e.Leader() + 1; r.leader > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody leads")
		}
	}
	text := must(peer.Word(e.Servers[r.leader-1].Address, "srvr"))(t)
	r.epoch = must(strconv.ParseInt(strings.TrimPrefix(field(text, "Zxid"), "0x"), 16, 64))(t) >> 32
	for _, s := range e.Servers {
		r.elections += electionsIn(s.Log())
	}
	return r
}

// load is what all clients did.
type load struct {
	stop    chan struct{}
	begin   time.Time
	clients sync.WaitGroup

	reads, writes atomic.Int64
	last          atomic.Int64 // when a write was last acknowledged, since begin
	gap           atomic.Int64 // the longest time between two such
	slowest       atomic.Int64 // the longest answer

	mu     sync.Mutex
	broken []string // guarded by mu
}

// fullLoad loads the ensemble and says what was not steady.
func fullLoad(t *testing.T, e *peer.Ensemble, length time.Duration) (unsteady string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	setUp := must(client.Dial(ctx, e.Servers[0].Address, client.Options{}))(t)
	data := bytes.Repeat([]byte("x"), loadBytes)
	var reads, writes [][]byte
	for n := range loadNodes {
		reads, writes = append(reads, readBody(loadPath(n), false)), append(writes, setBody(loadPath(n), data, -1))
		if _, err := setUp.Create(ctx, loadPath(n), data, proto.CreatePersistent); err != nil && client.Code(err) != proto.ErrNodeExists {
			t.Fatal(err)
		}
	}
	_ = setUp.Close(ctx)
	l := &load{stop: make(chan struct{})}
	var conns []*client.Conn
	for _, s := range e.Servers {
		for range loadConns {
			conns = append(conns, must(client.Dial(ctx, s.Address, client.Options{}))(t))
		}
	}
	before := reignOf(t, e)
	l.begin = time.Now()
	for i, c := range conns {
		l.clients.Add(1)
		go l.run(c, rand.New(rand.NewPCG(uint64(i), 0)), reads, writes)
	}
	<-time.After(length)
	close(l.stop)
	l.clients.Wait()
	for _, c := range conns {
		c.Drop()
	}
	after := reignOf(t, e)
	took := time.Since(l.begin)
	t.Logf("%.0f s: %d reads and %d writes (%.0f a second); no write was acknowledged for %v at most; the slowest answer took %v; server %d led",
		took.Seconds(), l.reads.Load(), l.writes.Load(), float64(l.reads.Load()+l.writes.Load())/took.Seconds(),
		time.Duration(l.gap.Load()).Round(time.Millisecond), time.Duration(l.slowest.Load()).Round(time.Millisecond), after.leader)
	switch {
	case before != after:
		return fmt.Sprintf("before %+v, after %+v", before, after)
	case len(l.broken) > 0:
		return fmt.Sprintf("%d connections broke: %s", len(l.broken), l.broken[0])
	case l.reads.Load() == 0 || l.writes.Load() == 0:
		t.Error("there was no load")
	}
	return ""
}

func loadPath(n int) string { return fmt.Sprintf("/load-%d", n) }

// run keeps one connection busy.
func (l *load) run(c *client.Conn, rng *rand.Rand, reads, writes [][]byte) {
	defer l.clients.Done()
	done := make(chan *client.Call, loadWindow)
	var sent [loadWindow]time.Time
	ask := func(call *client.Call) {
		call.Op, call.Body = proto.OpGetData, reads[rng.IntN(loadNodes)]
		if rng.IntN(2) == 0 {
			call.Op, call.Body = proto.OpSetData, writes[rng.IntN(loadNodes)]
		}
		sent[call.Tag] = time.Now()
		c.Go(call)
	}
	for tag := range loadWindow {
		ask(&client.Call{Done: done, Tag: tag})
	}
	for open := loadWindow; open > 0; {
		call := <-done
		if call.Err != nil || call.Header.Err != proto.ErrOK {
			l.mu.Lock()
			l.broken = append(l.broken, fmt.Sprintf("%v, %v", call.Err, call.Header.Err))
			l.mu.Unlock()
			return
		}
		l.answered(call.Op, sent[call.Tag])
		select {
		case <-l.stop:
			open--
		default:
			ask(call)
		}
	}
}

func (l *load) answered(op proto.OpCode, sent time.Time) {
	now := time.Now()
	raise(&l.slowest, int64(now.Sub(sent)))
	if op == proto.OpGetData {
		l.reads.Add(1)
		return
	}
	l.writes.Add(1)
	at := int64(now.Sub(l.begin))
	raise(&l.gap, at-l.last.Swap(at))
}

// raise makes a number at least as high as another.
func raise(n *atomic.Int64, to int64) {
	for {
		is := n.Load()
		if is >= to || n.CompareAndSwap(is, to) {
			return
		}
	}
}
