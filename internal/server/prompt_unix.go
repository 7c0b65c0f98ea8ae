//go:build unix

package server

import "syscall"

// send writes buf to a socket as far as that takes it at once: sockets of the net
// package do not block. Whoever meets an error later tells of it.
func (w *promptWriter) send(fd uintptr) {
	n, err := syscall.Write(int(fd), w.buf)
	if err == nil {
		w.n = n
	}
}
