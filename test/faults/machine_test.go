package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// Whatever loses a write, no later one of its connection takes effect: the
// library's errors that lose one entry and take the next, a transfer of
// leadership that comes to nothing, a failed append, a broken way to the
// leader. Each way must have broken connections off, or it was not one.
func TestNoLaterWriteTakesEffectWithoutTheEarlierOne(t *testing.T) {
	w := newWorld(start(t, options{crooked: true, store: "wal"}), seedOf(t, 1))
	w.prepare()
	for number := range 6 {
		w.worker(number, useChains)
	}
	r := &runner{world: w, rng: random(w.seed, 0)}
	ways := map[string]bool{
		"the leader hands over to a stopped server": true, "the leader hands over and over": true,
		"Raft refuses entries at the leader": true, "forward streams break again and again": true,
		"the leader's disk fails on a sync": true, "the leader's disk hangs": true, "the leader is killed": true,
	}
	for _, f := range allFaults() {
		if !ways[f.name] {
			continue
		}
		delete(ways, f.name)
		r.e.awaitAll()
		before, written := w.counted("chains broken off"), w.counted("pipelined creates acknowledged")
		r.e.eventually("writes go on", func() bool { return w.counted("pipelined creates acknowledged") > written+100 })
		f.run(r)
		r.e.eventually(f.name+" breaks a connection off", func() bool { return w.counted("chains broken off") > before })
	}
	if len(ways) > 0 {
		t.Errorf("there are no faults %v", ways)
	}
	w.finish()
}

// Clocks that are far apart, and steps of the leader's, expire no session and
// no TTL node, and all servers say the same times of each node (cases 14, 38).
func TestClocksThatAreOffExpireNothing(t *testing.T) {
	t.Parallel()
	e := launch(t, options{crooked: true,
		config:  map[string]string{"extendedTypesEnabled": "true"},
		defines: map[string]string{"znode.container.checkIntervalMs": "100"}})
	for id, off := range map[int]time.Duration{2: 90 * time.Second, 3: -90 * time.Second} {
		e.crook(id, func(m *machine) { m.ClockOffset = off })
	}
	e.awaitAll()
	w := newWorld(e, 1)
	w.prepare()
	ctx := context.Background()
	holders := idle(w, e.ids, 2)
	for i, c := range holders {
		if _, err := c.Create(ctx, fmt.Sprintf("/e/holder-%d", i), nil, proto.CreateEphemeral); err != nil {
			t.Fatal(err)
		}
	}
	ttl := proto.CreateRequest{Path: "/w/ttl", ACL: proto.OpenACL, Flags: proto.CreatePersistentTTL, TTL: (5 * time.Minute).Milliseconds()}
	if _, err := holders[0].Do(proto.OpCreateTTL, ttl.Append(nil, proto.OpCreateTTL)).Wait(ctx); err != nil {
		t.Fatalf("a TTL node: %v", err)
	}
	r := &runner{world: w, rng: random(1, 0)}
	leader := e.leader(e.ids...)
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		e.crook(leader, func(m *machine) { m.ClockOffset = step })
		r.rest(2 * sessionTimeout / 3)
		if _, err := holders[0].Create(ctx, fmt.Sprintf("/w/stepped-%v", step), nil, proto.CreatePersistent); err != nil {
			t.Errorf("a write after a step of %v: %v", step, err)
		}
	}
	if large(0, 1) > 0 {
		pauseLeader(t, w, leader, holders)
		leader = e.leader(e.ids...)
	}
	next := e.others(leader)[0]
	e.crook(next, func(m *machine) { m.ClockOffset = 10 * time.Minute })
	e.eventually("another server leads", func() bool { return e.handOver(leader, next) == nil || e.leader(e.ids...) == next })
	r.rest(sessionTimeout)
	for i, c := range holders {
		if _, err := c.Exists(ctx, fmt.Sprintf("/e/holder-%d", i), false); err != nil {
			t.Errorf("the session at server %d: %v", e.ids[i/2], err)
		}
		if _, err := c.Exists(ctx, "/w/ttl", false); err != nil {
			t.Errorf("the TTL node: %v", err)
		}
	}
	if err := holders[0].Delete(ctx, "/w/ttl", -1); err != nil { // it may be due before all servers have been compared
		t.Errorf("the TTL node: %v", err)
	}
	for _, c := range holders {
		_ = c.Close(ctx)
	}
	e.kill(1) // its times come back from its log
	e.restart(1)
	e.awaitAll()
	taken := func() int { return strings.Count(e.servers[2].Log(), "snapshot taken") }
	for before := taken(); taken() == before; { // and those of server 2 from a snapshot
		w.each(t, 500, slices.Repeat([]string{"/w/1"}, 500), proto.OpSetData, func(path string) []byte { return setBody(path, nil, -1) })
	}
	e.kill(2)
	e.restart(2)
	w.finish()
}

// The disk of a leader, or of another member, fills up: the ensemble goes on,
// its clients are told or sent away, and it comes back by itself when there is
// space.
func TestAFullDiskOfOneMemberStopsNobodyElse(t *testing.T) {
	t.Parallel()
	small := map[int]string{}
	e := start(t, options{dataDir: func(id int) string {
		small[id] = peer.SmallDisk(t)
		return filepath.Join(small[id], "data")
	}})
	w := newWorld(e, 1)
	w.prepare()
	w.startWorkers()
	r := &runner{world: w, rng: random(1, 0)}
	for _, leads := range []bool{true, false} {
		r.rest(tick)
		victim := e.leader(e.ids...)
		if !leads {
			victim = e.others(victim)[0]
		}
		said := len(e.servers[victim].Log())
		reader := w.mustDial(victim)
		ballast := peer.Fill(t, small[victim])
		e.eventually(fmt.Sprintf("server %d says that its disk is full", victim), func() bool {
			return strings.Contains(e.servers[victim].Log()[said:], "the disk of the log is full")
		})
		for _, id := range e.others(victim) {
			e.eventually(fmt.Sprintf("a write at server %d while the disk of server %d is full", id, victim), func() bool {
				return writes(e, id, fmt.Sprintf("/full-%v-%d", leads, id))
			})
		}
		// What it could show would be older and older: its clients are sent to the
		// others, and health says why.
		e.eventually(fmt.Sprintf("server %d, whose disk is full, drops who only reads", victim), func() bool {
			select {
			case <-reader.Ended():
				return true
			default:
				return false
			}
		})
		h, err := admin.FetchHealth(context.Background(), e.ownDir(victim))
		if err != nil || h.Ready || !strings.Contains(h.Reason, "the disk of the log is full") {
			t.Errorf("the health of server %d is %+v, %v", victim, h, err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		e.awaitAll()
	}
	w.finish()
}

// writes tells whether a server takes a write within a client's patience.
func writes(e *ensemble, id int, path string) bool {
	c, err := dial(e.address(id), 0, nil, 0)
	if err != nil {
		return false
	}
	defer c.Drop()
	limited, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err = c.Create(limited, path, nil, proto.CreatePersistent)
	return err == nil || client.Code(err) == proto.ErrNodeExists
}

// shows tells whether a server has a node, as soon as it has all that was written
// before.
func shows(e *ensemble, id int, path string) bool {
	c, err := dial(e.address(id), 0, nil, 0)
	if err != nil {
		return false
	}
	defer c.Drop()
	limited, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	sync := c.Do(proto.OpSync, syncBody())
	_, err = c.Exists(limited, path, false)
	_, unsure := sync.Wait(limited)
	return err == nil && unsure == nil
}

// A leader whose disk hangs gives way, and others serve meanwhile (case 53). That
// a short stall changes nothing is shown where no other load can: in consensus.
func TestALeaderWhoseDiskHangsGivesWay(t *testing.T) {
	for _, store := range []string{"wal", "bolt"} {
		t.Run(store, func(t *testing.T) {
			e := start(t, options{crooked: true, store: store})
			w := newWorld(e, 1)
			w.prepare()
			w.startWorkers()
			r := &runner{world: w, rng: random(1, 0)}
			r.rest(tick)
			leader := e.hangTheLeader()
			e.saysThatItsDiskHangs(leader)
			others := e.others(leader)
			e.leader(others...)
			for _, id := range others {
				e.eventually(fmt.Sprintf("server %d takes a write", id), func() bool { return writes(e, id, fmt.Sprintf("/while-hung-%d", id)) })
			}
			e.saysThatItsDiskHangs(leader) // still, and whoever leads now
			e.mend(leader)
			e.awaitAll()
			e.eventually("the former leader is ready again", func() bool { return e.health(leader).Ready })
			w.finish()
		})
	}
}

// waitedAtGivingWay is how long an append had been running when its leader gave way.
var waitedAtGivingWay = regexp.MustCompile(`this leader gives way".* waited="?([^"\n]+)"?\n`)

// hangTheLeader lets the leader's disk hang until it says that it gives way, and
// judges by its own word how long it waited. It gives way past half of syncLimit ×
// tickTime, for which it looks at quarters of that; ten times that are the ten seconds
// of case 53, and leave room for a machine that is busy.
func (e *ensemble) hangTheLeader() (leader int) {
	e.t.Helper()
	var match []string
	for match == nil {
		leader = e.leader(e.ids...)
		before := len(e.servers[leader].Log())
		said := func() string { return e.servers[leader].Log()[before:] }
		e.crook(leader, func(m *machine) { m.Disk = "hang" })
		e.eventually("the leader says that its disk hangs", func() bool { return strings.Contains(said(), "the disk of the log does not answer") })
		if match = waitedAtGivingWay.FindStringSubmatch(said()); match == nil { // another was elected meanwhile
			e.mend(leader)
			e.awaitAll()
		}
	}
	const limit = syncLimit * tick / 2
	waited, err := time.ParseDuration(match[1])
	if err != nil || waited < limit || waited > 10*limit {
		e.t.Errorf("the leader gave way when its disk had not answered for %s (%v), want %v to %v", match[1], err, limit, 10*limit)
	}
	return leader
}

// saysThatItsDiskHangs judges the health of a server whose disk hangs: it lives, is
// not ready, and says why.
func (e *ensemble) saysThatItsDiskHangs(id int) {
	e.t.Helper()
	if h := e.health(id); !h.Live || h.Ready || !strings.Contains(h.Reason, "the disk of the log does not answer") {
		e.t.Errorf("the health of server %d, whose disk hangs, is %+v", id, h)
	}
}

// health is what a server says on its admin channel; it has to answer.
func (e *ensemble) health(id int) admin.Health {
	e.t.Helper()
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return must(admin.FetchHealth(limited, e.ownDir(id)))(e.t)
}

// A server whose disk fails on a sync ends by itself, whoever it is: nobody
// knows what is on that disk. With another disk, or the same one if it was
// only a cable, it comes back, and what it holds is good enough to lead (case 61).
func TestAServerWhoseDiskFailsOnASyncEndsAndComesBack(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"wal", "bolt"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			w := newWorld(start(t, options{crooked: true, store: store}), seedOf(t, 1))
			w.prepare()
			w.startWorkers()
			r := &runner{world: w, rng: random(w.seed, 0)}
			r.rest(tick)
			r.failDisk(r.leaderNow())
			w.e.awaitAll()
			follower := r.follower()
			r.failDisk(follower)
			r.leadsAndIsWrittenThrough(follower)
			w.finish()
		})
	}
}

// leadsAndIsWrittenThrough makes a server the leader, and writes through it and all
// others while it is. With workers at work an election may come between; then it is
// tried again.
func (r *runner) leadsAndIsWrittenThrough(id int) {
	r.e.t.Helper()
	leads := func() bool { return field(r.e.srvr(id), "Mode") == "leader" }
	path := func(round, at int) string { return fmt.Sprintf("/led-by-%d-%d-through-%d", id, round, at) }
	round := 0
	r.e.eventually(fmt.Sprintf("server %d leads while each server takes a write", id), func() bool {
		if !leads() {
			_ = r.e.handOver(r.leaderNow(), id) // it may not have a vote yet
			return false
		}
		round++
		for _, at := range r.e.ids {
			if !writes(r.e, at, path(round, at)) {
				return false
			}
		}
		return leads()
	})
	for _, at := range r.e.ids { // each shows what was written through all
		for _, through := range r.e.ids {
			r.e.eventually(fmt.Sprintf("server %d shows what was written through %d", at, through), func() bool { return shows(r.e, at, path(round, through)) })
		}
	}
}

// A leader that hands over to a server that does not answer leads on, once the
// library has given up; the others' clients write meanwhile or soon after.
func TestALeaderWhoseSuccessorDoesNotAnswerLeadsOn(t *testing.T) {
	t.Parallel()
	e := start(t, options{crooked: true})
	w := newWorld(e, 1)
	w.prepare()
	leader := e.leader(e.ids...)
	to, other := e.others(leader)[0], e.others(leader)[1]
	e.signal(to, syscall.SIGSTOP)
	if err := e.handOver(leader, to); err == nil {
		t.Error("a stopped server took over")
	}
	e.eventually("a write at the leader", func() bool { return writes(e, leader, "/a") })
	e.eventually("a write at the other", func() bool { return writes(e, other, "/b") })
	e.signal(to, syscall.SIGCONT)
	w.finish()
}
