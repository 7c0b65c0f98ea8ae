package config

import (
	"strings"
	"time"
)

// parserKeys are the settings that Apache's parser of zoo.cfg knows by name
// and that have an effect here. A -D does not reach them.
func parserKeys() []key {
	snapRetain := strictInt("autopurge.snapRetainCount",
		"Snapshots kept, at least 3. Older ones go after each new one.",
		func(c *Config) *int { return &c.Storage.SnapRetainCount })
	set := snapRetain.set
	snapRetain.set = func(c *Config, raw string) error {
		if err := set(c, raw); err != nil {
			return err
		}
		if c.Storage.SnapRetainCount < minSnapRetainCount {
			c.Storage.SnapRetainCount = minSnapRetainCount
			return fallbackf("%s is too few; as in Apache it becomes %d", raw, minSnapRetainCount)
		}
		return nil
	}

	keys := []key{
		text("dataDir", "Directory of the snapshots and of myid; ours are in zooraft/ below it. Required.",
			func(c *Config) *string { return &c.Storage.DataDir }),
		text("dataLogDir", "Directory of the log; ours is in zooraft/ below it. Default: dataDir.",
			func(c *Config) *string { return &c.Storage.LogDir }),
		clientPortKey(),
		text("clientPortAddress", "Address to bind; every address when left out.",
			func(c *Config) *string { return &c.Listen.Host }),
		strictMillis("tickTime", "Unit of the other times and width of an expiry bucket; within 1 and 2 s also the election timeout.",
			func(c *Config) *time.Duration { return &c.Session.TickTime }),
		strictInt("maxClientCnxns", "Connections from one address; 0 means no bound.",
			func(c *Config) *int { return &c.Listen.MaxConnectionsPerHost }),
		sessionLimit("minSessionTimeout", "Shortest session timeout. Default: 2 ticks.",
			func(c *Config) *time.Duration { return &c.Session.MinTimeout }),
		sessionLimit("maxSessionTimeout", "Longest session timeout. Default: 20 ticks.",
			func(c *Config) *time.Duration { return &c.Session.MaxTimeout }),
		snapRetain,
		strictBool("standaloneEnabled", "Makes one server line a server alone.",
			func(c *Config) *bool { return &c.Ensemble.StandaloneEnabled }),
		strictBool("reconfigEnabled", "Allows reconfig, and lets the servers rewrite their configuration files. A server alone only answers with another error.",
			func(c *Config) *bool { return &c.Ensemble.ReconfigEnabled }),
		strictInt("initLimit", "Ticks that a change of the membership may take.",
			func(c *Config) *int { return &c.Ensemble.InitLimit }),
		strictBool("localSessionsEnabled", "Keeps sessions out of the log: each is known to the server that made it only. For an ensemble.",
			func(c *Config) *bool { return &c.Session.Local }),
		strictBool("localSessionsUpgradingEnabled", "Makes a local session a global one when it creates an ephemeral node, instead of refusing that.",
			func(c *Config) *bool { return &c.Session.LocalUpgrade }),
		strictInt("syncLimit", "Ticks without the leader after which a server of an ensemble drops its clients; a leader whose disk hangs gives way after half of them.",
			func(c *Config) *int { return &c.Ensemble.SyncLimit }),
		strictBool("quorumListenOnAllIPs", "Binds the peer port on every address.",
			func(c *Config) *bool { return &c.Ensemble.ListenOnAllIPs }),
		text("dynamicConfigFile", "File that holds the server lines.",
			func(c *Config) *string { return &c.Ensemble.DynamicFile }),
		{
			name: "peerType", note: "The role in the server lines counts, as with Apache's.", effect: NoEffect,
			set: func(c *Config, raw string) error { return setPeerType(&c.Ensemble, raw) },
			show: func(c *Config) string {
				if c.Ensemble.Observer {
					return "observer"
				}
				return "participant"
			},
		},
		strictBool("multiAddress.enabled", "Allows several addresses, with a bar between, in a server line. The others dial the one that last answered, then the rest.",
			func(c *Config) *bool { return &c.Ensemble.MultiAddress }).in(inBoth),
		memberLines("server.*", "Membership. One line runs a server alone; its client port counts."),
		memberLines("group.*", "Hierarchical quorum. Refused: Raft's quorum is a majority of servers."),
		memberLines("weight.*", "Hierarchical quorum. Refused: Raft's quorum is a majority of servers."),
	}
	return append(keys, metricsKeys()...)
}

// clientPortKey also notes that there is a port at all.
func clientPortKey() key {
	k := strictInt("clientPort", "Client port; 0 takes a free one. Required, here or in the server line.",
		func(c *Config) *int { return &c.Listen.Port })
	set := k.set
	k.set = func(c *Config, raw string) error {
		err := set(c, raw)
		c.Listen.Enabled = err == nil
		return err
	}
	show := k.show
	k.show = func(c *Config) string {
		if !c.Listen.Enabled {
			return ""
		}
		return show(c)
	}
	return k
}

// sessionLimit is a time where -1 means that it follows the tick.
func sessionLimit(name, note string, field func(*Config) *time.Duration) key {
	return strictMillis(name, note, field)
}

// memberLines are read by loadMembers, not by a setter.
func memberLines(name, note string) key {
	return key{name: name, note: note, effect: Applied}
}

// metricsKeys configure the Prometheus endpoint. Apache hands them to the
// provider, which stops the start when a number cannot be read; with another
// provider they mean nothing.
func metricsKeys() []key {
	port := strictInt("metricsProvider.httpPort", "",
		func(c *Config) *int { return &c.Metrics.Port })
	setPort := port.set
	port.set = func(c *Config, raw string) error {
		if err := setPort(c, raw); err != nil && c.Metrics.Prometheus() {
			return err
		}
		return nil // no other provider looks at it
	}
	export := key{
		name: "metricsProvider.exportJvmInfo", effect: Applied,
		set: func(c *Config, raw string) error {
			c.Metrics.ExportProcess = strings.EqualFold(raw, "true")
			return nil
		},
		show: func(c *Config) string {
			if c.Metrics.ExportProcess {
				return "true"
			}
			return "false"
		},
	}
	keys := []key{
		text("metricsProvider.className", "", func(c *Config) *string { return &c.Metrics.Provider }),
		text("metricsProvider.httpHost", "", func(c *Config) *string { return &c.Metrics.Host }),
		port, export,
	}
	for i := range keys {
		keys[i] = keys[i].idle("The Prometheus endpoint is not in this version; the word mntr shows the metrics.",
			func(raw string) bool { return raw == prometheusProvider })
	}
	return keys
}
