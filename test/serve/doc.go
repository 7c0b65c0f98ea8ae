// Package serve holds the tests of the command `zooraft serve` as an operator
// meets it: arguments, files, refusals, exit codes, signals.
package serve
