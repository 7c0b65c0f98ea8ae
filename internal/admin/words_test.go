package admin

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/metrics"
	"github.com/zooraft/zooraft/internal/proto"
)

const versionLine = "3.9.5-zooraft-0.1.0-4c2f01ab99d0, built on 2026-11-30 10:45 UTC"

func TestWordsHaveTheTextOfApache(t *testing.T) {
	srvr := "Latency min/avg/max: 0/7.0/60\nReceived: 37\nSent: 35\nConnections: 4\nOutstanding: 0\n" +
		"Zxid: 0xa\nMode: standalone\nNode count: 9\n"
	for _, c := range []struct{ word, want string }{
		{"ruok", "imok"},
		{"isro", "rw"},
		{"gtmk", "306"},
		{"srvr", "Zookeeper version: " + versionLine + "\n" + srvr},
		{"stat", "Zookeeper version: " + versionLine + "\nClients:\n" +
			" /127.0.0.1:53650[1](queued=0,recved=0,sent=0)\n" +
			" /127.0.0.1:53644[1](queued=0,recved=10,sent=10)\n" +
			" /[0:0:0:0:0:0:0:1]:37768[5](queued=2,recved=0,sent=0)\n" +
			" /127.0.0.1:53670[0](queued=0,recved=1,sent=0)\n\n" + srvr},
		{"cons", " /127.0.0.1:53650[1](queued=0,recved=0,sent=0)\n" +
			" /127.0.0.1:53644[1](queued=0,recved=10,sent=10,sid=0x100000cb10f0001,lop=PING,est=1796035507674," +
			"to=20000,lcxid=0x8,lzxid=0x8,lresp=1410466,llat=0,minlat=0,avglat=3,maxlat=9)\n" +
			" /[0:0:0:0:0:0:0:1]:37768[5](queued=2,recved=0,sent=0,sid=0x100000cb10f0000,lop=NA,est=1796035507649," +
			"to=10000,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n" +
			" /127.0.0.1:53670[0](queued=0,recved=1,sent=0)\n\n"},
		{"conf", "clientPort=2181\nsecureClientPort=-1\ndataDir=/data/zooraft\ndataDirSize=478\n" +
			"dataLogDir=/log/zooraft\ndataLogSize=67108880\ntickTime=2000\nmaxClientCnxns=60\n" +
			"minSessionTimeout=4000\nmaxSessionTimeout=40000\nclientPortListenBacklog=-1\nserverId=0\n"},
		{"dump", "SessionTracker dump:\nSession Sets (2)/(2):\n" +
			"1 expire at Mon Nov 30 10:45:19 UTC 2026:\n\t0x100000cb10f0000\n" +
			"1 expire at Mon Nov 30 10:45:29 UTC 2026:\n\t0x100000cb10f0001\n" +
			"ephemeral nodes dump:\nSessions with Ephemerals (2):\n" +
			"0x100000cb10f0000:\n\t/a/b\n0x100000cb10f0001:\n\t/e2\n\t/e3\n" +
			"Connections dump:\nConnections Sets (2)/(3):\n" +
			"2 expire at Mon Nov 30 10:45:19 UTC 2026:\n\tip: /127.0.0.1:53680 sessionId: 0x0\n" +
			"\tip: /[0:0:0:0:0:0:0:1]:37768 sessionId: 0x100000cb10f0000\n" +
			"1 expire at Mon Nov 30 10:45:29 UTC 2026:\n\tip: /127.0.0.1:53644 sessionId: 0x100000cb10f0001\n"},
		{"dirs", "datadir_size: 478\nlogdir_size: 67108880\n"},
		{"wchs", "2 connections watching 3 paths\nTotal watches:4\n"},
		{"wchc", "0x100000cb10f0000\n\t/a\n0x100000cb10f0001\n\t/a\n\t/nope\n\n"},
		{"wchp", "/a\n\t0x100000cb10f0000\n\t0x100000cb10f0001\n/nope\n\t0x100000cb10f0001\n\n"},
		{"hash", "80: 222193709548\n100: -5\n"},
		{"srst", "Server stats reset.\n"},
		{"crst", "Connection stats reset.\n"},
	} {
		t.Run(c.word, func(t *testing.T) {
			if got := say(t, newTestAdmin(busyServer()), c.word); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestWordsOfAnIdleServerHaveTheTextOfApache(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"cons", "\n"},
		{"wchc", "\n"},
		{"wchp", "\n"},
		{"hash", ""},
		{"dump", "SessionTracker dump:\nSession Sets (0)/(0):\nephemeral nodes dump:\n" +
			"Sessions with Ephemerals (0):\nConnections dump:\nConnections Sets (0)/(0):\n"},
	} {
		if got := say(t, newTestAdmin(&fakeServer{}), c.word); got != c.want {
			t.Errorf("%s: got %q, want %q", c.word, got, c.want)
		}
	}
}

func TestOtherRolesHaveTheirOwnLines(t *testing.T) {
	server := busyServer()
	server.stats.Mode, server.stats.PeerState = ModeLeader, "leading - broadcast"
	server.conf.Ensemble = &EnsembleConf{
		InitLimit: 10, SyncLimit: 5, ElectionAlg: 3, ElectionPorts: []int{3888}, QuorumPorts: []int{2888, 2889}, Membership: "server.1=a\nversion=0",
	}
	a := newTestAdmin(server)
	if got := say(t, a, "srvr"); !strings.HasSuffix(got, "Mode: leader\nNode count: 9\nProposal sizes last/min/max: 48/36/64\n") {
		t.Errorf("a leader's srvr: %s", got)
	}
	if got := say(t, a, "mntr"); !strings.Contains(got, "\nzk_server_state\tleader\nzk_peer_state\tleading - broadcast\n") {
		t.Errorf("a leader's mntr begins %.200s", got)
	}
	if got := say(t, a, "conf"); !strings.HasSuffix(got, "serverId=0\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\n"+
		"electionPort=3888\nquorumPort=2888|2889\npeerType=0\nmembership: \nserver.1=a\nversion=0") {
		t.Errorf("a leader's conf: %s", got)
	}

	server.stats.Mode, server.stats.ReadOnly = ModeReadOnly, true
	server.sessions = Sessions{Follower: true, Global: []SessionTimeout{{sessionA, 10 * time.Second}}}
	if got := say(t, a, "srvr"); !strings.HasPrefix(got, "Zookeeper version: "+versionLine+
		"\nREAD-ONLY mode; serving only read-only clients\nLatency") {
		t.Errorf("a read-only server's srvr: %s", got)
	}
	if got := say(t, a, "isro"); got != "ro" {
		t.Errorf("a read-only server's isro: %s", got)
	}
	if got := say(t, a, "dump"); !strings.HasPrefix(got,
		"SessionTracker dump:\nGlobal Sessions(1):\n0x100000cb10f0000\t10000ms\nephemeral nodes dump:\n") {
		t.Errorf("a follower's dump: %s", got)
	}
	server.sessions.Local = []SessionBucket{}
	if got := say(t, a, "dump"); !strings.HasPrefix(got,
		"SessionTracker dump:\nLocal Session Sets (0)/(0):\nGlobal Sessions(1):\n") {
		t.Errorf("a follower's dump with local sessions: %s", got)
	}
	server.sessions = Sessions{Local: []SessionBucket{}}
	if got := say(t, a, "dump"); !strings.HasPrefix(got,
		"SessionTracker dump:\nLocal Session Sets (0)/(0):\nGlobal Session Sets (0)/(0):\n") {
		t.Errorf("a leader's dump with local sessions: %s", got)
	}
}

func TestAServerThatDoesNotServeSaysSo(t *testing.T) {
	a := newTestAdmin(&fakeServer{stopped: true})
	always := map[string]string{"ruok": "imok", "isro": "null", "gtmk": "306"}
	for _, name := range wordNames() {
		if name == "stmk" {
			continue // has its own test
		}
		got := say(t, a, name)
		want, ok := always[name]
		switch {
		case ok && got != want:
			t.Errorf("%s: %q, want %q", name, got, want)
		case name == "envi" && !strings.HasPrefix(got, "Environment:\nzookeeper.version=3.9.5-"):
			t.Errorf("envi: %q", got)
		case !ok && name != "envi" && strings.TrimSuffix(got, "\n") != "This ZooKeeper instance is not currently serving requests":
			t.Errorf("%s: %q", name, got)
		case name == "hash" && strings.HasSuffix(got, "\n"):
			t.Error("hash ends with a newline; Apache's does not")
		case name == "srvr" && !strings.HasSuffix(got, "\n"):
			t.Error("srvr does not end with a newline")
		}
	}
}

func TestOnlyWhitelistedWordsAreExecuted(t *testing.T) {
	server := busyServer()
	a := New(Config{Allows: func(word string) bool { return word == "srvr" }}, server, metrics.NewRegistry())
	for _, name := range wordNames() {
		if name == "srvr" {
			continue
		}
		word, _ := a.Word([4]byte([]byte(name)))
		if word.ArgBytes() != 0 {
			t.Errorf("%s waits for %d bytes though it is forbidden", name, word.ArgBytes())
		}
		want := name + " is not executed because it is not in the whitelist.\n"
		if got := say(t, a, name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := say(t, a, "srvr"); !strings.Contains(got, "Mode: standalone\n") {
		t.Errorf("srvr: %q", got)
	}
	if server.resets != 0 || server.connReset != 0 {
		t.Error("a forbidden word did something")
	}
}

func TestFourBytesThatAreNoWordAreLeftAlone(t *testing.T) {
	a := newTestAdmin(&fakeServer{})
	for _, first := range []string{"abcd", "RUOK", "\x00\x00\x00\x2d", "\xff\xf4\xff\xfd", "icfg", "lead", "orst", "snap"} {
		if w, ok := a.Word([4]byte([]byte(first))); ok {
			t.Errorf("%q is taken for %s", first, w.Name())
		}
	}
}

func TestTheTraceMaskIsKept(t *testing.T) {
	a := newTestAdmin(&fakeServer{stopped: true})
	word, _ := a.Word([4]byte([]byte("stmk")))
	if word.ArgBytes() != 8 {
		t.Fatalf("stmk waits for %d bytes", word.ArgBytes())
	}
	var out strings.Builder
	if err := a.Execute(word, []byte{0, 0, 0}, &out); err == nil || out.Len() > 0 {
		t.Errorf("a short mask: %q, %v", out.String(), err)
	}
	if got := say(t, a, "stmk", 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe); got != "-2" {
		t.Errorf("stmk: %q", got)
	}
	if got := say(t, a, "gtmk"); got != "-2" {
		t.Errorf("gtmk: %q", got)
	}
}

func TestResetsReachTheServerAndTheMetrics(t *testing.T) {
	server, registry := busyServer(), metrics.NewRegistry()
	a := New(Config{Allows: func(string) bool { return true }}, server, registry)
	commits := registry.Counter("commit_count", "")
	commits.Inc()
	say(t, a, "srst")
	say(t, a, "crst")
	if server.resets != 1 || server.connReset != 1 || commits.Value() != 0 {
		t.Errorf("%d and %d resets, %d commits", server.resets, server.connReset, commits.Value())
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestAWriteErrorIsReturned(t *testing.T) {
	a := newTestAdmin(busyServer())
	for _, name := range []string{"stat", "mntr", "envi"} {
		word, _ := a.Word([4]byte([]byte(name)))
		if err := a.Execute(word, nil, brokenWriter{}); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mntr-keys.txt holds the keys that a standalone 3.9.5 prints before any
// client has used a namespace.
func TestMntrHasEveryKeyOfApache(t *testing.T) {
	golden, err := os.ReadFile("testdata/mntr-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(golden))
	text := say(t, newTestAdmin(&fakeServer{stats: Stats{Mode: ModeStandalone}}), "mntr")
	var got []string
	line := regexp.MustCompile(`^(zk_\w+)\t(-?\d+|-?\d+\.\d+)$`)
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		key, _, _ := strings.Cut(l, "\t")
		got = append(got, key)
		if i >= 2 && !line.MatchString(l) {
			t.Errorf("%q is no key and number", l)
		}
	}
	if !slices.Equal(got[:2], []string{"zk_version", "zk_server_state"}) {
		t.Errorf("the first keys are %v", got[:2])
	}
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Error("a key is there twice")
	}
	for _, key := range want {
		if _, found := slices.BinarySearch(got, key); !found {
			t.Errorf("%s is missing", key)
		}
	}
	for _, key := range got {
		if !slices.Contains(want, key) {
			t.Errorf("%s is not Apache's", key)
		}
	}
}

func TestMntrShowsTheNumbers(t *testing.T) {
	registry := metrics.NewRegistry()
	a := New(Config{Allows: func(string) bool { return true }, Build: testBuild}, busyServer(), registry)
	registry.SummarySet("read_per_namespace", "").Key("a").Observe(71)
	text := say(t, a, "mntr")
	for _, line := range []string{
		"zk_version\t" + versionLine,
		"zk_server_state\tstandalone",
		"zk_avg_latency\t7.0", "zk_max_latency\t60",
		"zk_packets_received\t37", "zk_znode_count\t9", "zk_global_sessions\t2",
		"zk_max_client_response_size\t89", "zk_connection_drop_probability\t0.0",
		"zk_a_quota_count_limit_per_namespace\t5", "zk_a_quota_bytes_limit_per_namespace\t-1",
		"zk_b_quota_bytes_usage_per_namespace\t7", "zk_avg_a_read_per_namespace\t71.0",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is missing", line)
		}
	}
	if strings.Contains(text, "zk_b_quota_count_limit") || strings.Contains(text, "peer_state") {
		t.Error("there are lines for what this server does not have")
	}
	open := regexp.MustCompile(`zk_open_file_descriptor_count\t(\d+)\nzk_max_file_descriptor_count\t(\d+)\n`).FindStringSubmatch(text)
	if open == nil || open[1] == "0" || open[2] == "0" {
		t.Errorf("file descriptors: %v", open)
	}
}

func TestEnviHasTheKeysOfApacheInOrder(t *testing.T) {
	text := say(t, newTestAdmin(&fakeServer{}), "envi")
	var keys []string
	for l := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "=")
		keys = append(keys, key)
		if strings.HasPrefix(key, "os.memory") && !regexp.MustCompile(`^\d+MB$`).MatchString(value) {
			t.Errorf("%s is %q", key, value)
		}
	}
	want := strings.Fields("Environment: zookeeper.version host.name java.version java.vendor java.home " +
		"java.class.path java.library.path java.io.tmpdir java.compiler os.name os.arch os.version " +
		"user.name user.home user.dir os.memory.free os.memory.max os.memory.total")
	if !slices.Equal(keys, want) {
		t.Errorf("got %v\nwant %v", keys, want)
	}
	if len(text) > 8192 {
		t.Errorf("%d bytes; kazoo reads at most 8192", len(text))
	}
}

func TestTheVersionNamesZooraftInAFormThatParsersTake(t *testing.T) {
	form := regexp.MustCompile(`^3\.9\.5-zooraft[A-Za-z0-9.\-]*, built on \d\d\d\d-\d\d-\d\d \d\d:\d\d UTC$`)
	for _, c := range []struct {
		build Build
		want  string
	}{
		{testBuild, versionLine},
		{Build{}, "3.9.5-zooraft, built on 1970-01-01 00:00 UTC"},
		{Build{Version: "1.0.0-rc.1+dirty", Time: time.Unix(0, 0)}, "3.9.5-zooraft-1.0.0-rc.1-dirty, built on 1970-01-01 00:00 UTC"},
		{Build{Version: "0.0.0-20261130104507-4c2f01ab99d0", Revision: "4c2f01ab99d0e3b7"},
			"3.9.5-zooraft-0.0.0-20261130104507-4c2f01ab99d0, built on 1970-01-01 00:00 UTC"},
		{CurrentBuild(""), ""},
	} {
		got := c.build.String()
		if !form.MatchString(got) || (c.want != "" && got != c.want) {
			t.Errorf("%+v is %q, want %q", c.build, got, c.want)
		}
	}
}

func TestZxidsAndDigestsKeepTheirTopBit(t *testing.T) {
	server := busyServer()
	server.stats.LastZxid = proto.Zxid(-1)
	if got := say(t, newTestAdmin(server), "srvr"); !strings.Contains(got, "Zxid: 0xffffffffffffffff\n") {
		t.Errorf("srvr: %s", got)
	}
}

func TestThePageOfMetricsHasEveryGauge(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	registry := metrics.NewRegistry()
	declareGauges(registry, busyServer())
	for _, f := range registry.Gather() {
		row := "\n| `" + f.Name + "` | " + f.Help + " | "
		if !strings.Contains(string(page), row) {
			t.Errorf("no row begins with %q", row)
		}
	}
}
