package config

import (
	"net"
	"strings"
	"time"
)

// propertyKeys are the settings that Apache reads as Java system properties
// and that have an effect here.
func propertyKeys() []key {
	var keys []key
	keys = append(keys, limitKeys()...)
	keys = append(keys, storageKeys()...)
	keys = append(keys, throttleKeys()...)
	keys = append(keys, securityKeys()...)
	keys = append(keys, adminKeys()...)
	keys = append(keys, nodeKeys()...)
	return append(keys, ownKeys()...)
}

// named gives a key its full system property.
func (k key) named(property string) key { k.property = property; return k }

// manual adds the name that Apache's manual prints and Apache does not read.
func (k key) manual(name string) key { k.documented = name; return k }

func limitKeys() []key {
	frame := looseInt("jute.maxbuffer", "Largest request in bytes.",
		func(c *Config) *int { return &c.Limits.MaxFrame })
	set := frame.set
	frame.set = func(c *Config, raw string) error {
		err := set(c, raw)
		c.Limits.FrameSlack = max(c.Limits.MaxFrame, minFrameSlack)
		return err
	}
	frame.unit = "bytes"
	slack := looseInt("jute.maxbuffer.extrasize", "",
		func(c *Config) *int { return &c.Limits.FrameSlack }).atLeast(minFrameSlack, "1024")
	slack.unit = "bytes"
	large := looseInt("largeRequestMaxBytes", "Bound for the sum of large requests in work.",
		func(c *Config) *int { return &c.Limits.LargeRequestMaxBytes }).atLeast(1, "104857600")
	large.unit = "bytes"
	threshold := looseInt("largeRequestThreshold", "Size from which a request is large; -1 turns the bound off.",
		func(c *Config) *int { return &c.Limits.LargeRequestThreshold })
	threshold.unit = "bytes"
	setThreshold := threshold.set
	threshold.set = func(c *Config, raw string) error {
		if n, ok := decode(raw, 32); ok && (n == 0 || n < -1) {
			return fallbackf("%s must be -1 or above 0; as in Apache it becomes -1", raw)
		}
		return setThreshold(c, raw)
	}
	return []key{
		frame.named("jute.maxbuffer").in(byDefine),
		slack.idle("The limit of the whole request is always reached first.", nil),
		looseInt("globalOutstandingLimit", "Requests in work above which busy connections are not read.",
			func(c *Config) *int { return &c.Limits.GlobalOutstanding }),
		large, threshold,
		looseInt("maxCnxns", "Connections altogether; 0 means no bound.",
			func(c *Config) *int { return &c.Listen.MaxConnections }).atLeast(0, "0"),
		looseMillis("nio.sessionlessCnxnTimeout", "Time a connection may stay without a session.", 32,
			func(c *Config) *time.Duration { return &c.Listen.SessionlessTimeout }),
		looseBool("clientTcpKeepAlive", "TCP keep-alive on client connections.",
			func(c *Config) *bool { return &c.Listen.KeepAlive }),
		wordsKey(),
	}
}

func wordsKey() key {
	return key{
		name: "4lw.commands.whitelist", effect: Applied, place: inBoth,
		note: "Four-letter words that are answered, a comma list or *.",
		set: func(c *Config, raw string) error {
			words, unknown := parseWords(raw)
			c.Words = words
			if len(unknown) > 0 {
				return fallbackf("%s: no such word", strings.Join(unknown, ", "))
			}
			return nil
		},
		show: func(c *Config) string { return strings.Join(c.Words.Allowed, ", ") },
	}
}

func storageKeys() []key {
	compression := key{
		name: "snapshot.compression.method", effect: Applied, place: inBoth,
		set: func(c *Config, raw string) error {
			switch method := strings.ToLower(raw); method {
			case "", "gz", "snappy":
				c.Storage.SnapshotCompression = method
				return nil
			}
			return fallbackf("%q is neither gz nor snappy; as in Apache snapshots are not compressed", raw)
		},
		show: func(c *Config) string { return c.Storage.SnapshotCompression },
	}
	return []key{
		looseInt("snapCount", "Writes after which a snapshot is taken; each server draws from half of it to all of it.",
			func(c *Config) *int { return &c.Storage.SnapCount }).atLeast(2, "2"),
		looseKilobytes("snapSizeLimitInKb", "The same by growth of the log; 0 or less turns it off.",
			func(c *Config) *int64 { return &c.Storage.SnapSizeLimit }),
		preAllocKey(),
		looseMillis("fsync.warningthresholdms", "An append to the log that takes longer, with its sync, is logged and counted.", 64,
			func(c *Config) *time.Duration { return &c.Storage.FsyncWarningThreshold }),
		compression.idle("Snapshots are not compressed in this version.", func(raw string) bool {
			return strings.EqualFold(raw, "gz") || strings.EqualFold(raw, "snappy")
		}),
		looseBool("serializeLastProcessedZxid.enabled", "", func(c *Config) *bool { return &c.Storage.LastZxidInSnapshot }).
			idle("The last zxid always stands behind a snapshot.", nil),
		looseBool("digest.enabled", "", func(c *Config) *bool { return &c.Storage.Digest }).
			idle("A digest of the tree is always kept and written into snapshots.", nil),
		looseBool("datadir.autocreate", "Makes missing data directories.",
			func(c *Config) *bool { return &c.Storage.AutoCreate }),
	}
}

// preAllocKey is decimal only, unlike the other sizes.
func preAllocKey() key {
	k := looseKilobytes("preAllocSize", "Step by which a log file grows.",
		func(c *Config) *int64 { return &c.Storage.PreAllocSize })
	k.set = func(c *Config, raw string) error {
		n, err := parseLong(raw)
		if err != nil || n > 1<<40 {
			return fallbackf("%q is not a decimal integer; as in Apache it stays %d", raw, c.Storage.PreAllocSize/1024)
		}
		c.Storage.PreAllocSize = n * 1024
		return nil
	}
	return k
}

func throttleKeys() []key {
	return []key{
		looseInt("connection_throttle_tokens", "Token bucket for new connections; 0 turns it off.",
			func(c *Config) *int { return &c.Throttle.Tokens }).manual("connectionMaxTokens"),
		looseMillis("connection_throttle_fill_time", "Time between two fillings.", 32,
			func(c *Config) *time.Duration { return &c.Throttle.FillTime }).manual("connectionTokenFillTime"),
		looseInt("connection_throttle_fill_count", "Tokens of one filling.",
			func(c *Config) *int { return &c.Throttle.FillCount }).manual("connectionTokenFillCount"),
		looseMillis("connection_throttle_freeze_time", "Time between two changes of the drop probability; -1 turns dropping off.", 32,
			func(c *Config) *time.Duration { return &c.Throttle.FreezeTime }).manual("connectionFreezeTime"),
		double("connection_throttle_drop_increase", "Added to the drop probability.",
			func(c *Config) *float64 { return &c.Throttle.DropIncrease }).manual("connectionDropIncrease"),
		double("connection_throttle_drop_decrease", "Taken from the drop probability.",
			func(c *Config) *float64 { return &c.Throttle.DropDecrease }).manual("connectionDropDecrease"),
		double("connection_throttle_decrease_ratio", "Share of tokens left above which the probability falls.",
			func(c *Config) *float64 { return &c.Throttle.DecreaseRatio }).manual("connectionDecreaseRatio"),
		looseBool("connection_throttle_weight_enabled", "Kinds of sessions cost different numbers of tokens.",
			func(c *Config) *bool { return &c.Throttle.Weighted }),
		looseInt("connection_throttle_global_session_weight", "Tokens of a new global session.",
			func(c *Config) *int { return &c.Throttle.GlobalWeight }),
		looseInt("connection_throttle_local_session_weight", "Tokens of a new local session.",
			func(c *Config) *int { return &c.Throttle.LocalWeight }),
		looseInt("connection_throttle_renew_session_weight", "Tokens of a reconnect.",
			func(c *Config) *int { return &c.Throttle.RenewWeight }),
		looseInt("request_throttle_max_requests", "Requests in work above which further ones wait; 0 turns it off.",
			func(c *Config) *int { return &c.Throttle.MaxRequests }).manual("requestThrottleLimit"),
		looseMillis("request_throttle_stall_time", "Longest wait before looking again.", 32,
			func(c *Config) *time.Duration { return &c.Throttle.StallTime }).manual("requestThrottleStallTime"),
		looseBool("request_throttle_drop_stale", "Drops stale ones of the waiting requests.",
			func(c *Config) *bool { return &c.Throttle.DropStale }).manual("requestThrottleDropStale"),
		looseBool("request_stale_connection_check", "A request of a closed connection is stale.",
			func(c *Config) *bool { return &c.Throttle.StaleConnectionCheck }).manual("requestStaleConnectionCheck"),
		looseBool("request_stale_latency_check", "A request that waited longer than its session's timeout is stale.",
			func(c *Config) *bool { return &c.Throttle.StaleLatencyCheck }).manual("requestStaleLatencyCheck"),
		looseMillis("throttled_op_wait_time", "Wait above which an operation is refused; 0 turns it off.", 32,
			func(c *Config) *time.Duration { return &c.Throttle.OpWaitTime }),
	}
}

func securityKeys() []key {
	super := text("DigestAuthenticationProvider.superDigest", "Digest id that may do everything.",
		func(c *Config) *string { return &c.Security.SuperDigest }).in(inBoth)
	super.secret = true
	return []key{
		exactWord("skipACL", "yes turns every access check off.", "yes", false,
			func(c *Config) *bool { return &c.Security.SkipACL }),
		looseBool("enforceQuota", "Refuses writes above a hard quota.",
			func(c *Config) *bool { return &c.Security.EnforceQuota }),
		looseBool("DigestAuthenticationProvider.enabled", "Offers the digest scheme.",
			func(c *Config) *bool { return &c.Security.DigestEnabled }),
		text("DigestAuthenticationProvider.digestAlg", "Algorithm that hashes user:password.",
			func(c *Config) *string { return &c.Security.DigestAlgorithm }).in(inBoth),
		super,
	}
}

// adminKeys configure the HTTP admin server.
func adminKeys() []key {
	enabled := key{
		name: "admin.enableServer", place: inBoth,
		set: func(c *Config, raw string) error { c.Admin.Enabled = raw != "false"; return nil },
		show: func(c *Config) string {
			if c.Admin.Enabled {
				return "true"
			}
			return "false"
		},
	}
	keys := []key{
		enabled,
		text("admin.serverAddress", "", func(c *Config) *string { return &c.Admin.Host }).in(inBoth),
		looseInt("admin.serverPort", "", func(c *Config) *int { return &c.Admin.Port }),
		text("admin.commandURL", "", func(c *Config) *string { return &c.Admin.CommandURL }).in(inBoth),
		looseMillis("admin.idleTimeout", "", 32, func(c *Config) *time.Duration { return &c.Admin.IdleTimeout }),
		looseBool("admin.snapshot.enabled", "", func(c *Config) *bool { return &c.Admin.Snapshot }),
		looseBool("admin.restore.enabled", "", func(c *Config) *bool { return &c.Admin.Restore }),
		looseMillis("admin.rateLimiterIntervalInMS", "", 32,
			func(c *Config) *time.Duration { return &c.Admin.RateLimiterInterval }),
	}
	for i, k := range keys {
		keys[i] = k.idle("The HTTP admin server is not in this version.",
			func(raw string) bool {
				return k.name == "admin.serverPort" || k.name == "admin.enableServer" && raw != "false"
			})
	}
	return keys
}

func nodeKeys() []key {
	return []key{
		looseBool("readonlymode.enabled", "Serves clients that can do with a read-only server while there is no leader. It also allows the word isro. For an ensemble.",
			func(c *Config) *bool { return &c.Ensemble.ReadOnlyMode }).named("readonlymode.enabled").in(byDefine),
		looseBool("extendedTypesEnabled", "Allows TTL nodes.",
			func(c *Config) *bool { return &c.Containers.ExtendedTypes }),
		looseBool("emulate353TTLNodes", "", func(c *Config) *bool { return &c.Containers.Emulate353TTL }).
			idle("TTL nodes are always marked as since Apache 3.5.4.", isTrue),
		looseMillis("znode.container.checkIntervalMs", "Time between two rounds of reaping.", 32,
			func(c *Config) *time.Duration { return &c.Containers.CheckInterval }).
			named("znode.container.checkIntervalMs").in(byDefine),
		looseInt("znode.container.maxPerMinute", "Nodes reaped in a minute.",
			func(c *Config) *int { return &c.Containers.MaxPerMinute }).
			named("znode.container.maxPerMinute").in(byDefine),
		looseMillis("znode.container.maxNeverUsedIntervalMs", "Age at which a container that never had a child is reaped; 0 means never.", 64,
			func(c *Config) *time.Duration { return &c.Containers.MaxNeverUsedInterval }).
			named("znode.container.maxNeverUsedIntervalMs").in(byDefine),
	}
}

// ownKeys are zooraft's own. Apache takes them for system properties that
// nobody reads, so one file serves both.
func ownKeys() []key {
	return []key{{
		name: "raftLogStore", effect: Applied, place: inBoth, since: "zooraft",
		note: "Store of the Raft log, wal or bolt.",
		set:  func(c *Config, raw string) error { c.Storage.LogStore = LogStore(raw); return nil },
		show: func(c *Config) string { return string(c.Storage.LogStore) },
	}, {
		name: "peerListenAddress", effect: Applied, place: inBoth, since: "zooraft",
		note: "Where the peer port listens, host:port, if the own server line's address is another machine's, as behind a port mapping.",
		set: func(c *Config, raw string) error {
			_, _, err := net.SplitHostPort(raw)
			c.Ensemble.PeerListen = raw
			return err
		},
		show: func(c *Config) string { return c.Ensemble.PeerListen },
	}}
}
