package zooraft

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/zooraft/zooraft/internal/metrics"
)

// collector hands a server's numbers to Prometheus in the shape of Apache's
// endpoint: names without zk_, counters as they are, summaries as count, sum and,
// where there are any, quantiles; the key of a set is the label key.
type collector struct{ registry *metrics.Registry }

var _ prometheus.Collector = (*collector)(nil)

func descOf(d metrics.Desc) *prometheus.Desc {
	var labels []string
	if d.Keyed {
		labels = []string{"key"}
	}
	return prometheus.NewDesc(d.Name, d.Help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.registry.Descs() {
		out <- descOf(d)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, family := range c.registry.Gather() {
		desc := descOf(family.Desc)
		for _, sample := range family.Samples {
			var labels []string
			if family.Keyed {
				labels = []string{sample.Key}
			}
			out <- metricOf(desc, family.Kind, sample, labels)
		}
	}
}

func metricOf(desc *prometheus.Desc, kind metrics.Kind, s metrics.Sample, labels []string) prometheus.Metric {
	switch kind {
	case metrics.KindGauge:
		return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.Value.Float64(), labels...)
	case metrics.KindCounter:
		return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.Value.Float64(), labels...)
	}
	var quantiles map[float64]float64
	if kind == metrics.KindAdvancedSummary {
		q := s.Summary.Quantiles
		quantiles = map[float64]float64{0.5: float64(q.P50), 0.95: float64(q.P95), 0.99: float64(q.P99), 0.999: float64(q.P999)}
	}
	return prometheus.MustNewConstSummary(desc, uint64(s.Summary.Count), float64(s.Summary.Sum), quantiles, labels...)
}
