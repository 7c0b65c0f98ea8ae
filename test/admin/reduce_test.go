package admin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rule replaces what must differ between two servers. What it does not match
// stays, and is compared as it is.
type rule struct {
	pattern *regexp.Regexp
	replace string
}

func rules(pairs ...string) []rule {
	var list []rule
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, rule{regexp.MustCompile(`(?m)` + pairs[i]), pairs[i+1]})
	}
	return list
}

var (
	serverRules = rules(
		`^Zookeeper version: 3\.9\.5-[A-Za-z0-9.\-]+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC$`, "Zookeeper version: VERSION",
		`^Latency min/avg/max: \d+/\d+\.\d+/\d+$`, "Latency min/avg/max: LATENCY",
	)
	wordRules = map[string][]rule{
		"srvr": serverRules,
		"stat": serverRules,
		"cons": rules(
			`,est=1\d{12},`, ",est=TIME,",
			`,lresp=[1-9]\d*,`, ",lresp=CLOCK,",
			`,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)$`, ",LATENCIES)",
		),
		"conf": rules(
			`^clientPort=\d+$`, "clientPort=PORT",
			`^(dataDir|dataLogDir)=/.+$`, "$1=DIRECTORY",
			`^(dataDirSize|dataLogSize)=\d+$`, "$1=BYTES",
		),
		"dirs": rules(`^(datadir_size|logdir_size): \d+$`, "$1: BYTES"),
		"hash": rules(`: -?\d+$`, ": DIGEST"),
		"envi": rules(
			`^zookeeper\.version=3\.9\.5-[A-Za-z0-9.\-]+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC$`, "zookeeper.version=VERSION",
			`^(java\..+|host\.name|user\.dir)=.+$`, "$1=TEXT",
			`^(os\.memory\..+)=\d+MB$`, "$1=MEMORY",
		),
		"dump": rules(
			`^(Session|Connections) Sets \(\d+\)/`, "$1 Sets (BUCKETS)/",
			// How members fall into buckets depends on the clock.
			`^\d+ expire at [A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \S+ \d{4}:\n`, "",
		),
	}
	addressPattern = regexp.MustCompile(`/127\.0\.0\.1:\d+`)
	sessionPattern = regexp.MustCompile(`0x[0-9a-f]{13,16}`)
	hashPattern    = regexp.MustCompile(`(?m)^([0-9a-f]+): `)
	zxidPattern    = regexp.MustCompile(`(?m)(^Zxid: |,lzxid=)0x([0-9a-f]+)`)
)

// reduce takes out of a word's text what must differ, names clients, and puts
// lines that have no order into one.
func (s *scene) reduce(word, text string) string {
	text = zxidPattern.ReplaceAllStringFunc(text, counterOnly)
	if word == "hash" {
		text = hashPattern.ReplaceAllString(text, "0x$1: ")
		text = regexp.MustCompile(`(?m)^0x[0-9a-f]+`).ReplaceAllStringFunc(text, counterOnly)
	}
	for _, r := range wordRules[word] {
		text = r.pattern.ReplaceAllString(text, r.replace)
	}
	name := func(found string) string {
		if name, ok := s.names[found]; ok {
			return "<" + name + ">"
		}
		return found
	}
	text = addressPattern.ReplaceAllStringFunc(text, name)
	text = sessionPattern.ReplaceAllStringFunc(text, name)
	switch word {
	case "stat", "cons", "dump":
		return sortBlocks(text, func(line string) bool {
			return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "<")
		})
	case "wchc", "wchp":
		return sortBlocks(text, func(line string) bool { return line != "" })
	}
	return text
}

// counterOnly takes the epoch out of a zxid, so that distances count: one
// server starts in epoch 0, the other in epoch 1. -1 stays.
func counterOnly(found string) string {
	prefix, digits, _ := strings.Cut(found, "0x")
	zxid, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || int64(zxid) == -1 {
		return found
	}
	return fmt.Sprintf("%s0x%x", prefix, uint32(zxid))
}

// sortBlocks sorts neighbouring lines for which movable says yes. Lines that
// begin with a tab belong to the line above them without one, where there is
// one, and are sorted within.
func sortBlocks(text string, movable func(line string) bool) string {
	var out, block []string
	flush := func() {
		slices.Sort(block)
		out = append(out, block...)
		block = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case !movable(line):
			flush()
			out = append(out, line)
		case strings.HasPrefix(line, "\t") && len(block) > 0 && !strings.HasPrefix(block[0], "\t"):
			head, tail, _ := strings.Cut(block[len(block)-1], "\n")
			members := append(strings.Split(tail, "\n"), line)
			if tail == "" {
				members = []string{line}
			}
			slices.Sort(members)
			block[len(block)-1] = head + "\n" + strings.Join(members, "\n")
		default:
			block = append(block, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}
