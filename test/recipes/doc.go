// Package recipes holds the tutorials that ZooKeeper's users start from, as
// programs with Apache's Java client in the folder java, and runs each against
// the real server and against zooraft. A program checks itself and ends with
// an error when something is not as the tutorial says. The package owns the
// programs; it may not know a server.
package recipes
