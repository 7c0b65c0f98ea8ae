// Package client is a small pipelined ZooKeeper client for our own tools and
// tests.
//
// It owns the client's side of the protocol: the handshake, requests in order,
// watch events, pings. It may import proto and nothing else of ours. A Conn is
// one connection with one session and does not reconnect, because most of its
// users want to see exactly what one server does on one connection. A Session,
// which the shell uses, goes over several servers: it connects again, sets its
// watches and identities again, and lives below a chroot.
package client
