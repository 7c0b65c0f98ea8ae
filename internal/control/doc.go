// Package control is the control port of `zooraft serve --ephemeral`: package
// zktest's faults as HTTP and JSON, so that tests in any language have what tests
// in Go have, and beside them what the local admin channel answers.
//
// It owns the port, the shapes of requests and answers, and who may ask. It does
// nothing that zktest does not do: each endpoint is one call.
package control
