package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files and docs/configuration.md instead of comparing them")

// compareGolden compares text with a file, or writes the file with -update.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run go test with -update and look at the difference\ngot\n%s", path, got)
	}
}

// The page is generated, so it cannot say anything else than the table that
// Load works from.
func TestTheConfigurationPageIsTheTable(t *testing.T) {
	compareGolden(t, filepath.Join("..", "..", "docs", "configuration.md"), configurationPage())
}

const pageIntro = `# Configuration

<!-- Generated from internal/config by its tests: go test ./internal/config -update -->

` + "`zooraft serve zoo.cfg`" + ` takes an Apache ZooKeeper 3.9.5 configuration as it is;
` + "`zooraft config check zoo.cfg`" + ` prints what it makes of it, where each value comes
from, and what has no effect. ` + "`zooraft serve clientPort dataDir [tickTime [maxClientCnxns]]`" + `
is read as Apache reads it. A key that is not in these tables is a warning and
nothing else.

Where a setting can be given:

- **file**: only in zoo.cfg. A -D does not reach it, as in Apache.
- **file, -D**: in zoo.cfg, or as ` + "`-Dzookeeper.<name>=value`" + ` on the command line
  or in the environment variables SERVER_JVMFLAGS and JVMFLAGS. zoo.cfg wins over
  the command line, and that over JVMFLAGS, and that over SERVER_JVMFLAGS, as in
  Apache.
- **-D**: only as ` + "`-D<name>=value`" + `, with the name in full as it is printed here. In
  zoo.cfg it does nothing, as in Apache, and a warning says so.

How values are read: settings of the kind *file* must be decimal numbers, or true
or false in any case; anything else stops the start with exit code 2, and the
message names the file and the line. The others are read as Java reads system
properties: numbers may be hexadecimal (0x) or octal (a leading 0), and a value
that cannot be read leaves the default, with a warning that Apache does not give.

Differences from Apache, all on purpose: a byte order mark at the start of the
file is skipped instead of spoiling the first line; UTF-8 stays UTF-8 instead of
being read as ISO 8859-1; a value or port that no client could use (jute.maxbuffer
below 1, no client port at all, a session timeout beyond 32 bits, a rate of reaping below 1) stops the start;
blanks at the end of a server line do not count.

Flags of ` + "`serve`" + ` win over all of this: ` + "`--listen host:port`" + ` (or ` + "`:port`" + `), ` + "`--data-dir`" + `, ` + "`--port-file`" + `,
` + "`--allow-unprotected`" + `.

Without any file ` + "`zooraft serve`" + ` listens on 127.0.0.1:2181, keeps its data in
./zooraft-data, uses a tick of 2000 ms, answers every four-letter word that changes
nothing, and allows TTL nodes.

`

func configurationPage() string {
	var b strings.Builder
	b.WriteString(pageIntro)
	defaults := Default()
	defaults.Session.derive()
	section := func(title, intro string, effect Effect, withDefault bool) {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", title, intro)
		head := []string{"setting", "where"}
		if withDefault {
			head = append(head, "default", "unit")
		}
		head = append(head, map[Effect]string{Applied: "what it does here", NoEffect: "why it has no effect", Refused: "why"}[effect])
		fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
		for _, k := range table() {
			if k.effect == effect {
				writeRow(&b, k, defaults, withDefault)
			}
		}
		b.WriteByte('\n')
	}
	section("Settings with an effect", "The defaults are those with a zoo.cfg, and Apache's.", Applied, true)
	section("Settings that stop the start", "They ask for protection that this version does not have. "+
		"The start stops with exit code 2 and names them, unless `--allow-unprotected` is given; "+
		"a switch that is off (false) is accepted.", Refused, false)
	section("Settings without effect", "They are accepted; those of the kind *file* are still checked as Apache checks them.", NoEffect, false)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeRow(b *strings.Builder, k *key, defaults *Config, withDefault bool) {
	where := map[place]string{inFile: "file", inBoth: "file, -D", byDefine: "-D"}[k.place]
	cells := []string{"`" + k.name + "`", where}
	if withDefault {
		value := ""
		if k.show != nil {
			value = k.show(defaults)
		}
		cells = append(cells, value, k.unit)
	}
	note := k.note
	if k.documented != "" {
		note += " Apache's manual calls it `" + k.documented + "`, which Apache does not read; here both work."
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(append(cells, note), " | "))
}

func TestEveryRowOfTheTableIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, k := range table() {
		if names[k.name] {
			t.Errorf("%s is in the table twice", k.name)
		}
		names[k.name] = true
		if k.note == "" || !strings.HasSuffix(k.note, ".") {
			t.Errorf("%s: the note %q is no sentence", k.name, k.note)
		}
		if k.effect == Applied && k.family() == "" && (k.set == nil || k.show == nil) {
			t.Errorf("%s has an effect and cannot be set or shown", k.name)
		}
		if k.effect == "" {
			t.Errorf("%s has no effect written", k.name)
		}
	}
}

// The names of the facts sheet's tables of parser keys and system properties:
// each must be known, so that none of them is called unknown.
func TestEveryDocumentedSettingOfApacheIsKnown(t *testing.T) {
	for _, name := range strings.Fields(`dataDir dataLogDir clientPort clientPortAddress secureClientPort
secureClientPortAddress observerMasterPort clientPortListenBacklog tickTime maxClientCnxns minSessionTimeout
maxSessionTimeout initLimit syncLimit connectToLearnerMasterLimit electionAlg quorumListenOnAllIPs peerType
syncEnabled dynamicConfigFile autopurge.snapRetainCount autopurge.purgeInterval standaloneEnabled reconfigEnabled
sslQuorum portUnification sslQuorumReloadCertFiles server.1 group.1 weight.1 quorum.auth.enableSasl
quorum.auth.serverRequireSasl quorum.auth.learnerRequireSasl quorum.auth.server.saslLoginContext
quorum.auth.learner.saslLoginContext quorum.auth.kerberos.servicePrincipal quorum.cnxn.threads.size
jvm.pause.monitor jvm.pause.warn-threshold.ms jvm.pause.info-threshold.ms jvm.pause.sleep.time.ms
metricsProvider.className metricsProvider.httpHost metricsProvider.httpPort metricsProvider.exportJvmInfo
metricsProvider.numWorkerThreads multiAddress.enabled multiAddress.reachabilityCheckTimeoutMs
multiAddress.reachabilityCheckEnabled oraclePath localSessionsEnabled localSessionsUpgradingEnabled
jute.maxbuffer jute.maxbuffer.extrasize globalOutstandingLimit snapCount snapSizeLimitInKb preAllocSize
txnLogSizeLimitInKb commitLogCount snapshotSizeFactor forceSync fsync.warningthresholdms flushDelay
maxWriteQueuePollTime maxBatchSize snapshot.compression.method snapshot.trust.empty datadir.autocreate
db.autocreate digest.enabled serializeLastProcessedZxid.enabled closeSessionTxn.enabled extendedTypesEnabled
emulate353TTLNodes znode.container.checkIntervalMs znode.container.maxPerMinute
znode.container.maxNeverUsedIntervalMs maxCnxns serverCnxnFactory nio.numSelectorThreads nio.numWorkerThreads
nio.directBufferBytes nio.sessionlessCnxnTimeout nio.shutdownTimeout clientTcpKeepAlive tcpKeepAlive
netty.advancedFlowControl.enabled netty.server.outstandingHandshake.limit
netty.server.earlyDropSecureConnectionHandshakes connection_throttle_tokens connection_throttle_fill_time
connection_throttle_fill_count connection_throttle_freeze_time connection_throttle_drop_increase
connection_throttle_drop_decrease connection_throttle_decrease_ratio connection_throttle_weight_enabled
connection_throttle_global_session_weight connection_throttle_local_session_weight
connection_throttle_renew_session_weight request_throttle_max_requests request_throttle_stall_time
request_throttle_drop_stale request_stale_connection_check request_stale_latency_check
request_throttler.shutdownTimeout throttled_op_wait_time largeRequestMaxBytes largeRequestThreshold
maxResponseCacheSize maxGetChildrenResponseCacheSize watchManagerName watcherCleanThreadsNum
watcherCleanThreshold watcherCleanIntervalInSeconds maxInProcessingDeadWatchers bitHashCacheSize
commitProcessor.numWorkerThreads commitProcessor.maxReadBatchSize commitProcessor.maxCommitBatchSize
commitProcessor.shutdownTimeout intBufferStartingSizeBytes DigestAuthenticationProvider.enabled
DigestAuthenticationProvider.superDigest DigestAuthenticationProvider.digestAlg
X509AuthenticationProvider.superUser superUser superUser.second IPAuthenticationProvider.usexforwardedfor
authProvider.1 sessionRequireClientSASLAuth enforce.auth.enabled enforce.auth.schemes allowSaslFailedClients
sasl.serverconfig kerberos.removeHostFromPrincipal kerberos.removeRealmFromPrincipal
kerberos.canonicalizeHostNames security.auth_to_local ensembleAuthName ssl.keyStore.location
ssl.quorum.keyStore.location client.portUnification client.certReload fips-mode skipACL enableEagerACLCheck
enforceQuota 4lw.commands.whitelist audit.enable audit.impl.class admin.enableServer admin.serverAddress
admin.serverPort admin.idleTimeout admin.httpVersion admin.commandURL admin.forceHttps admin.portUnification
admin.needClientAuth admin.snapshot.enabled admin.restore.enabled admin.rateLimiterIntervalInMS leaderServes
cnxTimeout quorumCnxnTimeoutMs electionPortBindRetry fastleader.minNotificationInterval
fastleader.maxNotificationInterval leader.maxConcurrentSnapSyncs leader.maxConcurrentDiffSyncs
leader.maxTimeToWaitForEpoch leaderConnectDelayDuringRetryMs observer.reconnectDelayMs
observer.election.DelayMs observerMaster.sizeLimit learner.asyncSending learner.closeSocketAsync
leader.closeSocketAsync follower.nodelay leader.nodelay readonlymode.enabled
forward_learner_requests_to_commit_processor_disabled messageTracker.Enabled messageTracker.BufferSize
pathStats.enabled java.security.auth.login.config`) {
		if find(name) == nil {
			t.Errorf("%s is unknown", name)
		}
	}
	for _, name := range strings.Fields(`connectionMaxTokens connectionTokenFillTime connectionTokenFillCount
connectionFreezeTime connectionDropIncrease connectionDropDecrease connectionDecreaseRatio requestThrottleLimit
requestThrottleStallTime requestThrottleDropStale requestStaleLatencyCheck requestStaleConnectionCheck
advancedFlowControlEnabled maxConcurrentSnapSyncs maxConcurrentDiffSyncs maxTimeToWaitForEpoch`) {
		if findDocumented(name) == nil || find(name) != nil {
			t.Errorf("%s is not taken as a name of the manual", name)
		}
	}
}
