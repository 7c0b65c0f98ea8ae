package config

import "time"

// Listen says where clients connect.
type Listen struct {
	// Enabled is false when neither clientPort nor a server line names a port.
	Enabled bool
	// Host is the address or name to bind, without a port; empty means every
	// address. Default empty with a zoo.cfg (Apache), 127.0.0.1 without.
	Host string
	// Port is the client port, 0 to 65535; 0 takes a free one. No default with
	// a zoo.cfg, 2181 without.
	Port int
	// PortFile is a path to which the port is written once the server listens,
	// or empty. Ours.
	PortFile string
	// MaxConnectionsPerHost bounds the connections from one address; 0 or less
	// means no bound. Default 60 (Apache's maxClientCnxns).
	MaxConnectionsPerHost int
	// MaxConnections bounds all connections; 0 means no bound. Default 0
	// (Apache's maxCnxns).
	MaxConnections int
	// SessionlessTimeout is how long a connection may stay without a session.
	// Default 10 s (Apache's nio.sessionlessCnxnTimeout).
	SessionlessTimeout time.Duration
	// KeepAlive turns on TCP keep-alive for client connections. Default false
	// (Apache's clientTcpKeepAlive).
	KeepAlive bool
}

// DefaultListen returns Apache's defaults.
func DefaultListen() Listen {
	return Listen{MaxConnectionsPerHost: 60, SessionlessTimeout: 10 * time.Second}
}

// Validate checks relations and ranges.
func (l Listen) Validate() error {
	switch {
	case !l.Enabled && l.Host != "":
		return invalid("clientPortAddress", "is set but clientPort is not")
	case !l.Enabled:
		return invalid("clientPort", "is not set, so no client could connect")
	case l.Port < 0 || l.Port > 65535:
		return invalid("clientPort", "%d is not a port from 0 to 65535", l.Port)
	case l.SessionlessTimeout <= 0:
		return invalid("nio.sessionlessCnxnTimeout", "%d must be above 0 ms", l.SessionlessTimeout.Milliseconds())
	}
	return nil
}
