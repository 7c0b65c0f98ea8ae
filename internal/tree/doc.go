// Package tree is the znode tree: nodes, versions, ACL evaluation, the
// indexes of ephemeral, container and TTL nodes, quotas, the digest, and
// frozen views for snapshots.
//
// It owns what a logged command does to the data and what a reader may see of
// it. It is a pure state machine: it holds no lock, starts no goroutine, reads
// no clock and no configuration, writes no log, and knows neither watches nor
// session liveness nor Raft. The caller serialises writes and keeps them apart
// from reads; only a View may be walked while the tree is written. Apply is
// total: any bytes give a result.
//
// DESIGN.md tells the layout and the designs that were refused.
package tree
