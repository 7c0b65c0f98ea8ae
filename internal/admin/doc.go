// Package admin is what an operator sees: four-letter words, the local admin
// channel on a Unix socket, and health.
//
// Every word is gathered into a struct first and printed afterwards, so that
// the text of the four-letter word and the JSON of an admin server come from
// the same facts. Text shapes are those of Apache ZooKeeper 3.9.5.
//
// It owns the shapes, the whitelist and the socket. It changes no state,
// is never called from the request path, and learns about the server only
// through the Server interface that it declares.
package admin
