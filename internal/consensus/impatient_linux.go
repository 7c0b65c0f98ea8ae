package consensus

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// impatient lets a connection break when what was sent has not been acknowledged
// for so long, as when the network of that address is cut and drops everything
// without a word. Without it a leader would learn of that after raftRPCTimeout,
// long after its followers have elected another one. It is for connections to
// servers that have another address.
func impatient(conn net.Conn, limit time.Duration) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return // a test's
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	// Fails only where the kernel lacks it; then the timeouts above remain.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
