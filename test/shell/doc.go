// Package shell tests `zooraft shell` as a program: against the real zkCli.sh,
// against Apache's server and ours, and at a terminal.
package shell
