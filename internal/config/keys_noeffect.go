package config

// noEffectKeys are accepted and change nothing here. Those of Apache's parser
// are still checked as Apache checks them, so that a file that Apache refuses
// is refused here too.
func noEffectKeys() []key {
	const (
		ensemble = "Concerns Apache's ensembles; ours have no such setting."
		jvm      = "Watches a Java virtual machine; there is none."
		threads  = "Sizes Java thread pools; there are none."
		sasl     = "Concerns SASL, which this version does not have."
		apache   = "Concerns Apache's own data files or internal queues."
	)
	anyInt := func(_ *Config, raw string) error { _, err := parseInt(raw); return err }
	anyLong := func(_ *Config, raw string) error { _, err := parseLong(raw); return err }
	anyBool := func(_ *Config, raw string) error { _, err := parseStrictBool(raw); return err }
	var keys []key
	parser := func(note string, set func(*Config, string) error, names ...string) {
		for _, name := range names {
			keys = append(keys, key{name: name, note: note, effect: NoEffect, set: set})
		}
	}
	property := func(note string, names ...string) {
		for _, name := range names {
			keys = append(keys, key{name: name, note: note, effect: NoEffect, place: inBoth})
		}
	}

	parser("The system's listen backlog is used.", anyInt, "clientPortListenBacklog")
	parser("Old snapshots go after each new one, whatever the interval.", anyInt, "autopurge.purgeInterval")
	parser(ensemble, anyInt, "connectToLearnerMasterLimit", "observerMasterPort")
	parser("An address is tried by dialling it.", anyInt, "multiAddress.reachabilityCheckTimeoutMs")
	parser("An address is tried by dialling it.", anyBool, "multiAddress.reachabilityCheckEnabled")
	parser(ensemble, anyBool, "sslQuorumReloadCertFiles")
	keys = append(keys, ensembleKeys(ensemble)...)
	parser(ensemble, nil, "oraclePath")
	parser("Only 3 exists, here as in Apache.", func(_ *Config, raw string) error {
		n, err := parseInt(raw)
		if err == nil && n != 3 {
			return invalid("", "only 3 is supported")
		}
		return err
	}, "electionAlg")
	parser(jvm, anyBool, "jvm.pause.monitor")
	parser(jvm, anyLong, "jvm.pause.warn-threshold.ms", "jvm.pause.info-threshold.ms", "jvm.pause.sleep.time.ms")
	parser("Concerns quorum SASL, which this version does not have.", anyInt, "quorum.cnxn.threads.size")
	parser("Belongs to a metrics provider; see metricsProvider.httpPort.", nil, "metricsProvider.*")

	property("A write is acknowledged only after it is on disk; it cannot be turned off.", "forceSync")
	property("Writes are grouped by the log while the disk is busy.", "flushDelay", "maxWriteQueuePollTime", "maxBatchSize")
	property(apache, "txnLogSizeLimitInKb", "commitLogCount", "snapshotSizeFactor", "snapshot.trust.empty",
		"db.autocreate", "closeSessionTxn.enabled", "intBufferStartingSizeBytes",
		"maxResponseCacheSize", "maxGetChildrenResponseCacheSize", "commitProcessor.*",
		"request_throttler.shutdownTimeout", "messageTracker.*", "pathStats.*",
		"forward_learner_requests_to_commit_processor_disabled")
	property("There is one kind of watch table.", "watchManagerName", "watcherCleanThreadsNum", "watcherCleanThreshold",
		"watcherCleanIntervalInSeconds", "maxInProcessingDeadWatchers", "bitHashCacheSize")
	property(threads, "nio.numSelectorThreads", "nio.numWorkerThreads", "nio.directBufferBytes", "nio.shutdownTimeout")
	property("There is one connection layer.", "serverCnxnFactory",
		"netty.server.outstandingHandshake.limit", "netty.server.earlyDropSecureConnectionHandshakes")
	property("Writes are checked when they are applied.", "enableEagerACLCheck")
	property(ensemble, "tcpKeepAlive", "cnxTimeout", "quorumCnxnTimeoutMs", "electionPortBindRetry", "fastleader.*",
		"leader.*", "leaderConnectDelayDuringRetryMs", "observer.*", "observerMaster.sizeLimit", "learner.*",
		"follower.*")
	property(sasl, "allowSaslFailedClients", "sasl.*", "kerberos.*", "security.auth_to_local", "superUser", "superUser.*",
		"letAnySaslUserDoX", "SASLAuthenticationProvider.superPassword", "server.realm", "requireKerberosConfig")
	property("Concerns an authentication provider that this version does not have.", "X509AuthenticationProvider.superUser",
		"X509AuthenticationProvider.*", "IPAuthenticationProvider.usexforwardedfor", "ensembleAuthName")
	property("Concerns TLS, which this version does not have.", "fips-mode", "client.certReload")
	property("The admin server speaks HTTP/1.1.", "admin.httpVersion")
	property("Belongs to audit.enable.", "audit.impl.class")
	property("There are no JMX beans.", "jmx.*")

	for _, row := range [][2]string{
		{"leader.maxConcurrentSnapSyncs", "maxConcurrentSnapSyncs"},
		{"leader.maxConcurrentDiffSyncs", "maxConcurrentDiffSyncs"},
		{"leader.maxTimeToWaitForEpoch", "maxTimeToWaitForEpoch"},
	} {
		keys = append(keys, key{name: row[0], documented: row[1], note: ensemble, effect: NoEffect, place: inBoth})
	}
	keys = append(keys, key{
		name: "netty.advancedFlowControl.enabled", documented: "advancedFlowControlEnabled",
		note: "There is one connection layer.", effect: NoEffect, place: inBoth,
	})
	for _, name := range []string{"follower.nodelay", "leader.nodelay"} {
		keys = append(keys, key{name: name, property: name, note: ensemble, effect: NoEffect, place: byDefine})
	}
	keys = append(keys, key{
		name: "java.security.auth.login.config", property: "java.security.auth.login.config",
		note: sasl, effect: NoEffect, place: byDefine,
	})
	return keys
}

// ensembleKeys are kept in the configuration although nothing reads them yet.
func ensembleKeys(note string) []key {
	keys := []key{
		strictBool("syncEnabled", note, func(c *Config) *bool { return &c.Ensemble.SyncEnabled }),
		exactWord("leaderServes", note, "no", true, func(c *Config) *bool { return &c.Ensemble.LeaderServes }),
	}
	for i := range keys {
		keys[i].effect = NoEffect
	}
	return keys
}
