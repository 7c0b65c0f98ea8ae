//go:build !linux

package consensus

import (
	"net"
	"time"
)

// impatient does nothing where there is no way to ask for it; see Linux's.
func impatient(net.Conn, time.Duration) {}
