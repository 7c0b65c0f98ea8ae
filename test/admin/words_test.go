package admin

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// observation is what one word said at one point of the script.
type observation struct{ at, text string }

// everyWord lists the words that only look.
var everyWord = strings.Fields("ruok isro gtmk srvr stat cons conf envi dump dirs wchs wchc wchp hash")

// perform runs the script on a fresh server and returns what the words said.
func perform(t *testing.T, server *peer.Server) []observation {
	s := &scene{t: t, server: server, names: map[string]string{}}
	var seen []observation
	look := func(at string, words ...string) {
		for _, word := range words {
			seen = append(seen, observation{at + ": " + strings.TrimRight(word, "\x00"), s.say(word)})
		}
	}

	// From here on every packet is counted on both sides alike.
	look("at start", "srst", "crst")
	look("idle", everyWord...)

	clients := s.connectAll()
	look("connected", everyWord...)
	clients.use()
	look("busy", everyWord...)
	clients.fail()
	look("write failed", everyWord...)
	clients.fireWatches()
	look("watches fired", everyWord...)
	clients.comeBack()
	look("session moved", everyWord...)
	clients.closeOne()
	look("one session closed", everyWord...)

	look("reset", "crst", "cons", "srst", "srvr", "stat", "cons")
	look("trace mask", "stmk\x00\x00\x00\x00\x00\x00\x00\x20", "gtmk", "stmk\xff\xff\xff\xff\xff\xff\xff\xff", "gtmk")
	look("more than a word", "ruok\n", "srvr\r\n")
	return seen
}

// differences compares two performances of one script.
func differences(want, got []observation) []string {
	var found []string
	for i, w := range want {
		if g := got[i]; g.text != w.text {
			found = append(found, fmt.Sprintf("%s\n--- Apache\n%s\n--- zooraft\n%s", w.at, w.text, g.text))
		}
	}
	return found
}

func TestWordsSayWhatApacheSays(t *testing.T) {
	options := allWords()
	apache := withoutSpentWatchers(perform(t, peer.StartApache(t, options)))
	for _, difference := range differences(apache, perform(t, peer.StartZooraft(t, options))) {
		t.Error(difference)
	}
}

// withoutSpentWatchers is the row wchs-live-watchers of docs/compatibility.md:
// Apache goes on listing and counting a connection whose data watches have all
// fired. It takes such sessions out of wchc, and their number out of the wchs
// of the same look.
func withoutSpentWatchers(seen []observation) []observation {
	spent := map[string]int{} // by look
	for i, o := range seen {
		at, word, _ := strings.Cut(o.at, ": ")
		if word != "wchc" {
			continue
		}
		var kept []string
		lines := strings.Split(o.text, "\n")
		for j, line := range lines {
			if strings.HasPrefix(line, "<") && (j+1 == len(lines) || !strings.HasPrefix(lines[j+1], "\t")) {
				spent[at]++
				continue
			}
			kept = append(kept, line)
		}
		seen[i].text = strings.Join(kept, "\n")
	}
	for i, o := range seen {
		at, word, _ := strings.Cut(o.at, ": ")
		if n := spent[at]; word == "wchs" && n > 0 {
			count, rest, _ := strings.Cut(o.text, " ")
			connections, err := strconv.Atoi(count)
			if err == nil {
				seen[i].text = fmt.Sprintf("%d %s", connections-n, rest)
			}
		}
	}
	return seen
}

func TestHashShowsADigestForEvery128Zxids(t *testing.T) {
	look := func(server *peer.Server) []observation {
		s := &scene{t: t, server: server, names: map[string]string{}}
		c := s.session("a", 30000)
		for i := range 300 {
			c.create(fmt.Sprintf("/n%d", i), "x", 0, proto.ErrOK)
		}
		return []observation{{"after 301 zxids: hash", s.say("hash")}}
	}
	apache, ours := look(peer.StartApache(t, allWords())), look(peer.StartZooraft(t, allWords()))
	if strings.Count(apache[0].text, "\n") != 2 {
		t.Errorf("the real server has %q", apache[0].text)
	}
	for _, difference := range differences(apache, ours) {
		t.Error(difference)
	}
}

func TestConfShowsWhatIsConfigured(t *testing.T) {
	options := allWords()
	for key, value := range map[string]string{
		"tickTime": "3000", "maxClientCnxns": "7", "minSessionTimeout": "5000", "maxSessionTimeout": "50000",
	} {
		options.Config[key] = value
	}
	look := func(server *peer.Server) []observation {
		s := &scene{t: t, server: server, names: map[string]string{}}
		return []observation{{"conf", s.say("conf")}}
	}
	apache, ours := look(peer.StartApache(t, options)), look(peer.StartZooraft(t, options))
	for _, difference := range differences(apache, ours) {
		t.Error(difference)
	}
}

func TestForbiddenWordsAreRefusedAsOnApache(t *testing.T) {
	refusals := func(server *peer.Server) []observation {
		s := &scene{t: t, server: server, names: map[string]string{}}
		var seen []observation
		for _, word := range append(everyWord, "srst", "crst", "stmk", "stmk\x00\x00\x00\x00\x00\x00\x00\x01", "abcd", "icfg", "telx") {
			text := s.say(word)
			if word == "srvr" || word == "stat" {
				// Both have been asked before, until they were ready.
				text = regexp.MustCompile(`(Received|Sent): \d+`).ReplaceAllString(text, "$1: N")
			}
			seen = append(seen, observation{word, text})
		}
		return seen
	}
	for name, config := range map[string]map[string]string{
		"by default":   nil,
		"an odd list":  {"4lw.commands.whitelist": " ruok , none,STAT,, mntr"},
		"a star among": {"4lw.commands.whitelist": "none, * ,ruok"},
	} {
		t.Run(name, func(t *testing.T) {
			apache := refusals(peer.StartApache(t, peer.Options{Config: config}))
			ours := refusals(peer.StartZooraft(t, peer.Options{Config: config}))
			for i := range apache {
				if word := strings.TrimRight(apache[i].at, "\x00\x01"); word == "mntr" {
					apache[i].text, ours[i].text = firstLine(apache[i].text), firstLine(ours[i].text)
				}
			}
			for _, difference := range differences(apache, ours) {
				t.Error(difference)
			}
		})
	}
}

// firstLine is enough of mntr here; its version is another one.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	key, _, _ := strings.Cut(line, "\t")
	return key
}

// A comparison that finds nothing proves something only if it finds planted
// differences.
func TestTheComparisonFindsPlantedDifferences(t *testing.T) {
	s := &scene{t: t, names: map[string]string{
		"/127.0.0.1:40000": "a", "0x100000cb10f0000": "session a", "0x100000cb10f0001": "session b",
	}}
	const (
		srvr = "Zookeeper version: 3.9.5-abc, built on 2026-02-11 20:18 UTC\nLatency min/avg/max: 0/7.0/60\n" +
			"Received: 3\nSent: 2\nConnections: 1\nOutstanding: 0\nZxid: 0x100000002\nMode: standalone\nNode count: 5\n"
		cons = " /127.0.0.1:40000[1](queued=0,recved=5,sent=5,sid=0x100000cb10f0000,lop=GETD,est=1796035507649,to=10000," +
			"lcxid=0x4,lzxid=0x8,lresp=1410457,llat=1,minlat=0,avglat=17,maxlat=60)\n\n"
		dump = "SessionTracker dump:\nSession Sets (1)/(2):\n2 expire at Mon Nov 30 10:45:19 UTC 2026:\n" +
			"\t0x100000cb10f0001\n\t0x100000cb10f0000\n"
		wchc = "0x100000cb10f0001\n\t/x\n\t/a\n0x100000cb10f0000\n\t/a\n\n"
	)
	for _, c := range []struct {
		name, word, text string
		from, to         string // the change to the text
		same             bool
	}{
		{"another latency", "srvr", srvr, "0/7.0/60", "1/2.5/3", true},
		{"another epoch", "srvr", srvr, "0x100000002", "0x2", true},
		{"an average without decimals", "srvr", srvr, "0/7.0/60", "0/7/60", false},
		{"one packet more", "srvr", srvr, "Received: 3", "Received: 4", false},
		{"another counter", "srvr", srvr, "0x100000002", "0x3", false},
		{"another date form", "srvr", srvr, "2026-02-11", "02/11/2026", false},
		{"a missing line", "srvr", srvr, "Outstanding: 0\n", "", false},
		{"other times", "cons", cons, "est=1796035507649", "est=1796035507999", true},
		{"seconds for milliseconds", "cons", cons, "est=1796035507649", "est=1796035507", false},
		{"another last operation", "cons", cons, "lop=GETD", "lop=EXIS", false},
		{"no last response", "cons", cons, "lresp=1410457", "lresp=0", false},
		{"another session", "cons", cons, "sid=0x100000cb10f0000", "sid=0x100000cb10f0001", false},
		{"an unknown address", "cons", cons, ":40000", ":40001", false},
		{"another order of members", "dump", dump, "\t0x100000cb10f0001\n\t0x100000cb10f0000\n", "\t0x100000cb10f0000\n\t0x100000cb10f0001\n", true},
		{"other buckets", "dump", dump, "(1)/(2)", "(2)/(2)", true},
		{"a missing member", "dump", dump, "\t0x100000cb10f0001\n", "", false},
		{"another date of expiry", "dump", dump, "Mon Nov 30", "30 Nov", false},
		{"another order of sessions", "wchc", wchc, wchc, "0x100000cb10f0000\n\t/a\n0x100000cb10f0001\n\t/a\n\t/x\n\n", true},
		{"a watch of another session", "wchc", wchc, wchc, "0x100000cb10f0001\n\t/a\n0x100000cb10f0000\n\t/a\n\t/x\n\n", false},
		{"no last empty line", "wchc", wchc, "\t/a\n\n", "\t/a\n", false},
	} {
		changed := strings.Replace(c.text, c.from, c.to, 1)
		if changed == c.text {
			t.Fatalf("%s: the change does nothing", c.name)
		}
		found := differences([]observation{{"", s.reduce(c.word, c.text)}}, []observation{{"", s.reduce(c.word, changed)}})
		if (len(found) == 0) != c.same {
			t.Errorf("%s: %d differences found\n%s", c.name, len(found), strings.Join(found, "\n"))
		}
	}
}

// The script must not differ by chance: the real server is compared with
// itself.
func TestTheRealServerSaysTheSameTwice(t *testing.T) {
	options := allWords()
	first := perform(t, peer.StartApache(t, options))
	for _, difference := range differences(first, perform(t, peer.StartApache(t, options))) {
		t.Error(difference)
	}
}
