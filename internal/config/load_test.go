package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeConfig puts a zoo.cfg into a fresh directory, with DIR in its text
// replaced by that directory, and returns its path.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// offline resolves nothing but localhost.
func offline(host string) ([]string, error) {
	if host == "localhost" {
		return []string{"127.0.0.1"}, nil
	}
	if strings.Trim(host, "0123456789.:abcdef") == "" {
		return []string{host}, nil
	}
	return nil, errors.New("no such host")
}

func load(t *testing.T, o Options) (*Config, *Report, error) {
	t.Helper()
	o.LookupHost = offline
	return Load(o)
}

const small = "dataDir=DIR\nclientPort=2181\n"

func TestAFileFillsTheConfiguration(t *testing.T) {
	path := writeConfig(t, `tickTime=2000
dataDir=DIR/data
dataLogDir=DIR/log
clientPort=2182
clientPortAddress=127.0.0.1
maxClientCnxns=0
minSessionTimeout=1000
maxSessionTimeout=-1
autopurge.snapRetainCount=5
snapCount=0x100
preAllocSize=1024
jute.maxbuffer.extrasize=10
4lw.commands.whitelist=ruok, mntr ,conf
skipACL=yes
extendedTypesEnabled=TRUE
admin.enableServer=false
raftLogStore=bolt
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpPort=0
`)
	c, report, err := load(t, Options{File: path, Defines: []string{"jute.maxbuffer=0x1000", "znode.container.checkIntervalMs=10"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	want := Default()
	want.File, want.Text, want.Properties = c.File, c.Text, c.Properties
	want.Listen.Enabled, want.Listen.Host, want.Listen.Port = true, "127.0.0.1", 2182
	want.Listen.MaxConnectionsPerHost = 0
	want.Session = Session{TickTime: 2 * time.Second, MinTimeout: time.Second, MaxTimeout: 40 * time.Second}
	want.Storage.DataDir, want.Storage.LogDir = filepath.Join(dir, "data"), filepath.Join(dir, "log")
	want.Storage.SnapRetainCount, want.Storage.SnapCount = 5, 256
	want.Storage.PreAllocSize, want.Storage.LogStore = 1<<20, LogStoreBolt
	want.Limits.MaxFrame, want.Limits.FrameSlack = 4096, 1024
	want.Words.Allowed = []string{"conf", "mntr", "ruok", "srvr"}
	want.Security.SkipACL = true
	want.Containers.ExtendedTypes, want.Containers.CheckInterval = true, 10*time.Millisecond
	want.Admin.Enabled = false
	want.Metrics.Provider, want.Metrics.Port = prometheusProvider, 0
	if got, want := dump(c), dump(want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(report.Warnings) != 2 || report.Warnings[0].Key != "jute.maxbuffer.extrasize" || report.Warnings[1].Key != "metricsProvider.className" {
		t.Errorf("warnings %v, want one about the floor of extrasize and one about Prometheus", report.Warnings)
	}
	if c.Properties["zookeeper.snapCount"] != "0x100" || c.Properties["jute.maxbuffer"] != "0x1000" {
		t.Errorf("properties %v", c.Properties)
	}
}

func TestWhatDoesNotStopTheStartIsAWarningThatNamesTheKey(t *testing.T) {
	tests := []struct{ name, text, key, warning string }{
		{"an unknown key", "foo=bar", "foo", "unknown key without effect"},
		{"an unknown key close to a known one", "snapcount=5", "snapcount", "did you mean snapCount?"},
		{"a key that Apache prefixes twice", "zookeeper.snapCount=5", "zookeeper.snapCount", "write snapCount"},
		{"a key that works only as -D", "jute.maxbuffer=5000", "jute.maxbuffer", "start with -Djute.maxbuffer=5000"},
		{"read-only mode in the file", "readonlymode.enabled=true", "readonlymode.enabled", "start with -Dreadonlymode.enabled=true"},
		{"container settings in the file", "znode.container.maxPerMinute=5", "znode.container.maxPerMinute", "start with -D"},
		{"a name that only the manual knows", "connectionMaxTokens=5", "connectionMaxTokens", "taken as connection_throttle_tokens"},
		{"a doubled key", "tickTime=5\ntickTime=6", "tickTime", "is written again in line 4, which wins"},
		{"a system property that is no number", "snapCount=many", "snapCount", "stays 100000"},
		{"a snapCount that is too small", "snapCount=1", "snapCount", "becomes 2"},
		{"a system property that is no boolean", "enforceQuota=yes", "enforceQuota", "counts as false"},
		{"skipACL=true", "skipACL=true", "skipACL", "only yes counts"},
		{"too few snapshots to keep", "autopurge.snapRetainCount=1", "autopurge.snapRetainCount", "becomes 3"},
		{"an unknown four-letter word", "4lw.commands.whitelist=ruok,abcd", "4lw.commands.whitelist", "abcd: no such word"},
		{"a compression that is not there", "snapshot.compression.method=GZ", "snapshot.compression.method", "has no effect"},
		{"an admin server that is not there", "admin.serverPort=9090", "admin.serverPort", "not in this version"},
		{"an endpoint that is not there", "metricsProvider.className=" + prometheusProvider, "metricsProvider.className", "not in this version"},
		{"an unknown compression", "snapshot.compression.method=zip", "snapshot.compression.method", "not compressed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, report, err := load(t, Options{File: writeConfig(t, small+test.text)})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Warnings) != 1 {
				t.Fatalf("warnings %v, want one", report.Warnings)
			}
			got := report.Warnings[0]
			if got.Key != test.key || !strings.Contains(got.Text, test.warning) || !strings.HasSuffix(got.Source, "zoo.cfg:3") {
				t.Errorf("warning %q, want %q in line 3: %q", got, test.key, test.warning)
			}
		})
	}
}

func TestAnImpossibleValueNamesFileLineAndKey(t *testing.T) {
	tests := []struct{ name, line, key, reason string }{
		{"a port that is no number", "clientPort=http", "clientPort", "not an integer"},
		{"a port above 65535", "clientPort=65536", "clientPort", "not a port"},
		{"a hexadecimal port", "clientPort=0x10", "clientPort", "not an integer"},
		{"a number above 32 bits", "maxClientCnxns=2147483648", "maxClientCnxns", "not an integer"},
		{"a boolean that is neither", "standaloneEnabled=yes", "standaloneEnabled", "neither true nor false"},
		{"a boolean without effect that is neither", "syncEnabled=1", "syncEnabled", "neither true nor false"},
		{"no tick", "tickTime=0", "tickTime", "above 0"},
		{"a minimum above the maximum", "minSessionTimeout=100000", "minSessionTimeout", "must not be above"},
		{"a maximum below the minimum", "maxSessionTimeout=1", "maxSessionTimeout", "must not be above"},
		{"a timeout that no client can be told", "tickTime=200000000", "maxSessionTimeout", "more than a client can be told"},
		{"an election algorithm that is gone", "electionAlg=0", "electionAlg", "only 3"},
		{"a role that does not exist", "peerType=king", "peerType", "neither participant nor observer"},
		{"a metrics class that does not exist", "metricsProvider.className=com.example.Metrics", "metricsProvider.className", "is not one of"},
		{"a metrics port that is no number", "metricsProvider.httpPort=x\nmetricsProvider.className=" + prometheusProvider, "metricsProvider.httpPort", "not an integer"},
		{"a digest that does not exist", "DigestAuthenticationProvider.digestAlg=ROT13", "DigestAuthenticationProvider.digestAlg", "not a digest"},
		{"a throttle that is no number", "connection_throttle_drop_increase=much", "connection_throttle_drop_increase", "not a number"},
		{"a log store that does not exist", "raftLogStore=paper", "raftLogStore", "neither wal nor bolt"},
		{"an address that cannot be resolved", "clientPortAddress=no.such.host", "clientPortAddress", "cannot be resolved"},
		{"a server line of the wrong form", "server.1=host:1", "server.1", "does not have the form"},
		{"a server without a number", "server.a=host:1:2", "server.a", "not an integer"},
		{"a server with one port for both", "server.1=host:1:1", "server.1", "must differ"},
		{"an observer alone", "server.1=host:1:2:observer", "server.1", "need a participant"},
		{"an admin path without a slash", "admin.commandURL=commands", "admin.commandURL", "start with /"},
		{"a bad escape", `a=\u12`, "", "four hexadecimal digits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := writeConfig(t, small+test.line)
			_, _, err := load(t, Options{File: path})
			var problem *Error
			if !errors.As(err, &problem) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if problem.File != path || problem.Line != 3 || problem.Key != test.key || !strings.Contains(problem.Reason, test.reason) {
				t.Errorf("error %q, want line 3, %q: %q", err, test.key, test.reason)
			}
			if !errors.Is(err, ErrInvalid) || problem.ExitCode() != ExitInvalid {
				t.Errorf("kind %v, exit code %d", problem.Kind, problem.ExitCode())
			}
		})
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	tests := []struct{ name, text, key string }{
		{"no dataDir", "clientPort=2181", "dataDir"},
		{"no port", "dataDir=DIR", "clientPort"},
		{"an address without a port", "dataDir=DIR\nclientPortAddress=localhost", "clientPortAddress"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := writeConfig(t, test.text)
			_, _, err := load(t, Options{File: path})
			var problem *Error
			if !errors.As(err, &problem) || problem.Key != test.key || problem.File != path || problem.ExitCode() != ExitInvalid {
				t.Errorf("error %v, want one about %s", err, test.key)
			}
		})
	}
	large := writeConfig(t, "#"+strings.Repeat("x", maxFileBytes))
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir(), large} {
		var problem *Error
		if _, _, err := load(t, Options{File: file}); !errors.As(err, &problem) || problem.Kind != ErrInvalid || problem.File != file {
			t.Errorf("error %v for %s", err, file)
		}
	}
}

func TestAllProblemsAreReportedInOrder(t *testing.T) {
	_, _, err := load(t, Options{File: writeConfig(t, small+"tickTime=x\nsslQuorum=true\nmaxClientCnxns=y")})
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], ":3: tickTime") || !strings.Contains(lines[1], ":4: sslQuorum") ||
		!strings.Contains(lines[2], ":5: maxClientCnxns") {
		t.Errorf("error\n%v", err)
	}
}

func TestABareServeIsLocalAndOpenToReading(t *testing.T) {
	c, report, err := load(t, Options{PortFile: "port"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen.Host != "127.0.0.1" || c.Listen.Port != 2181 || c.Listen.PortFile != "port" {
		t.Errorf("listen %+v", c.Listen)
	}
	if c.Storage.DataDir != "./zooraft-data" || c.Storage.LogDir != "./zooraft-data" || !c.Containers.ExtendedTypes {
		t.Errorf("storage %+v, containers %+v", c.Storage, c.Containers)
	}
	for word, readOnly := range knownWords {
		if c.Words.Allows(word) != readOnly {
			t.Errorf("allows %s: %v, want %v", word, !readOnly, readOnly)
		}
	}
	if len(report.Warnings) > 0 {
		t.Errorf("warnings %v", report.Warnings)
	}
}

func TestPositionalArgumentsAreReadAsApacheReadsThem(t *testing.T) {
	c, _, err := load(t, Options{Args: []string{"2190", "data", "500", "7"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen.Port != 2190 || c.Listen.Host != "" || c.Storage.DataDir != "data" || c.Session.TickTime != 500*time.Millisecond ||
		c.Session.MaxTimeout != 10*time.Second || c.Listen.MaxConnectionsPerHost != 7 || len(c.Words.Allowed) != 1 {
		t.Errorf("configuration\n%s", dump(c))
	}
	for _, args := range [][]string{{"2190"}, {"1", "2", "3", "4", "5"}, {"x", "data"}, {"2190", "data", "fast"}} {
		_, _, err := load(t, Options{Args: args})
		var problem *Error
		if !errors.As(err, &problem) || problem.ExitCode() != ExitInvalid {
			t.Errorf("%q: error %v", args, err)
		}
	}
	if _, _, err := load(t, Options{File: "zoo.cfg", Args: []string{"1", "2"}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v for a file and arguments", err)
	}
}

func TestDefinesComeFromArgumentsAndEnvironment(t *testing.T) {
	environ := []string{
		"SERVER_JVMFLAGS=-Xmx1g -Dzookeeper.snapCount=10 -Djute.maxbuffer=100",
		"JVMFLAGS=-Dzookeeper.snapCount=20  -Dzookeeper.enforceQuota=true -D",
		"OTHER=-Dzookeeper.snapCount=30",
	}
	tests := []struct {
		name    string
		text    string
		defines []string
		key     string
		value   string
		source  string
	}{
		{"JVMFLAGS comes after SERVER_JVMFLAGS", "", nil, "snapCount", "20", "JVMFLAGS"},
		{"SERVER_JVMFLAGS is read", "", nil, "jute.maxbuffer", "100", "SERVER_JVMFLAGS"},
		{"an argument wins over both", "", []string{"zookeeper.snapCount=40"}, "snapCount", "40", "-Dzookeeper.snapCount"},
		{"the last argument wins", "", []string{"jute.maxbuffer=5", "jute.maxbuffer=6"}, "jute.maxbuffer", "6", "-Djute.maxbuffer"},
		{"the file wins over all", "snapCount=50", []string{"zookeeper.snapCount=40"}, "snapCount", "50", "zoo.cfg:3"},
		{"the bare fsync property counts", "", []string{"fsync.warningthresholdms=7"}, "fsync.warningthresholdms", "7", "-Dfsync.warningthresholdms"},
		{"the prefixed one wins over it", "", []string{"zookeeper.fsync.warningthresholdms=8", "fsync.warningthresholdms=7"},
			"fsync.warningthresholdms", "8", "-Dzookeeper.fsync.warningthresholdms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, report, err := load(t, Options{File: writeConfig(t, small+test.text), Defines: test.defines, Environ: environ})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range report.Values {
				if v.Key == test.key {
					if v.Value != test.value || !strings.HasSuffix(v.Source, test.source) {
						t.Errorf("%s = %s from %s, want %s from %s", v.Key, v.Value, v.Source, test.value, test.source)
					}
					return
				}
			}
			t.Errorf("no value for %s", test.key)
		})
	}
}

func TestADefineThatReachesNothingIsAWarning(t *testing.T) {
	for define, text := range map[string]string{
		"zookeeper.tickTime=5": "write tickTime=5 into zoo.cfg",
		"zookeeper.foo=bar":    "not a property of this server",
	} {
		_, report, err := load(t, Options{File: writeConfig(t, small), Defines: []string{define}})
		if err != nil || len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0].Text, text) {
			t.Errorf("%s: error %v, warnings %v", define, err, report.Warnings)
		}
	}
	_, report, err := load(t, Options{File: writeConfig(t, small), Defines: []string{"zookeeper.log.dir=/x", "user.name=y", "logback.configurationFile=z"}})
	if err != nil || len(report.Warnings) > 0 {
		t.Errorf("error %v, warnings %v for what start scripts always set", err, report.Warnings)
	}
}

func TestUselessDefinesStopTheStart(t *testing.T) {
	for _, define := range []string{
		"jute.maxbuffer=0", "jute.maxbuffer=-1", "znode.container.maxPerMinute=0", "znode.container.checkIntervalMs=-1",
	} {
		_, _, err := load(t, Options{File: writeConfig(t, small), Defines: []string{define}})
		name, _, _ := strings.Cut(define, "=")
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "-D"+name+": "+name) {
			t.Errorf("%s: error %v", define, err)
		}
	}
}

func TestFlagsWin(t *testing.T) {
	for _, test := range []struct {
		listen, host string
		port         int
	}{{"127.0.0.1:0", "127.0.0.1", 0}, {":2190", "", 2190}, {"2190", "", 2190}, {"[::1]:2190", "::1", 2190}} {
		c, report, err := load(t, Options{File: writeConfig(t, small+"clientPortAddress=localhost"), Listen: test.listen, DataDir: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Listen.Host != test.host || c.Listen.Port != test.port || c.Storage.DataDir != "other" {
			t.Errorf("%s: listen %+v, dataDir %s", test.listen, c.Listen, c.Storage.DataDir)
		}
		for _, v := range report.Values {
			if v.Key == "clientPort" && v.Source != "--listen" || v.Key == "dataDir" && v.Source != "--data-dir" {
				t.Errorf("%s: %s from %s", test.listen, v.Key, v.Source)
			}
		}
	}
	if _, _, err := load(t, Options{Listen: "host:name"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v for a port that is a name", err)
	}
}

func TestReadOnlyModeAllowsIsro(t *testing.T) {
	c, _, err := load(t, Options{File: writeConfig(t, small), Defines: []string{"readonlymode.enabled=true"}})
	if err != nil || !c.Words.Allows("isro") || c.Words.Allows("ruok") {
		t.Errorf("error %v, words %v", err, c.Words)
	}
}

// Whatever a file holds, Load returns a configuration that is valid or an error
// with the exit code of a bad one.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		small, small + "server.1=localhost:2888:3888;2181", "dataDir=DIR\nserver.1=[::1]:1:2|[::2]:3:4:observer;[::1]:5\nmultiAddress.enabled=true",
		small + "snapCount=0x10\nssl.a=b\nadmin.serverPort=-5\ngroup.1=1:2\nweight.1=9", small + "tickTime=2147483647\npreAllocSize=9223372036854775807",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "zoo.cfg")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, report, err := Load(Options{File: path, LookupHost: offline})
		if report == nil {
			t.Fatal("no report")
		}
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Fatalf("accepted, but %v", err)
			}
			return
		}
		var problem *Error
		if !errors.As(err, &problem) || problem.Reason == "" || problem.ExitCode() == ExitUnexpected {
			t.Fatalf("error %v", err)
		}
	})
}
