package config

import (
	"strings"
	"time"
)

// Admin is the HTTP admin server.
type Admin struct {
	// Enabled starts it. Default true (Apache 3.9's admin.enableServer).
	Enabled bool
	// Host is the address to bind. Default 0.0.0.0 with a zoo.cfg (Apache's
	// admin.serverAddress), 127.0.0.1 without.
	Host string
	// Port is 0 to 65535. Default 8080 (Apache's admin.serverPort).
	Port int
	// CommandURL is the path that the commands are below. Default /commands
	// (Apache's admin.commandURL).
	CommandURL string
	// IdleTimeout closes an idle HTTP connection. Default 30 s (Apache's
	// admin.idleTimeout).
	IdleTimeout time.Duration
	// Snapshot allows the snapshot command. Default true (Apache's
	// admin.snapshot.enabled).
	Snapshot bool
	// Restore allows the restore command. Default true (Apache's
	// admin.restore.enabled).
	Restore bool
	// RateLimiterInterval is the least time between two snapshots or restores.
	// Default 5 min (Apache's admin.rateLimiterIntervalInMS).
	RateLimiterInterval time.Duration
}

// DefaultAdmin returns Apache's defaults.
func DefaultAdmin() Admin {
	return Admin{
		Enabled:             true,
		Host:                "0.0.0.0",
		Port:                8080,
		CommandURL:          "/commands",
		IdleTimeout:         30 * time.Second,
		Snapshot:            true,
		Restore:             true,
		RateLimiterInterval: 5 * time.Minute,
	}
}

// Validate checks relations and ranges.
func (a Admin) Validate() error {
	switch {
	case !a.Enabled:
		return nil
	case a.Port < 0 || a.Port > 65535:
		return invalid("admin.serverPort", "%d is not a port from 0 to 65535", a.Port)
	case !strings.HasPrefix(a.CommandURL, "/"):
		return invalid("admin.commandURL", "%q does not start with /", a.CommandURL)
	}
	return nil
}
