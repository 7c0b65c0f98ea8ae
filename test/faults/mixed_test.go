package faults

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// Clients write down what they were told while servers are killed, stopped, cut
// off, slowed and emptied in a random order.
func TestPromisesHoldUnderRandomFaults(t *testing.T) {
	seed := seedOf(t, 1)
	t.Logf("repeat with FAULTS_SEED=%d", seed)
	w := newWorld(start(t, options{servers: serversOf(t, 3)}), seed)
	w.prepare()
	w.startWorkers()
	r := &runner{world: w, rng: rand.New(rand.NewPCG(seed, 0))}
	var chosen []fault
	for _, f := range faults() {
		if strings.Contains(f.name, os.Getenv("FAULTS_ONLY")) {
			chosen = append(chosen, f)
		}
	}
	r.hurt(lengthOf(t, 30*time.Second), chosen)
	w.finish()
}
