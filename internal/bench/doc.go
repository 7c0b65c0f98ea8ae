// Package bench puts load on a ZooKeeper, any one that speaks the protocol, and
// measures what its clients see.
//
// It owns the workloads and the arithmetic of their results. It knows servers
// only by their address, so that ours and others are measured by the same code,
// and it may import client and proto only. Failover alone starts servers, as
// processes of whatever command it is given, because it has to kill them.
//
// Load is closed-loop unless a rate is given: each connection keeps a fixed
// number of requests in work and sends the next one when an answer comes.
// Throughput and latency are then two sides of one measurement (requests in
// work = throughput × mean latency). With a rate it is open-loop: requests are
// sent by the clock, and a latency counts from when its request was due, so that
// a server that stands still is not spared the requests that it kept from being
// sent (coordinated omission).
//
// The client must not be what is measured. One goroutine serves a connection,
// takes all answers that have come, and writes what follows them in one piece;
// nothing is allocated for a request. Every result says what part of the machine
// the client used.
package bench
