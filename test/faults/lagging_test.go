package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Case 55: a server was away for longer than the log reaches back, and what it is
// sent then is longer on its way than the log reaches back too. It is sent one
// snapshot, and catches up while writes go on.
//
// FAULTS_LAG_MB=500 makes it the whole case: a tree of that size, the defaults for
// snapshots, 3,000 writes a second, two minutes away, first over 50 MiB a second and
// then over so little that three snapshots are taken meanwhile.
func TestAServerThatIsSentASnapshotSlowlyCatchesUp(t *testing.T) {
	t.Parallel()
	lag := lagging{t: t, size: 4, rate: 400, data: lagData, away: func(written int) bool { return written > cachedWrites }, patience: patience}
	config := map[string]string{"snapCount": "200", "preAllocSize": "1024"}
	links := []int{256 << 10}
	if os.Getenv("FAULTS_LAG_MB") != "" {
		lag.whole = true
		lag.size, lag.rate, lag.data, lag.patience = int(number(t, "FAULTS_LAG_MB", 0)), 3000, 100, 20*time.Minute
		lag.away = func(int) bool { return time.Since(lag.left) > 2*time.Minute }
		config = map[string]string{"snapCount": "100000"}
		links = []int{50 << 20, 3 << 20}
	}
	lag.w = newWorld(start(t, options{store: "wal", config: config}), 1)
	lag.w.prepare()
	lag.fill()
	for i, link := range links {
		lag.round(i, link, i == len(links)-1)
	}
	lag.empty()
	lag.w.finish()
}

const (
	// lagData are the bytes of each write of the short form, and cachedWrites a few
	// more such writes than the leader's cache of its log holds.
	lagData      = 16 << 10
	cachedWrites = 16<<20/lagData + 100
)

// lagging is one run of the case.
type lagging struct {
	t        *testing.T
	w        *world
	size     int                    // of the tree, in MiB
	rate     int                    // writes in a second
	data     int                    // bytes of each
	away     func(written int) bool // it has been away for long enough
	left     time.Time              // when it went
	patience time.Duration
	whole    bool
}

// round has the nth follower killed, and started again behind a link of so many bytes
// a second, which is slow if the log is to be kept longer than usual for it.
func (l *lagging) round(n, bytesPerSecond int, slow bool) {
	t, e := l.t, l.w.e
	leader, elections := e.leader(e.ids...), e.elections()
	away := e.others(leader)[n]
	load := newWorld(e, 2)
	load.worker(1, l.write)
	stop := func() {
		close(load.stop)
		load.work.Wait()
	}
	defer func() {
		if !load.stopped() {
			stop()
		}
	}()
	loaded := func() int { return strings.Count(e.servers[away].Log(), "the snapshot of the leader has been loaded") }
	kept := func() int {
		return strings.Count(e.servers[leader].Log(), "the log is kept for a server that is sent a snapshot")
	}
	before, keptBefore, once := loaded(), kept(), 1
	if !strings.Contains(e.servers[away].Log(), "snapshot taken") {
		once = 0 // it has nothing to load at its start, and the first that it is sent is not told
	}
	e.kill(away)
	l.left = time.Now()
	e.within(l.patience, "much is written without it", func() bool { return l.away(load.counted("writes")) })
	e.within(l.patience, "the log has been cut behind it", func() bool {
		age := metric(t, e, leader, "oldest_log_entry_age_ms")
		return age >= 0 && age < time.Since(l.left).Milliseconds() || e.elections() > elections
	})
	e.net.set(map[pair]link{{leader, away}: {bytesPerSecond: bytesPerSecond}})
	e.restart(away)
	back := time.Now()
	if slow {
		e.within(l.patience, "the leader keeps the log for it", func() bool { return kept() > keptBefore || e.elections() > elections })
		if !l.whole {
			written := load.counted("writes")
			e.within(l.patience, "the cache does not hold it any more", func() bool { return load.counted("writes") > written+cachedWrites })
			e.net.set(map[pair]link{{leader, away}: {bytesPerSecond: 20 << 20}})
		}
	}
	e.within(l.patience, "it has caught up while the load goes on", func() bool {
		at := field(e.srvr(e.leader(e.ids...)), "Zxid")
		if at == "" {
			return false
		}
		c, err := dial(e.address(away), 0, nil, zxidOf(t, at))
		if err != nil {
			return false
		}
		c.Drop()
		return true
	})
	took, age, sent := time.Since(back), metric(t, e, leader, "oldest_log_entry_age_ms"), metric(t, e, leader, "snapshot_send_time_ms")
	t.Logf("%d MiB over %d KiB a second: caught up %.1f s after its start, with %d snapshots more than the first; the last took %d ms to be sent and loaded; the log reaches back %d ms; %d writes",
		l.size, bytesPerSecond>>10, took.Seconds(), loaded()-before-once, sent, age, load.counted("writes"))
	switch {
	case e.elections() > elections: // beside other suites it may be the machine
		t.Logf("there were %d elections", e.elections()-elections)
	case loaded()-before != once:
		t.Errorf("it was sent %d snapshots more than one", loaded()-before-once)
	case sent <= 0 || age <= 0:
		t.Errorf("the leader says that the snapshot took %d ms, and that its log reaches back %d ms", sent, age)
	case slow:
		e.within(l.patience, "the leader cuts its log again", func() bool { return metric(t, e, leader, "oldest_log_entry_age_ms") < age })
	}
	stop()
	e.net.heal()
	e.awaitAll()
}

// metric is a number of a server's mntr; -1 if it does not show it.
func metric(t testing.TB, e *ensemble, id int, name string) int64 {
	t.Helper()
	text, err := peer.Word(e.address(id), "mntr")
	if err != nil {
		return -1
	}
	found := regexp.MustCompile(`(?m)^zk_` + name + `\t(-?\d+)$`).FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	return must(strconv.ParseInt(found[1], 10, 64))(t)
}

// write is a worker: so many writes in a second, or as many as are answered.
func (l *lagging) write(s *session) {
	const ticks = 100
	body := setBody("/w/1", bytes.Repeat([]byte("x"), l.data), -1)
	tick := time.NewTicker(time.Second / ticks)
	defer tick.Stop()
	for {
		select {
		case <-s.world.stop:
			return
		case <-tick.C:
		}
		c := s.connected()
		if c == nil {
			return
		}
		var calls []*client.Call
		for range l.rate / ticks {
			calls = append(calls, c.Do(proto.OpSetData, body))
		}
		for _, call := range calls {
			if _, err := s.wait(call); err == nil {
				s.world.count("writes")
			}
		}
	}
}

// pieceBytes is the data of each node of the tree.
const pieceBytes = 10 << 10

// pieces are the nodes of the tree, under parents of a thousand.
func (l *lagging) pieces() (parents, nodes []string) {
	for n := range l.size << 20 / pieceBytes {
		if n%1000 == 0 {
			parents = append(parents, fmt.Sprintf("/w/tree-%d", n/1000))
		}
		nodes = append(nodes, fmt.Sprintf("/w/tree-%d/%d", n/1000, n))
	}
	return parents, nodes
}

func (l *lagging) fill() {
	parents, nodes := l.pieces()
	l.w.each(l.t, 256, parents, proto.OpCreate, func(path string) []byte { return createBody(path, nil, proto.CreatePersistent) })
	data := bytes.Repeat([]byte("x"), pieceBytes)
	l.w.each(l.t, 256, nodes, proto.OpCreate, func(path string) []byte { return createBody(path, data, proto.CreatePersistent) })
}

func (l *lagging) empty() {
	parents, nodes := l.pieces()
	for _, paths := range [][]string{nodes, parents} {
		l.w.each(l.t, 256, paths, proto.OpDelete, func(path string) []byte { return deleteBody(path, -1) })
	}
}

// each does one operation on many nodes through the leader, so many at once, and
// again where an answer was lost.
func (w *world) each(t testing.TB, group int, paths []string, op proto.OpCode, body func(path string) []byte) {
	t.Helper()
	var c *client.Conn
	for len(paths) > 0 {
		if c == nil {
			c = w.mustDial(w.e.leader(w.e.ids...))
		}
		now := paths[:min(group, len(paths))]
		var calls []*client.Call
		for _, path := range now {
			calls = append(calls, c.Do(op, body(path)))
		}
		for _, call := range calls {
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			_, err := call.Wait(ctx)
			cancel()
			switch code := client.Code(err); {
			case code == proto.ErrOK, code == proto.ErrNodeExists && op == proto.OpCreate, code == proto.ErrNoNode && op == proto.OpDelete:
				continue
			case code == proto.ErrConnectionLoss:
				c.Drop()
				c = nil
			default:
				t.Fatalf("%v: %v", op, err)
			}
			break
		}
		if c != nil {
			paths = paths[len(now):]
		}
	}
	if c != nil {
		c.Drop()
	}
}
