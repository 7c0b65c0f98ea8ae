// Package zktest runs real ZooKeeper-compatible servers inside tests, in
// milliseconds and without a JVM, and breaks them on demand.
//
//	srv := zktest.NewServer(t)
//	conn, _, err := zk.Connect([]string{srv.Addr()}, time.Second)
//
// NewServer gives one server, NewEnsemble several that elect a leader over
// loopback. They are zooraft's own: the same code that serves in production,
// with its Raft log in memory unless OnDisk is asked for. Ports are always free
// ones and stay the same over Kill and Restart. Nothing is global, no signal is
// handled, and when the test ends, nothing is left.
//
// Faults are calls: ExpireSession, DropConnection, Kill and Restart, Pause and
// Resume, Partition and Heal, MoveLeader, and Inject for the n-th request that
// matches. With ManualClock time stands still until Advance moves it.
// docs/testing.md shows what each is good for.
//
// The package owns the wiring of such servers and their faults. It may not
// reach around internal/server to what that is made of.
package zktest
