package oracle

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var (
	flagSeed   = flag.Uint64("seed", 0, "the first seed; 0 takes one from the clock")
	flagSeeds  = flag.Int("seeds", defaultSeeds(), "how many seeds")
	flagOps    = flag.Int("ops", 300, "operations of each seed")
	flagConfig = flag.String("config", "", "only this configuration")
	flagShrink = flag.Duration("shrink", 60*time.Second, "how long a failing seed may be shrunk")
)

// configs are the server configurations that seeds run under, in turn: seed n
// takes number n modulo their count, so that a seed alone replays.
var configs = []string{
	"",
	"enforceQuota=true",
	"reconfigEnabled=true -Dzookeeper.extendedTypesEnabled=false",
	"skipACL=yes",
}

// Any mix of operations gets the same answers from both servers.
func TestSeedsGetTheSameAnswers(t *testing.T) {
	first := *flagSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano() % 1e9)
	}
	fmt.Printf("seeds %d to %d, %d operations each\n", first, first+uint64(*flagSeeds)-1, *flagOps)
	var used Use
	var kinds Use
	t.Run("with", func(t *testing.T) {
		for i, config := range configs {
			if *flagConfig != "" && config != *flagConfig {
				continue
			}
			var seeds []uint64
			for s := first; s < first+uint64(*flagSeeds); s++ {
				if int(s%uint64(len(configs))) == i {
					seeds = append(seeds, s)
				}
			}
			if len(seeds) > 0 {
				t.Run(name(config), func(t *testing.T) {
					t.Parallel()
					runSeeds(t, config, seeds, &used, &kinds)
				})
			}
		}
	})
	PrintUse(os.Stdout, Rows, &used)
	for _, k := range sortedKeys(kinds.times) {
		fmt.Printf("%6d differences of kind %s\n", kinds.times[k], k)
	}
}

func runSeeds(t *testing.T, config string, seeds []uint64, used, kinds *Use) {
	pair := NewPair(t, config, *flagOurs)
	defer pair.Close()
	for _, seed := range seeds {
		script := Generate(seed, *flagOps, config)
		d, err := pair.Run(script, used)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			pair.Again()
			continue
		}
		if d == nil {
			continue
		}
		if kinds.add(d.Kind) > 1 {
			t.Errorf("seed %d: another difference of kind %s", seed, d.Kind)
			pair.Again()
			continue
		}
		short, sd := pair.Shrink(script, d, *flagShrink)
		t.Errorf("seed %d (replay: go test ./test/oracle -run Seeds -seed %d -seeds 1 -ops %d)\n%v\nshrunk to\n%s",
			seed, seed, *flagOps, sd, short)
		pair.Again()
	}
}

// defaultSeeds is 200 with CI=true in the environment, as issue 2 demands, and
// fewer for a run by hand.
func defaultSeeds() int {
	if os.Getenv("CI") == "true" {
		return 200
	}
	return 20
}
