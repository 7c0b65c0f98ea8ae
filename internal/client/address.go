package client

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// DefaultPort is the port of a server that is named without one (ZooKeeper's).
const DefaultPort = "2181"

// ErrAddress is returned when a connect string names no server or a wrong
// chroot.
var ErrAddress = errors.New("client: bad connect string")

// ParseConnectString splits host:port,host:port/chroot as ZooKeeper's clients
// do. The chroot is empty when there is none; IPv6 addresses stand in brackets.
func ParseConnectString(text string) (servers []string, chroot string, err error) {
	if slash := strings.IndexByte(text, '/'); slash >= 0 {
		text, chroot = text[:slash], text[slash:]
	}
	if chroot == "/" {
		chroot = ""
	}
	if chroot != "" && !proto.ValidPath(chroot) {
		return nil, "", fmt.Errorf("%w: chroot %s is no path", ErrAddress, chroot)
	}
	for _, server := range strings.Split(text, ",") {
		server = strings.TrimSpace(server)
		if server == "" {
			continue
		}
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = strings.Trim(server, "[]"), DefaultPort
		}
		if port == "" {
			port = DefaultPort
		}
		servers = append(servers, net.JoinHostPort(host, port))
	}
	if len(servers) == 0 {
		return nil, "", fmt.Errorf("%w: no server in %q", ErrAddress, text)
	}
	return servers, chroot, nil
}
