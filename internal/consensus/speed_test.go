package consensus

import (
	"testing"
	"time"
)

func BenchmarkOpenUntilFirstWriteApplied(b *testing.B) {
	var total time.Duration
	for range b.N {
		c := testConfig(b.TempDir())
		began := time.Now()
		n := start(b, c)
		n.write(b, "first")
		total += time.Since(began)
		_ = n.Close()
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/start")
}
