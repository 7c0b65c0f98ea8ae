// Package shell is the command line for people and scripts: every command of
// ZooKeeper's zkCli.sh with its flags and its output, and those beyond it.
//
// It owns the commands, their words, their output as text and as JSON, the
// exit codes, the interactive line and the file of named clusters. It speaks to
// servers through client alone, and to what the client protocol cannot tell
// through the four-letter words. It may not know cobra, nor whether it runs in
// a process of its own: standard streams, environment and terminal are handed
// in.
package shell
