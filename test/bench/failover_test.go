package bench

import (
	"context"
	"os"
	"testing"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

func failoverOptions(b *testing.B) bench.FailoverOptions {
	o := bench.DefaultFailoverOptions()
	o.Dir = b.TempDir()
	o.Systems = []bench.System{
		{Name: "zooraft", Command: []string{peer.ZooraftBinary(b, false), "serve", "-Dzookeeper.raftLogStore=" + *logStore}},
		{Name: "apache", Command: []string{"java", "-Xmx4g", "-Dzookeeper.admin.enableServer=false", "-cp", peer.ApacheClasspath(b), peer.ApacheServerClass}},
	}
	return o
}

// BenchmarkFailover kills leaders of both ensembles by turns; `make failover`
// runs it.
func BenchmarkFailover(b *testing.B) {
	results, err := bench.Failover(context.Background(), failoverOptions(b), os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	if err := bench.WriteFailover(os.Stderr, results); err != nil {
		b.Fatal(err)
	}
}
