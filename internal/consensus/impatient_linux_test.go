package consensus

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is what a connection's option says.
func userTimeout(t *testing.T, conn net.Conn) time.Duration {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var millis int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		millis, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return time.Duration(millis) * time.Millisecond
}

// Otherwise a network that drops everything without a word costs an election
// although another one is whole.
func TestAConnectionToAServerWithAnotherAddressBreaksBeforeAnElection(t *testing.T) {
	servers, _, _, _ := twoRoads(t)
	leaderOf(t, servers)
	asks := servers[0]
	for _, c := range []struct {
		address string
		want    time.Duration
	}{
		{asks.config.Peers[1].Address, asks.config.ElectionTimeout / 2},
		{addressesOf(asks.config.Peers[1].Address)[1], 0},
	} {
		conn, _, err := asks.greet(kindProbe, "2-0", c.address, helloTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if got := userTimeout(t, conn); got != c.want {
			t.Errorf("a connection to %s breaks after %v without an acknowledgement, want %v", c.address, got, c.want)
		}
		_ = conn.Close()
	}
}
