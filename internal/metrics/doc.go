// Package metrics owns the measurements of a server: counters, gauges,
// summaries, and sets of them by key, kept under the names that Apache
// ZooKeeper 3.9.5 uses.
//
// A room declares one struct of metrics made from a Registry, one sentence of
// help each. Updating is atomic operations only, so that it may happen on the
// request path and under any lock. Reading (mntr, JSON, a Prometheus exporter)
// walks the registry.
//
// It imports the standard library only and knows no room.
package metrics
