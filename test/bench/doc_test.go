// Package bench measures zooraft beside the real ZooKeeper: both on this
// machine, by turns, with the same load from the same client, so that a ratio
// says something even where an absolute figure does not.
//
// Run it with make bench. It is no test of the product: no figure passes or
// fails.
package bench
