// Package proto is the ZooKeeper wire vocabulary: jute primitives and records,
// frames, op codes, error codes, Stat, ACL, ids, path rules, and the envelope
// in which a command travels through the Raft log.
//
// It owns bytes and their meaning only. It imports the standard library and
// no other room, and knows neither sockets nor the tree.
package proto
