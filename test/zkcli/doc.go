// Package zkcli types commands into shells that read them line by line: the
// zkCli.sh of Apache ZooKeeper 3.9.5, and ours, which has its commands. It owns
// the form of their scripts, how the end of an answer is known, and the masking
// of what differs between any two servers. It may not judge what a shell says:
// the suites that import it compare.
package zkcli
