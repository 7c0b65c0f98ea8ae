package faults

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// Clients write down what they were told while servers are killed, stopped, cut
// off, slowed and emptied, and their machines fail, in a random order.
func TestPromisesHoldUnderRandomFaults(t *testing.T) {
	for store, usual := range map[string]time.Duration{"wal": 30 * time.Second, "bolt": 15 * time.Second} {
		if only := os.Getenv("FAULTS_STORE"); only != "" && only != store {
			continue
		}
		t.Run(store, func(t *testing.T) {
			seed := seedOf(t, 1)
			t.Logf("repeat with FAULTS_SEED=%d FAULTS_STORE=%s", seed, store)
			w := newWorld(start(t, options{servers: serversOf(t, 3), crooked: true, store: store}), seed)
			w.prepare()
			w.startWorkers()
			r := &runner{world: w, rng: rand.New(rand.NewPCG(seed, 0))}
			r.hurt(lengthOf(t, usual), r.chosen(allFaults()))
			w.finish()
		})
	}
}

// chosen are the faults that an ensemble can suffer, with FAULTS_ONLY those
// whose name contains it.
func (r *runner) chosen(from []fault) (chosen []fault) {
	for _, f := range from {
		if r.e.has(f.needs) && strings.Contains(f.name, os.Getenv("FAULTS_ONLY")) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}
