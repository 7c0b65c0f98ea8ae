package config

// The metrics providers that Apache ships.
const (
	defaultProvider    = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider"
	nullProvider       = "org.apache.zookeeper.metrics.impl.NullMetricsProvider"
	prometheusProvider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
)

// Metrics is the Prometheus endpoint.
type Metrics struct {
	// Provider is Apache's class name. Default DefaultMetricsProvider: metrics
	// are kept and shown by mntr only (metricsProvider.className).
	Provider string
	// Host is the address to bind. Default 0.0.0.0 (metricsProvider.httpHost).
	Host string
	// Port is 0 to 65535. Default 7000 (Apache 3.9's metricsProvider.httpPort).
	Port int
	// ExportProcess adds the metrics of the process and its runtime. Default
	// true (metricsProvider.exportJvmInfo).
	ExportProcess bool
}

// DefaultMetrics returns Apache's defaults.
func DefaultMetrics() Metrics {
	return Metrics{Provider: defaultProvider, Host: "0.0.0.0", Port: 7000, ExportProcess: true}
}

// Prometheus reports whether the endpoint is on.
func (m Metrics) Prometheus() bool { return m.Provider == prometheusProvider }

// Validate checks relations and ranges.
func (m Metrics) Validate() error {
	switch m.Provider {
	case defaultProvider, nullProvider, prometheusProvider:
	default:
		return invalid("metricsProvider.className", "%q is not one of Apache's providers, %s, %s or %s",
			m.Provider, defaultProvider, prometheusProvider, nullProvider)
	}
	if m.Port < 0 || m.Port > 65535 {
		return invalid("metricsProvider.httpPort", "%d is not a port from 0 to 65535", m.Port)
	}
	return nil
}
