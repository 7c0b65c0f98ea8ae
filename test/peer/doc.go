// Package peer runs servers as processes for the suites under test: the real
// Apache ZooKeeper 3.9.5, fetched from Maven by name and version, and zooraft,
// built from this repository. It also has a raw connection that sends and
// receives frames and nothing else.
//
// It owns the processes: each listens on loopback, is ready when Start
// returns, and is gone when its test, or the test binary, ends. It may not
// know what a suite does with them.
package peer
