package shell

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
)

func TestALineIsSplitAsZkCliDoes(t *testing.T) {
	for line, want := range map[string][]string{
		"":                            nil,
		"   ":                         nil,
		"ls /":                        {"ls", "/"},
		"  create  /a  \"two words\"": {"create", "/a", "two words"},
		"set /a 'it is'":              {"set", "/a", "it is"},
		"set /a \"\"":                 {"set", "/a", ""},
		"set /a x\"y\"":               {"set", "/a", "x\"y\""},
	} {
		if have := splitLine(line); !slices.Equal(have, want) {
			t.Errorf("%q splits into %q, want %q", line, have, want)
		}
	}
}

func TestTheWordThatIsTypedIsFoundWithItsQuotes(t *testing.T) {
	for line, want := range map[string]struct {
		start  int
		text   string
		quoted bool
	}{
		"":                {0, "", false},
		"ls":              {0, "ls", false},
		"ls ":             {3, "", false},
		"ls /a":           {3, "/a", false},
		"ls /ä b/日":       {7, "b/日", false},
		`ls "/a b`:        {3, "/a b", true},
		`ls "/a b"`:       {3, "/a b", true},
		`ls "/a b"/c`:     {3, "/a b/c", true},
		`ls "/a b" /c`:    {10, "/c", false},
		`set /a it's`:     {7, "it's", false},
		`get '/say "hi" `: {4, `/say "hi" `, true},
	} {
		start, text, quoted := lastWord(line)
		if start != want.start || text != want.text || quoted != want.quoted {
			t.Errorf("%q ends in %q from %d, quoted %t; want %+v", line, text, start, quoted, want)
		}
		if quoted && !slices.Equal(splitLine(quote(text)), []string{text}) {
			t.Errorf("%q in quotes is read as %q", text, splitLine(quote(text)))
		}
	}
}

func TestASessionIsFoundByTheAddressOfItsClient(t *testing.T) {
	for _, row := range []struct {
		address, subject string
		concerns         bool
	}{
		{"10.0.0.7:40000", "10.0.0.7", true},
		{"10.0.0.7:40000", "10.0.0.7:40000", true},
		{"10.0.0.7:40000", "10.0.0", false},
		{"0:0:0:0:0:0:0:1:40000", "0:0:0:0:0:0:0:1", true}, // Apache's form
		{"[::1]:40000", "::1", true},
		{"[::1]:40000", "[::1]", true},
		{"[::1]:40000", "0", false},
		{"", "10.0.0.7", false},
	} {
		s := &sessionInfo{Session: "0x1", Address: row.address}
		if s.concerns(row.subject) != row.concerns {
			t.Errorf("who %s, of a client at %q: %t", row.subject, row.address, !row.concerns)
		}
	}
}

func TestFlagsAreReadAsZkCliDoes(t *testing.T) {
	flags := []flag{{name: "s"}, {name: "e"}, {name: "t", arg: "ttl"}, {name: "add", arg: "list"}, {name: "file", arg: "f", long: true}}
	for _, row := range []struct {
		words string
		args  []string
		given map[string]string
		wrong string
	}{
		{words: "/a x", args: []string{"/a", "x"}},
		{words: "-s /a -e x", args: []string{"/a", "x"}, given: map[string]string{"s": "", "e": ""}},
		{words: "-se /a", args: []string{"/a"}, given: map[string]string{"s": "", "e": ""}},
		{words: "-t 5 /a", args: []string{"/a"}, given: map[string]string{"t": "5"}},
		{words: "-t5 /a", args: []string{"/a"}, given: map[string]string{"t": "5"}},
		{words: "-st=5 /a", args: []string{"/a"}, given: map[string]string{"s": "", "t": "5"}},
		{words: "-t -1 /a", args: []string{"/a"}, given: map[string]string{"t": "-1"}},
		{words: "-add a,b", given: map[string]string{"add": "a,b"}},
		{words: "--file x /a", args: []string{"/a"}, given: map[string]string{"file": "x"}},
		{words: "--file=x /a", args: []string{"/a"}, given: map[string]string{"file": "x"}},
		{words: "/a -- -s", args: []string{"/a", "-s"}},
		{words: "/a -", args: []string{"/a", "-"}},
		{words: "-t", wrong: "Missing argument for option: t"},
		{words: "-t -s /a", wrong: "Missing argument for option: t"},
		{words: "-q /a", wrong: "Unrecognized option: -q"},
		{words: "--s /a", wrong: "Unrecognized option: --s"},
		{words: "-file x", given: map[string]string{"file": "x"}}, // nothing else can be meant
	} {
		w, err := parseWords(flags, strings.Fields(row.words))
		if row.wrong != "" {
			if !errors.Is(err, ErrUsage) || err.Error() != row.wrong {
				t.Errorf("%q: %v, want %q", row.words, err, row.wrong)
			}
			continue
		}
		if err != nil || !slices.Equal(w.args, row.args) || len(w.given) != len(row.given) {
			t.Errorf("%q: %v, %v", row.words, w, err)
			continue
		}
		for name, value := range row.given {
			if !w.has(name) || w.value(name) != value {
				t.Errorf("%q: flag %s is %q", row.words, name, w.value(name))
			}
		}
	}
}

func TestAPathIsRefusedInTheWordsOfZooKeepersClients(t *testing.T) {
	for path, want := range map[string]string{
		"":         "Path length must be > 0",
		"a":        "Path must start with / character",
		"/a/":      "Path must not end with / character",
		"/a//b":    `Invalid path string "/a//b" caused by empty node name specified @3`,
		"/a/../b":  `Invalid path string "/a/../b" caused by relative paths not allowed @4`,
		"/a/./b":   `Invalid path string "/a/./b" caused by relative paths not allowed @3`,
		"/..":      `Invalid path string "/.." caused by relative paths not allowed @2`,
		"/a\x00":   `Invalid path string "/a\x00" caused by null character not allowed @2`,
		"/a\u0001": "",
		"/":        "",
		"/a..b":    "",
		"/.a":      "",
		"/a/b.":    "",
	} {
		err := checkPath(path, false)
		valid := path == "/" || proto.ValidPath(path)
		if (err == nil) != valid {
			t.Errorf("%q: %v, but the server's rule says %v", path, err, valid)
		}
		if want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
	if err := checkPath("/a/", true); err != nil {
		t.Errorf("a sequential create below /a/: %v", err)
	}
}

func TestQuotasAreReadAndWrittenAsZkCliDoes(t *testing.T) {
	for text, want := range map[string]string{
		"count=4,bytes=5": "count=4,bytes=5",
		"count=4,bytes=5=;byteHardLimit=7;countHardLimit=6": "count=4,bytes=5=;byteHardLimit=7;countHardLimit=6",
		"":                        "count=-1,bytes=-1",
		"nonsense,count=x,bytes=": "count=-1,bytes=-1",
	} {
		if have := parseTrack([]byte(text)).String(); have != want {
			t.Errorf("%q became %q, want %q", text, have, want)
		}
	}
}

func TestTheWordsOfAServerAreRead(t *testing.T) {
	all := parseConnections("s:1", " /127.0.0.1:40376[1](queued=0,recved=4,sent=4,sid=0x1000,lop=GETD,est=1,to=6000,llat=2,avglat=4,maxlat=8)\n"+
		" /127.0.0.1:40400[0](queued=0,recved=1,sent=0)\n\nnonsense\n")
	if len(all) != 2 || all[0].Session != "0x1000" || all[0].Received != 4 || all[0].Timeout != 6000 || all[0].MaxMs != 8 ||
		all[0].Address != "127.0.0.1:40376" || all[1].Session != "" {
		t.Errorf("cons was read as %+v", all)
	}
	dump := "SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at X:\n\t0x1\nephemeral nodes dump:\nSessions with Ephemerals (1):\n" +
		"0x1:\n\t/eph\n\t/eph2\nConnections dump:\n1 expire at X:\n\tip: /127.0.0.1:1 sessionId: 0x1\n"
	owned := parseEphemerals(dump)
	if len(owned) != 1 || !slices.Equal(owned["0x1"], []string{"/eph", "/eph2"}) {
		t.Errorf("dump was read as %v", owned)
	}
	if m := parseMonitor("zk_version\t3.9.5\nzk_avg_latency\t0.25\n"); len(m) != 1 || m["avg_latency"] != 0.25 {
		t.Errorf("mntr was read as %v", m)
	}
}

func TestSizesAgesAndSessionsOfFind(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, "2k": 2048, "3M": 3 << 20} {
		if have, err := parseSize(text); err != nil || have != want {
			t.Errorf("size %s: %d, %v", text, have, err)
		}
	}
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "7d": 7 * 24 * time.Hour, "12h": 12 * time.Hour} {
		if have, err := parseAge(text); err != nil || have != want {
			t.Errorf("age %s: %v, %v", text, have, err)
		}
	}
	if _, err := parseSession("zz"); !errors.Is(err, ErrUsage) {
		t.Errorf("session zz: %v", err)
	}
	for _, wrong := range []string{"", "x", "1.5"} {
		if _, err := parseSize(wrong); err == nil {
			t.Errorf("size %q is none", wrong)
		}
	}
}

func TestPathsMoveBelowAnotherRoot(t *testing.T) {
	for _, row := range []struct{ path, from, to, want string }{
		{"/a", "/a", "/b", "/b"}, {"/a/x/y", "/a", "/b", "/b/x/y"}, {"/x", "/", "/b", "/b/x"},
		{"/", "/", "/b", "/b"}, {"/a/x", "/a", "/", "/x"}, {"", "/", "/b", "/b"},
	} {
		if have := below(row.path, row.from, row.to); have != row.want {
			t.Errorf("%s from %s to %s is %s, want %s", row.path, row.from, row.to, have, row.want)
		}
	}
	if within("/apple", "/app") || !within("/app", "/app") || !within("/app/x", "/app") || !within("/x", "/") {
		t.Error("within takes names for paths")
	}
}

// Every node that a dump can hold comes back as the same bytes.
func FuzzDataSurvivesItsJSON(f *testing.F) {
	for _, seed := range [][]byte{nil, {}, []byte("text"), {0xff, 0}, []byte("<&>\u2028")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var node nodeJSON
		node.setData(data)
		back := node.bytes()
		if string(back) != string(data) || (back == nil) != (data == nil) {
			t.Errorf("%q came back as %q", data, back)
		}
	})
}

// Answers of servers are outside bytes.
func FuzzWordsOfServersNeverPanic(f *testing.F) {
	f.Add(" /1.2.3.4:5[1](queued=0,recved=4,sid=0x1)\n0x1:\n\t/a\nzk_x\t1\ncount=1,bytes=2")
	f.Fuzz(func(_ *testing.T, text string) {
		parseConnections("s", text)
		parseEphemerals(text)
		parseMonitor(text)
		_ = parseTrack([]byte(text)).String()
		splitLine(text)
		parseMembers(text)
	})
}
