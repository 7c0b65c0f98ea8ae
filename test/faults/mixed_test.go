package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

// Clients write down what they were told while servers are killed, stopped, cut
// off, slowed and emptied, their machines fail, members join, leave, are replaced
// and change their roles, in a random order. One server is an observer from the
// beginning and suffers what the others do; at the end two servers join, which
// then must hold what the others hold.
func TestPromisesHoldUnderRandomFaults(t *testing.T) {
	for i, store := range []string{"wal", "bolt"} {
		if only := os.Getenv("FAULTS_STORE"); only != "" && only != store {
			continue
		}
		t.Run(store, func(t *testing.T) {
			seed := seedOf(t, 1)
			o := options{servers: serversOf(t, 3), observers: 1, crooked: true, store: store, members: byFiles}
			if (seed+uint64(i))%2 == 1 {
				o.members = byReconfig
			}
			smallDisk(t, &o, int(seed%uint64(o.servers))+1)
			t.Logf("repeat with FAULTS_SEED=%d FAULTS_STORE=%s FAULTS_SERVERS=%d; members change %v", seed, store, o.servers, o.members)
			w := newWorld(start(t, o), seed)
			w.prepare()
			w.startWorkers()
			r := &runner{world: w, rng: rand.New(rand.NewPCG(seed, 0))}
			r.weather()
			r.hurt(lengthOf(t, []time.Duration{30 * time.Second, 15 * time.Second}[i]), r.chosen(allFaults()))
			if !slices.Contains(w.e.ids, w.e.guests()[0]) {
				r.join(func() {})
			}
			w.finish()
		})
	}
}

// weather makes all links somewhat worse than good for a whole run, in half of
// the runs: each fault then meets messages that are late.
func (r *runner) weather() {
	l := link{}
	switch r.rng.IntN(4) {
	case 0:
		l.delay = time.Duration(1+r.rng.IntN(10)) * time.Millisecond
	case 1:
		l.lossEvery = 20 + r.rng.IntN(80)
	}
	r.e.net.setWeather(l)
	r.e.t.Logf("each piece takes %v longer, and 1 of %d is lost", l.delay, l.lossEvery)
}

// smallDisk gives one server a disk that can be filled, if this machine allows
// it; if not, that is a sub-test's skip, and the run goes on without. The crooked
// machines' disks can be full everywhere.
func smallDisk(t *testing.T, o *options, id int) {
	t.Run("with a small disk", func(t *testing.T) {
		if err := mount(t.TempDir()); err != nil {
			toolchain.Denied(t, fmt.Sprintf("a tmpfs of its own: %v", err), toolchain.Holds(toolchain.SysAdmin))
		}
	})
	if mount(t.TempDir()) != nil {
		return
	}
	o.smallDisk, o.smallDiskAt = id, peer.Disk(t, 512)
	o.dataDir = func(server int) string {
		if server != id {
			return ""
		}
		return filepath.Join(o.smallDiskAt, "data")
	}
}

// chosen are the faults that an ensemble can suffer, with FAULTS_ONLY those
// whose names that expression matches.
func (r *runner) chosen(from []fault) (chosen []fault) {
	only, err := regexp.Compile(os.Getenv("FAULTS_ONLY"))
	if err != nil {
		r.e.t.Fatalf("FAULTS_ONLY: %v", err)
	}
	for _, f := range from {
		if r.e.has(f.needs) && only.MatchString(f.name) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}
