// Package server is where clients arrive: listener, handshake, the request
// queue and outbox of each connection, the serving gate, and the duties of a
// leader (expirer, janitor). It assembles the other rooms into a running
// server.
//
// It changes the state only by proposing, and does not import hashicorp/raft.
package server
