package bench

import (
	"context"
	"os"
	"testing"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

// BenchmarkFailover kills leaders of both ensembles by turns; `make failover`
// runs it.
func BenchmarkFailover(b *testing.B) {
	o := bench.DefaultFailoverOptions()
	o.Dir = b.TempDir()
	o.Systems = []bench.System{
		{Name: "zooraft", Command: []string{peer.ZooraftBinary(b, false), "serve", "--allow-unprotected"}},
		{Name: "apache", Command: []string{"java", "-Dzookeeper.admin.enableServer=false", "-cp", peer.ApacheClasspath(b), peer.ApacheServerClass}},
	}
	results, err := bench.Failover(context.Background(), o, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	if err := bench.WriteFailover(os.Stderr, results); err != nil {
		b.Fatal(err)
	}
}
