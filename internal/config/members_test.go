package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// writeMyID puts a myid beside a zoo.cfg.
func writeMyID(t *testing.T, configPath, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(configPath), "myid"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestServerLinesAreReadAsApacheReadsThem(t *testing.T) {
	tests := []struct {
		text string
		want Member
	}{
		{"h:1:2", Member{ID: 7, Addresses: []PeerAddress{{Host: "h", QuorumPort: 1, ElectionPort: 2}}, ClientPort: -1}},
		{"h:1:2:participant", Member{ID: 7, Addresses: []PeerAddress{{Host: "h", QuorumPort: 1, ElectionPort: 2}}, ClientPort: -1}},
		{"h:1:2:OBSERVER", Member{ID: 7, Addresses: []PeerAddress{{Host: "h", QuorumPort: 1, ElectionPort: 2}}, Observer: true, ClientPort: -1}},
		{"h:1:2;2181", Member{ID: 7, Addresses: []PeerAddress{{Host: "h", QuorumPort: 1, ElectionPort: 2}}, ClientHost: "0.0.0.0", ClientPort: 2181}},
		{"h:1:2:observer;c:2181", Member{ID: 7, Addresses: []PeerAddress{{Host: "h", QuorumPort: 1, ElectionPort: 2}}, Observer: true, ClientHost: "c", ClientPort: 2181}},
		{"[::1]:1:2;[::2]:2181", Member{ID: 7, Addresses: []PeerAddress{{Host: "::1", QuorumPort: 1, ElectionPort: 2}}, ClientHost: "::2", ClientPort: 2181}},
		{"h:1:2|g:3:4", Member{ID: 7, Addresses: []PeerAddress{{Host: "g", QuorumPort: 3, ElectionPort: 4}, {Host: "h", QuorumPort: 1, ElectionPort: 2}}, ClientPort: -1}},
		{"h:1:2:observer|g:3:4", Member{ID: 7, Addresses: []PeerAddress{{Host: "g", QuorumPort: 3, ElectionPort: 4}, {Host: "h", QuorumPort: 1, ElectionPort: 2}}, Observer: true, ClientPort: -1}},
		{"h:1:2;", Member{ID: 7, Addresses: []PeerAddress{{Host: "h", QuorumPort: 1, ElectionPort: 2}}, ClientPort: -1}},
	}
	for _, test := range tests {
		got, err := parseMember(7, test.text, true)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: got %+v, error %v, want %+v", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{
		"", ";", "h", "h:1", "h:1:2:3:4", "h:1:2:king", "h:x:2", "h:1:x", "h:1:1", "h:1:65536", "h:1:2;x", "h:1:2;a:b:3",
		"h:1:2;2181;2281", "[::1:1:2", "h:1:2:observer|g:3:4:participant", "h:-1:2",
	} {
		if got, err := parseMember(7, text, true); err == nil {
			t.Errorf("%q: got %+v without an error", text, got)
		}
	}
	if _, err := parseMember(7, "h:1:2|g:3:4", false); err == nil {
		t.Error("several addresses are accepted without multiAddress.enabled")
	}
}

func TestNoServerHasTheNumberOfTTLNodes(t *testing.T) {
	const ensemble = "initLimit=10\nsyncLimit=5\nserver.1=a:1:2\nserver.254=b:1:2\nserver.255=c:1:2\n"
	for _, row := range []struct {
		lines, myID string
		want        string // of the error, "" for none
	}{
		{ensemble, "255", "this server's number is 255"},
		{"server.255=c:1:2;2181\n", "", "this server's number is 255"},
		{"", "255", "this server's number is 255"},
		{ensemble, "254", ""},
		{ensemble, "1", ""}, // another server's number is that one's affair
	} {
		path := writeConfig(t, "dataDir=DIR\nclientPort=2181\n"+row.lines)
		if row.myID != "" {
			writeMyID(t, path, row.myID)
		}
		_, _, err := load(t, Options{File: path})
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("myid %q, %q: %v", row.myID, row.lines, err)
		}
	}
}

func TestAMemberIsPrintedAsApachePrintsIt(t *testing.T) {
	for text, want := range map[string]string{
		"h:1:2":                   "h:1:2:participant",
		"h:1:2;2181":              "h:1:2:participant;0.0.0.0:2181",
		"[::1]:1:2:observer;c:21": "[::1]:1:2:observer;c:21",
	} {
		m, err := parseMember(1, text, false)
		if err != nil || m.String() != want {
			t.Errorf("%q: %q, error %v, want %q", text, m, err, want)
		}
	}
}

func TestOneServerLineRunsAServerAlone(t *testing.T) {
	tests := []struct {
		name, text, myid, host string
		port                   int
	}{
		{"its client port counts", "dataDir=DIR\nserver.1=localhost:2888:3888;2182", "1", "0.0.0.0", 2182},
		{"its client address counts", "dataDir=DIR\nserver.1=localhost:2888:3888;localhost:2182", "1", "localhost", 2182},
		{"it counts without a myid", "dataDir=DIR\nserver.1=localhost:2888:3888;2182", "", "0.0.0.0", 2182},
		{"clientPort counts when it has none", small + "server.1=localhost:2888:3888", "1", "", 2181},
		{"both may agree", small + "server.1=localhost:2888:3888;127.0.0.1:2181", "1", "127.0.0.1", 2181},
		{"without a myid clientPort wins", small + "server.1=localhost:2888:3888;2182", "", "", 2181},
		{"another number than myid does not count", small + "server.1=localhost:2888:3888;2182", "2", "", 2181},
		{"addresses that resolve alike agree", small + "clientPortAddress=localhost\nserver.1=h:2888:3888;127.0.0.1:2181", "1", "127.0.0.1", 2181},
		{"a dynamic file is read", "dataDir=DIR\ndynamicConfigFile=DIR/zoo.cfg.dynamic.1f", "1", "0.0.0.0", 2183},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := writeConfig(t, test.text)
			if test.myid != "" {
				writeMyID(t, path, test.myid+"\n")
			}
			if err := os.WriteFile(path+".dynamic.1f", []byte("server.1=h:1:2:participant;0.0.0.0:2183"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, _, err := load(t, Options{File: path})
			if err != nil {
				t.Fatal(err)
			}
			if c.Listen.Host != test.host || c.Listen.Port != test.port || c.Ensemble.Distributed() {
				t.Errorf("listen %+v, ensemble %+v", c.Listen, c.Ensemble)
			}
			if strings.Contains(test.text, "dynamic") && c.Ensemble.Version != 0x1f {
				t.Errorf("version %x", c.Ensemble.Version)
			}
		})
	}
}

func TestMembershipThatContradictsItselfIsRefused(t *testing.T) {
	tests := []struct{ name, text, myid, dynamic, reason string }{
		{"two client ports", small + "server.1=h:1:2;2182", "1", "", "differs from the client address"},
		{"two client addresses", small + "clientPortAddress=localhost\nserver.1=h:1:2;10.0.0.1:2181", "1", "", "differs from the client address"},
		{"a myid that is no number", small, "one", "", "is not a number"},
		{"an empty myid", small, "", "", "is not a number"},
		{"server lines beside a dynamic file", small + "dynamicConfigFile=DIR/d\nserver.1=h:1:2", "1", "", "must be in the dynamic"},
		{"a dynamic file that is not there", small + "dynamicConfigFile=DIR/none", "1", "", "no such file"},
		{"another key in the dynamic file", small + "dynamicConfigFile=DIR/zoo.cfg.d", "1", "tickTime=1", "not allowed in a dynamic"},
		{"no participant in ensemble mode", small + "standaloneEnabled=false", "1", "", "at least one participant"},
		{"a server in two groups", small + "server.1=h:1:2\ngroup.1=1\ngroup.2=1", "1", "", "in two groups"},
		{"a server in no group", small + "server.1=h:1:2\nweight.1=1", "1", "", "is in no group"},
		{"one participant and an observer", small + "server.1=h:1:2\nserver.2=g:1:2:observer", "1", "", "observers need more than one"},
		{"no initLimit", small + "syncLimit=2\nserver.1=h:1:2\nserver.2=g:1:2", "1", "", "is not set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := writeConfig(t, test.text)
			writeMyID(t, path, test.myid)
			if err := os.WriteFile(path+".d", []byte(test.dynamic), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := load(t, Options{File: path})
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("error %v, want %q", err, test.reason)
			}
		})
	}
}

func TestSeveralAddressesAreASetInTheOrderInWhichApachePrintsThem(t *testing.T) {
	path := writeConfig(t, small+"server.1=127.0.0.2:1:2|127.0.0.1:3:4|127.0.0.2:1:2\n")
	writeMyID(t, path, "1")
	c, report, err := load(t, Options{File: path, Defines: []string{"zookeeper.multiAddress.enabled=true"}})
	if err != nil || len(c.Ensemble.Servers) != 1 || len(report.Warnings) != 0 {
		t.Fatalf("read %+v, %v, %v", c, report, err)
	}
	one := c.Ensemble.Servers[0]
	if one.String() != "127.0.0.1:3:4|127.0.0.2:1:2:participant" || one.QuorumAddress() != "127.0.0.1:3|127.0.0.2:1" {
		t.Errorf("the member is %s, others connect at %s", one, one.QuorumAddress())
	}
}

func TestServerLinesWithOneAddressAreNamedWithBothLines(t *testing.T) {
	const head = "dataDir=DIR\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n"
	for _, c := range []struct{ name, lines, key, text string }{
		{"different ports", "server.1=h:1:2\nserver.2=h:3:4\nserver.3=g:1:2\n", "", ""},
		{"the same quorum port", "server.1=h:1:2\nserver.2=g:3:4\nserver.3=H:1:5\n", "server.3", "has the address h:1 of server.1 (FILE:5)"},
		{"one of several addresses", "server.1=h:1:2|g:3:4\nserver.2=f:1:2|g:3:9\nserver.3=e:1:2\n", "server.2", "has the address g:3 of server.1 (FILE:5)"},
		{"the same line twice", "server.1=h:1:2\nserver.1=h:1:2\nserver.2=g:1:2\nserver.3=f:1:2\n", "", ""},
	} {
		path := writeConfig(t, head+c.lines)
		writeMyID(t, path, "1")
		_, report, err := load(t, Options{File: path, Defines: []string{"zookeeper.multiAddress.enabled=true"}})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var said []Warning
		for _, w := range report.Warnings {
			if strings.Contains(w.Text, "has the address") {
				said = append(said, w)
			}
		}
		switch {
		case c.key == "" && len(said) != 0:
			t.Errorf("%s: warnings %v", c.name, said)
		case c.key != "" && (len(said) != 1 || said[0].Key != c.key || !strings.Contains(said[0].Source, path+":") ||
			!strings.Contains(said[0].Text, strings.ReplaceAll(c.text, "FILE", path))):
			t.Errorf("%s: warnings %v", c.name, said)
		}
	}
}

// A command that asks the server of a file needs no more of it than dataDir.
func TestTheDirectoryIsFoundWhateverElseIsWrong(t *testing.T) {
	path := writeConfig(t, small+"server.2=a:1:2\nserver.3=b:1:2\nsecureClientPort=1\n")
	writeMyID(t, path, "1")
	whole := Options{File: writeConfig(t, small)}
	want, err := OwnDataDir(whole)
	if c, _, loadErr := load(t, whole); err != nil || loadErr != nil || c.Storage.OwnDataDir() != want {
		t.Fatalf("%q, %v, %v", want, err, loadErr)
	}
	if got, err := OwnDataDir(Options{File: path}); err != nil || filepath.Base(got) != filepath.Base(want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := OwnDataDir(Options{File: writeConfig(t, "tickTime=5\n")}); err == nil {
		t.Error("a file without dataDir has a directory")
	}
}
