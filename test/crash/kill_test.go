package crash

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "seed of the random choices; 0 takes a new one")
	roundsFlag = flag.Int("rounds", 8, "how often each log store is killed")
)

func TestMain(m *testing.M) { os.Exit(toolchain.Main(m)) }

// seed returns the seed of this run and prints it, so that a failure can be
// replayed.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := *seedFlag
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay with -seed %d", s)
	return s
}

// eachLogStore runs a test with both log stores.
func eachLogStore(t *testing.T, test func(t *testing.T, config map[string]string)) {
	for _, store := range []string{"wal", "bolt"} {
		t.Run(store, func(t *testing.T) {
			test(t, map[string]string{"raftLogStore": store, "maxClientCnxns": "0"})
		})
	}
}

// dial connects, however long the server takes to serve.
func dial(t *testing.T, s *peer.Server) *client.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	c, err := client.Dial(ctx, s.Address, client.Options{})
	if err != nil {
		t.Fatalf("dial: %v\n%s", err, s.Log())
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		_ = c.Close(ctx) // the server may have been killed
	})
	return c
}

// writeUntil lets the writers write, each over its own connection, until stop
// has ended the connections.
func writeUntil(t *testing.T, s *peer.Server, writers []*writer, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range writers {
		c := dial(t, s)
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := w.run(ctx, c); code(err) != 0 {
				t.Errorf("writer %d: %v", w.id, err)
			}
		}()
	}
	stop()
	wg.Wait()
}

func checkAll(t *testing.T, s *peer.Server, writers []*writer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	c := dial(t, s)
	for _, w := range writers {
		w.check(ctx, t, c)
	}
}

func newWriters(n int, seed uint64) []*writer {
	writers := make([]*writer, n)
	for i := range writers {
		writers[i] = newWriter(i, seed)
	}
	return writers
}

// The process is killed at random moments, among them those of snapshots; each
// start has every acknowledged write.
func TestKillNineAtAnyMomentLosesNoAcknowledgedWrite(t *testing.T) {
	eachLogStore(t, func(t *testing.T, config map[string]string) {
		seed := seed(t)
		rng := rand.New(rand.NewPCG(seed, 0))
		config["snapCount"] = "150" // a snapshot every few milliseconds
		config["preAllocSize"] = "256"
		s := peer.StartZooraft(t, peer.Options{Config: config})
		writers := newWriters(6, seed)
		for range *roundsFlag {
			life := time.Duration(20+rng.IntN(400)) * time.Millisecond
			writeUntil(t, s, writers, func() {
				<-time.After(life)
				s.Kill(t)
			})
			s.Start(t)
			checkAll(t, s, writers)
			if t.Failed() {
				t.FailNow()
			}
		}
		total := 0
		for _, w := range writers {
			total += w.acked
		}
		if total == 0 {
			t.Fatal("no write was ever acknowledged: the test proved nothing")
		}
		t.Logf("%d acknowledged writes over %d kills", total, *roundsFlag)
	})
}
