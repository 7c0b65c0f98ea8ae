//go:build !unix

package server

// send writes nothing: a goroutine of the outbox does.
func (w *promptWriter) send(uintptr) {}
