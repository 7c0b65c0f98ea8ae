package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// fault is one way to hurt an ensemble: it does harm, holds it, and takes it
// back.
type fault struct {
	name  string
	run   func(r *runner)
	needs need
}

// need is what an ensemble must be to suffer a fault.
type need int

const (
	anyServers need = iota
	crookedServers
	// aSmallDisk is of one server: options.smallDisk.
	aSmallDisk
	changingMembers
)

// has tells whether an ensemble can suffer a fault.
func (e *ensemble) has(n need) bool {
	switch n {
	case crookedServers:
		return e.controls != nil
	case aSmallDisk:
		return e.options.smallDisk != 0
	case changingMembers:
		return e.options.members != never
	}
	return true
}

// runner applies faults. One at a time: two at once could take the majority
// away for longer than clients live, and then nothing is tested.
type runner struct {
	*world
	rng *rand.Rand
}

func (r *runner) pick(from []int) int { return from[r.rng.IntN(len(from))] }

// hold waits for at least one and at most the given time.
func (r *runner) hold(most time.Duration) {
	r.rest(most/4 + time.Duration(r.rng.Int64N(int64(most*3/4))))
}

// leaderNow is who leads, or any server if nobody does.
func (r *runner) leaderNow() int {
	for _, id := range r.e.ids {
		if r.e.running(id) && field(r.e.srvr(id), "Mode") == "leader" {
			return id
		}
	}
	return r.pick(r.e.ids)
}

func (r *runner) follower() int { return r.pick(r.e.others(r.leaderNow())) }

func (r *runner) killFor(most time.Duration, ids ...int) {
	for _, id := range ids {
		r.e.kill(id)
	}
	r.hold(most)
	for _, id := range ids {
		r.e.restart(id)
	}
}

func (r *runner) stopFor(most time.Duration, ids ...int) {
	for _, id := range ids {
		r.e.signal(id, syscall.SIGSTOP)
	}
	r.hold(most)
	for _, id := range ids {
		r.e.signal(id, syscall.SIGCONT)
	}
}

func (r *runner) cutFor(most time.Duration, one, two []int) {
	r.e.cut(one, two, r.rng.IntN(2) == 0)
	r.hold(most)
	r.e.net.heal()
}

// slow makes all links slow, or lossy.
func (r *runner) slow(l link) {
	change := map[pair]link{}
	for _, a := range r.e.ids {
		for _, b := range r.e.ids {
			change[pair{a, b}] = l
		}
	}
	r.e.net.set(change)
	r.hold(4 * time.Second)
	r.e.net.heal()
}

// faults are all that a schedule picks from. Servers are chosen when a fault
// begins, because leadership depends on time; the order of faults, their
// lengths and shapes come from the seed alone.
func faults() []fault {
	const short, long = 2 * time.Second, 6 * time.Second
	return []fault{
		{name: "the leader is killed", run: func(r *runner) { r.killFor(short, r.leaderNow()) }},
		{name: "a follower is killed", run: func(r *runner) { r.killFor(long, r.follower()) }},
		{name: "two servers are killed", run: func(r *runner) { l := r.leaderNow(); r.killFor(short, l, r.pick(r.e.others(l))) }},
		{name: "all servers are killed", run: func(r *runner) { r.killFor(short, r.e.ids...) }},
		{name: "the leader is stopped", run: func(r *runner) { r.stopFor(long, r.leaderNow()) }},
		{name: "a follower is stopped", run: func(r *runner) { r.stopFor(long, r.follower()) }},
		{name: "the leader is restarted", run: func(r *runner) { r.restartCleanly(r.leaderNow()) }},
		{name: "the leader hands over while a follower is stopped", run: func(r *runner) {
			l := r.leaderNow()
			f := r.pick(r.e.others(l))
			r.e.signal(f, syscall.SIGSTOP)
			r.restartCleanly(l)
			r.hold(short)
			r.e.signal(f, syscall.SIGCONT)
		}},
		{name: "the leader is cut off", run: func(r *runner) { l := r.leaderNow(); r.cutFor(long, []int{l}, r.e.others(l)) }},
		{name: "a follower is cut off", run: func(r *runner) { f := r.follower(); r.cutFor(long, []int{f}, r.e.others(f)) }},
		{name: "two servers reach each other only over the third", run: func(r *runner) {
			bridge := r.pick(r.e.ids)
			o := r.e.others(bridge)
			r.cutFor(long, o[:1], o[1:])
		}},
		{name: "the leader is not heard", run: func(r *runner) { r.oneWay(r.leaderNow(), true) }},
		{name: "the leader hears nobody", run: func(r *runner) { r.oneWay(r.leaderNow(), false) }},
		{name: "a follower is not heard", run: func(r *runner) { r.oneWay(r.follower(), true) }},
		{name: "a follower hears nobody", run: func(r *runner) { r.oneWay(r.follower(), false) }},
		{name: "all links are slow", run: func(r *runner) { r.slow(link{delay: time.Duration(5+r.rng.IntN(40)) * time.Millisecond}) }},
		{name: "all links lose packets", run: func(r *runner) { r.slow(link{lossEvery: 5 + r.rng.IntN(40)}) }},
		{name: "peer connections are reset", run: func(r *runner) { r.e.net.closeConns(func(*pipe) bool { return true }) }},
		{name: "a follower loses its disk", run: func(r *runner) {
			f := r.follower()
			r.e.kill(f)
			r.e.wipe(f)
			r.hold(short)
			r.e.restart(f)
			r.awaitMember(f)
		}},
	}
}

func (r *runner) oneWay(id int, out bool) {
	for _, o := range r.e.others(id) {
		if out {
			r.e.cutOneWay(id, o)
		} else {
			r.e.cutOneWay(o, id)
		}
	}
	r.hold(5 * time.Second)
	r.e.net.heal()
}

func (r *runner) restartCleanly(id int) {
	r.e.stop(id)
	r.e.restart(id)
}

// awaitMember waits until a server is served by the ensemble again: while one
// disk is lost and not yet refilled, no other may go.
func (r *runner) awaitMember(id int) {
	r.e.eventually(fmt.Sprintf("server %d is a member again", id), func() bool { return r.e.takesClients(id) })
	r.hold(time.Second)
}

// hurt runs faults until the time is over.
func (r *runner) hurt(length time.Duration, from []fault) {
	order := r.rng.Perm(len(from))
	for i := 0; r.now() < length; i++ {
		if i%len(from) == 0 {
			order = r.rng.Perm(len(from))
		}
		f := from[order[i%len(from)]]
		r.e.t.Logf("%8.3fs %s", r.now().Seconds(), f.name)
		r.count("faults")
		f.run(r)
		r.hold(2 * time.Second)
		r.awaitSomeLeader()
	}
	r.e.net.heal()
}

// awaitSomeLeader waits until the ensemble has healed enough for the next
// fault: writes are possible again.
func (r *runner) awaitSomeLeader() {
	begun := time.Now()
	r.e.eventually("writes are possible", func() bool {
		for _, id := range r.e.ids {
			if r.e.running(id) && r.e.takesClients(id) {
				return true
			}
		}
		return false
	})
	if took := time.Since(begun); took > 5*time.Second {
		r.e.t.Logf("%8.3fs it took %.1f s until writes were possible again", r.now().Seconds(), took.Seconds())
	}
}

func random(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

func randomUpTo(rng *rand.Rand, milliseconds int) time.Duration {
	return time.Duration(rng.IntN(milliseconds)) * time.Millisecond
}

// seedOf is FAULTS_SEED, or the given one.
func seedOf(t testing.TB, usual uint64) uint64 { return number(t, "FAULTS_SEED", usual) }

// lengthOf is FAULTS_SECONDS, or the given time.
func lengthOf(t testing.TB, usual time.Duration) time.Duration {
	return time.Duration(number(t, "FAULTS_SECONDS", uint64(usual/time.Second))) * time.Second
}

// serversOf is FAULTS_SERVERS, or the given number.
func serversOf(t testing.TB, usual uint64) int { return int(number(t, "FAULTS_SERVERS", usual)) }

func number(t testing.TB, variable string, usual uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
