// Package bench puts load on a ZooKeeper, any one that speaks the protocol, and
// measures what its clients see.
//
// It owns the workloads and the arithmetic of their results. It knows servers
// only by their address, so that ours and others are measured by the same code,
// and it may import client and proto only. Failover alone starts servers, as
// processes of whatever command it is given, because it has to kill them.
//
// Load is closed-loop: each connection keeps a fixed number of requests in work
// and sends the next one when an answer comes. Throughput and latency are
// therefore two sides of one measurement (requests in work = throughput ×
// mean latency), and a latency says what a client with that many requests in
// work sees, not what one would see at some given rate.
package bench
