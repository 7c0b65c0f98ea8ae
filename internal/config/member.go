package config

import (
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// Member is one server.N line.
type Member = proto.Member

// PeerAddress is one host with its quorum and election port.
type PeerAddress = proto.PeerAddress

// parseMember reads the right side of a server.N line.
func parseMember(id int64, text string, multiAddress bool) (Member, error) {
	m, err := proto.ParseMember(id, text, multiAddress)
	if err != nil {
		return m, invalid("", "%s", err.Error())
	}
	return m, nil
}

// split is Java's String.split: empty parts at the end do not count.
func split(text, separator string) []string {
	parts := strings.Split(text, separator)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil || port < 0 || port > 65535 {
		return 0, invalid("", "%q is not a port from 0 to 65535", text)
	}
	return int(port), nil
}
