// Package clients runs other people's ZooKeeper clients, unmodified, against
// Apache ZooKeeper 3.9.5 and against zooraft in the same job, and compares the
// two by test name. It owns the suites, the way each is fetched by a pinned
// version into the repository's build folder, and the comparison. It may not
// know how either server works, and holds no list of tests that are allowed to
// fail: what fails on Apache too is found by running.
//
// The rules, all in report.go:
//
//   - a test that passes on Apache passes on zooraft, with either log store;
//   - zooraft runs every test that ran on Apache;
//   - a test that needs what is not built yet waits for it. Each suite says in
//     code by which mark it knows such a test; it is counted and printed with the
//     reason, never dropped;
//   - a test that fails is run again by itself on the same server, since many of
//     these suites have timing of their own; the table says how often;
//   - a test that needs several servers has three of the same kind. The Go
//     client's suite and Curator's start them themselves; of kazoo's, what fails
//     on one server is run on three.
package clients
