// Package client is a small pipelined ZooKeeper client for our own tools and
// tests.
//
// It owns one connection and one session: the handshake, requests in order,
// watch events, pings. It may import proto and nothing else of ours; it does
// not reconnect, replay watches or choose among servers, because its users want
// to see exactly what one server does on one connection.
package client
