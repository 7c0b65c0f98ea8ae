package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/toolchain"
)

// facts is what the real server made of one file.
type facts struct {
	refused, malformed string
	values             map[string]string // what its parser's getters return
	properties         map[string]string // what java.util.Properties returns, trimmed
	system             map[string]string // the system properties it set
}

// askApache has the real server's parser read files, all in one process.
func askApache(t *testing.T, files []string) map[string]*facts {
	t.Helper()
	classPath := toolchain.ClassPath(t, filepath.Join(toolchain.Root(), "test", "peer", "pom.xml"))
	source, err := filepath.Abs(filepath.Join("testdata", "probe"))
	if err != nil {
		t.Fatal(err)
	}
	classes := toolchain.CompileJava(t, "config-probe", source, classPath)
	logback := filepath.Join(t.TempDir(), "logback.xml")
	if err := os.WriteFile(logback, []byte("<configuration/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-Dlogback.configurationFile=" + logback, "-cp", classes + ":" + classPath, "ConfigProbe"}, files...)
	answers := map[string]*facts{}
	for _, file := range files {
		answers[file] = &facts{values: map[string]string{}, properties: map[string]string{}, system: map[string]string{}}
	}
	for _, line := range strings.Split(toolchain.Run(t, source, nil, "java", args...), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || answers[fields[0]] == nil {
			continue // a line of the Java runtime
		}
		name, value := unhex(t, fields[2]), unhex(t, fields[3])
		answer := answers[fields[0]]
		switch fields[1] {
		case "refused":
			answer.refused = value
		case "malformed":
			answer.malformed = value
		case "value":
			answer.values[name] = value
		case "property":
			answer.properties[name] = value
		case "system":
			answer.system[name] = value
		}
	}
	return answers
}

func unhex(t *testing.T, text string) string {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Random bytes from an alphabet that is mostly syntax must split into the same
// keys and values as in Java.
func TestRandomFilesReadAsInJava(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const alphabet = "aab1=:= \t\f\\\\\\\n\n\r#!u0041x"
	dir := t.TempDir()
	var files []string
	for i := range 400 {
		text := make([]byte, 1+random.IntN(60))
		for j := range text {
			text[j] = alphabet[random.IntN(len(alphabet))]
		}
		file := filepath.Join(dir, fmt.Sprintf("%03d", i))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	answers := askApache(t, files)
	read := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		properties, _, err := parseProperties(file, text)
		answer := answers[file]
		if (err != nil) != (answer.malformed != "") {
			t.Errorf("%q: error %v, Java says %q", text, err, answer.malformed)
			continue
		}
		got := map[string]string{}
		for _, p := range properties {
			got[p.key] = p.value
		}
		if err == nil && fmt.Sprint(got) != fmt.Sprint(answer.properties) && !trimmedAlike(properties) {
			t.Errorf("%q\n got %q\nwant %q", text, got, answer.properties)
		}
		read += len(got)
	}
	if read == 0 {
		t.Error("no file had a property")
	}
}

// trimmedAlike reports whether two keys differ only by what trimming drops.
// Java keeps both and lets its hash table's order decide, so there is nothing to
// compare.
func trimmedAlike(properties []property) bool {
	seen := map[string]int{}
	for _, p := range properties {
		seen[p.key]++
	}
	for _, times := range seen {
		if times > 1 {
			return true
		}
	}
	return false
}

// Each row is read by the real server's parser and by ours.
func TestFilesAreAcceptedAndRefusedAsByApache(t *testing.T) {
	const (
		servers = "initLimit=5\nsyncLimit=2\nserver.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:4\nserver.3=127.0.0.1:5:6\n"
		alone   = "server.1=127.0.0.1:2888:3888;2181\n"
	)
	tests := []struct {
		name, text, myid string
		// onPurpose says why we read it differently; empty when we must not.
		onPurpose string
	}{
		{name: "the smallest file", text: small},
		{name: "CR LF", text: "tickTime=2000\r\ndataDir=DIR\r\nclientPort=2181\r\n"},
		{name: "blanks everywhere", text: "  tickTime = 2000 \n\tdataDir\tDIR \nclientPort:2181\t\n"},
		{name: "doubled keys", text: "tickTime=1\n" + small + "tickTime=7\nclientPort=2182\n"},
		{name: "an unknown key", text: small + "foo=bar\nzookeeper.foo=bar\n"},
		{name: "a hexadecimal system property", text: small + "snapCount=0x10\npreAllocSize=0x10\n"},
		{name: "a hexadecimal tickTime", text: small + "tickTime=0x10\n"},
		{name: "a sign", text: small + "tickTime=+2000\n"},
		{name: "a leading zero is decimal", text: small + "tickTime=010\n"},
		{name: "an empty number", text: small + "tickTime=\n"},
		{name: "a number with a unit", text: small + "tickTime=2s\n"},
		{name: "a number above 32 bits", text: small + "maxClientCnxns=2147483648\n"},
		{name: "a number at the edge", text: small + "maxClientCnxns=2147483647\n"},
		{name: "a negative maxClientCnxns", text: small + "maxClientCnxns=-1\n"},
		{name: "no tick", text: small + "tickTime=0\n"},
		{name: "a negative tick", text: small + "tickTime=-1\n"},
		{name: "session limits", text: small + "tickTime=100\nminSessionTimeout=50\nmaxSessionTimeout=60\n"},
		{name: "session limits of -1", text: small + "tickTime=100\nminSessionTimeout=-1\nmaxSessionTimeout=-1\n"},
		{name: "session limits the wrong way", text: small + "minSessionTimeout=70000\n"},
		{name: "a maximum below two ticks", text: small + "maxSessionTimeout=5\n"},
		{name: "a tick whose sessions overflow", text: small + "tickTime=200000000\n"},
		{name: "too few snapshots", text: small + "autopurge.snapRetainCount=-4\n"},
		{name: "no dataDir", text: "clientPort=2181\n"},
		{name: "no clientPort", text: "dataDir=DIR\n", onPurpose: "Apache starts without a listener"},
		{name: "an address without a port", text: "dataDir=DIR\nclientPortAddress=127.0.0.1\n"},
		{name: "an address", text: small + "clientPortAddress=127.0.0.1\n"},
		{name: "port 0", text: "dataDir=DIR\nclientPort=0\n"},
		{name: "a port above 65535", text: "dataDir=DIR\nclientPort=65536\n"},
		{name: "a negative port", text: "dataDir=DIR\nclientPort=-1\n"},
		{name: "booleans in any case", text: small + "syncEnabled=TRUE\nquorumListenOnAllIPs=False\n"},
		{name: "a boolean that is yes", text: small + "syncEnabled=yes\n"},
		{name: "an empty boolean", text: small + "reconfigEnabled=\n"},
		{name: "a system boolean that is yes", text: small + "enforceQuota=yes\n"},
		{name: "peerType in capitals", text: small + "peerType=OBSERVER\n"},
		{name: "an unknown peerType", text: small + "peerType=king\n"},
		{name: "electionAlg 3", text: small + "electionAlg=3\n"},
		{name: "electionAlg 0", text: small + "electionAlg=0\n"},
		{name: "a metrics class that is not there", text: small + "metricsProvider.className=com.example.M\n"},
		{name: "the null metrics class", text: small + "metricsProvider.className=" + nullProvider + "\n"},
		{name: "pauses that are no numbers", text: small + "jvm.pause.sleep.time.ms=x\n"},
		{name: "a backlog that is no number", text: small + "clientPortListenBacklog=x\n"},
		{name: "a bad escape", text: small + "a=\\u12\n"},
		{name: "quorum SASL required and not enabled", text: small + "quorum.auth.serverRequireSasl=true\n",
			onPurpose: "with --allow-unprotected the key is ignored; without it, it is refused"},
		{name: "one server", text: "dataDir=DIR\n" + alone, myid: "1"},
		{name: "one server and clientPort", text: small + alone, myid: "1"},
		{name: "one server and another clientPort", text: "dataDir=DIR\nclientPort=2182\n" + alone, myid: "1"},
		{name: "one server and another clientPort, no myid", text: "dataDir=DIR\nclientPort=2182\n" + alone},
		{name: "one server, no clientPort and no myid", text: "dataDir=DIR\n" + alone,
			onPurpose: "Apache finds no line of its own and starts without a listener"},
		{name: "one server with another address", text: small + "clientPortAddress=127.0.0.1\nserver.1=127.0.0.1:1:2;127.0.0.2:2181\n", myid: "1"},
		{name: "one observer", text: small + "server.1=127.0.0.1:1:2:observer\n", myid: "1"},
		{name: "one server and an observer", text: small + "server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:4:observer\n", myid: "1"},
		{name: "one server in ensemble mode", text: small + "initLimit=5\nsyncLimit=2\nstandaloneEnabled=false\nserver.1=127.0.0.1:1:2\n", myid: "1"},
		{name: "ensemble mode without a server", text: small + "standaloneEnabled=false\n", myid: "1"},
		{name: "three servers", text: small + servers, myid: "2"},
		{name: "three servers, no myid", text: small + servers},
		{name: "three servers, a myid that is no number", text: small + servers, myid: "two"},
		{name: "a myid that is no number, alone", text: small, myid: "two"},
		{name: "three servers, no initLimit", text: small + strings.Replace(servers, "initLimit=5\n", "", 1), myid: "2"},
		{name: "three servers, no syncLimit", text: small + strings.Replace(servers, "syncLimit=2\n", "", 1), myid: "2"},
		{name: "a server without ports", text: small + "server.1=127.0.0.1\n", myid: "1"},
		{name: "a server with one port", text: small + "server.1=127.0.0.1:1\n", myid: "1"},
		{name: "a server with equal ports", text: small + "server.1=127.0.0.1:1:1\n", myid: "1"},
		{name: "a server with an odd role", text: small + "server.1=127.0.0.1:1:2:king\n", myid: "1"},
		{name: "a server with two client ports", text: small + "server.1=127.0.0.1:1:2;2181;2182\n", myid: "1"},
		{name: "a server with an empty client port", text: small + "server.1=127.0.0.1:1:2;\n", myid: "1"},
		{name: "a server with a port above 65535", text: small + "server.1=127.0.0.1:1:65536\n", myid: "1"},
		{name: "a server with a letter for a number", text: small + "server.a=127.0.0.1:1:2\n", myid: "1"},
		{name: "a server with two addresses", text: small + "server.1=127.0.0.1:1:2|127.0.0.2:1:2\n", myid: "1"},
		{name: "a server with two addresses, enabled in the file", text: small + "multiAddress.enabled=true\nserver.1=127.0.0.1:1:2|127.0.0.2:1:2\n",
			myid: "1", onPurpose: "Apache reads multiAddress.enabled for server lines only as a -D, against its manual"},
		{name: "two servers with one address", text: small + strings.Replace(servers, "server.2=127.0.0.1:3:4", "server.2=127.0.0.1:1:2", 1), myid: "1"},
		{name: "a server with brackets", text: small + "server.1=[::1]:1:2;[::1]:2181\n", myid: "1"},
		{name: "a server with an open bracket", text: small + "server.1=[::1:1:2\n", myid: "1"},
		{name: "blanks behind a server line", text: small + "server.1=127.0.0.1:1:2 \n", myid: "1", onPurpose: "Apache takes the blank for a part of the port"},
		{name: "groups", text: small + servers + "group.1=1:2:3\nweight.1=1\nweight.2=1\nweight.3=1\n", myid: "1"},
		{name: "a server in two groups", text: small + servers + "group.1=1:2:3\ngroup.2=1\n", myid: "1"},
		{name: "a server in no group", text: small + servers + "group.1=1:2\n", myid: "1"},
		{name: "a dynamic file beside server lines", text: small + "dynamicConfigFile=DIR/d\n" + alone, myid: "1"},
		{name: "a dynamic file that is not there", text: small + "dynamicConfigFile=DIR/none\n", myid: "1"},
	}
	var files []string
	for _, test := range tests {
		path := writeConfig(t, test.text)
		if test.myid != "" {
			writeMyID(t, path, test.myid)
		}
		files = append(files, path)
	}
	answers := askApache(t, files)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			compareWithApache(t, files[i], answers[files[i]], test.onPurpose)
		})
	}
}

func compareWithApache(t *testing.T, file string, apache *facts, onPurpose string) {
	t.Helper()
	if apache.refused == "" && len(apache.values) == 0 {
		t.Fatal("the real server's parser said nothing")
	}
	differences := differencesFromApache(file, apache)
	if onPurpose != "" && len(differences) == 0 {
		t.Errorf("no difference where one is on purpose: %s", onPurpose)
	}
	if onPurpose == "" {
		for _, difference := range differences {
			t.Error(difference)
		}
	}
}

func differencesFromApache(file string, apache *facts) (differences []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	c, _, err := Load(Options{File: file, AllowUnprotected: true, LookupHost: offline})
	switch {
	case errors.Is(err, ErrNotBuilt) && !errors.Is(err, ErrInvalid):
		if apache.refused != "" {
			differ("we would run it as an ensemble, Apache says %q", apache.refused)
		}
		return differences
	case (err != nil) != (apache.refused != ""):
		differ("error %v, Apache says %q", err, apache.refused)
		return differences
	case err != nil:
		return nil
	}
	got := map[string]string{
		"clientPort": fmt.Sprint(c.Listen.Port), "dataDir": c.Storage.DataDir, "dataLogDir": c.Storage.LogDir,
		"tickTime": millis(c.Session.TickTime), "maxClientCnxns": fmt.Sprint(c.Listen.MaxConnectionsPerHost),
		"minSessionTimeout": millis(c.Session.MinTimeout), "maxSessionTimeout": millis(c.Session.MaxTimeout),
		"autopurge.snapRetainCount": fmt.Sprint(c.Storage.SnapRetainCount), "distributed": fmt.Sprint(c.Ensemble.Distributed()),
		"servers": fmt.Sprint(len(c.Ensemble.Servers)), "myid": fmt.Sprint(c.Ensemble.MyID),
	}
	for name, want := range apache.values {
		if got[name] != want {
			differ("%s is %q, Apache's %q", name, got[name], want)
		}
	}
	for property, want := range apache.system {
		name, ok := strings.CutPrefix(property, "zookeeper.")
		if got := c.Properties[property]; ok && got != want && !memberLine(name) {
			differ("system property %s is %q, Apache's %q", property, got, want)
		}
	}
	return differences
}
