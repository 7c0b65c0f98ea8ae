package zkcli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What must differ between two servers, and nothing else, is masked: times,
// session ids, and of a zxid its epoch, so that distances still count.
var (
	timeLine   = regexp.MustCompile(`(?m)^([cm]time) = .*$`)
	ownerLine  = regexp.MustCompile(`(?m)^(ephemeralOwner) = 0x[1-9a-f][0-9a-f]*$`)
	zxidLine   = regexp.MustCompile(`(?m)^([cmp]Zxid) = 0x([0-9a-f]+)$`)
	eventZxid  = regexp.MustCompile(`zxid: (\d+)`)
	sessionHex = regexp.MustCompile(`0x[1-9a-f][0-9a-f]{10,}`)
	eventTitle = regexp.MustCompile(`\n?WATCHER::\n`)
	eventLine  = regexp.MustCompile(`\n?(WatchedEvent [^\n]*)\n`)
)

// identities is what whoami prints: the server's own hash order, unlike ours.
var identities = regexp.MustCompile(`Auth scheme: User(\n\w+: \S*)+`)

// Mask takes out of a shell's text what differs between any two servers.
func Mask(text, address string) string {
	text = strings.ReplaceAll(text, address, "ADDRESS")
	text = timeLine.ReplaceAllString(text, "$1 = TIME")
	text = ownerLine.ReplaceAllString(text, "$1 = SESSION")
	text = zxidLine.ReplaceAllStringFunc(text, func(line string) string {
		parts := zxidLine.FindStringSubmatch(line)
		zxid, err := strconv.ParseUint(parts[2], 16, 64)
		if err != nil || zxid > 1<<63 {
			return line
		}
		return fmt.Sprintf("%s = counter %d", parts[1], uint32(zxid))
	})
	text = eventZxid.ReplaceAllStringFunc(text, func(field string) string {
		zxid, err := strconv.ParseUint(strings.TrimPrefix(field, "zxid: "), 10, 64)
		if err != nil {
			return field
		}
		return fmt.Sprintf("zxid: counter %d", uint32(zxid))
	})
	text = identities.ReplaceAllStringFunc(text, func(block string) string {
		lines := strings.Split(block, "\n")
		slices.Sort(lines[1:])
		return strings.Join(lines, "\n")
	})
	return sessionHex.ReplaceAllString(text, "SESSION")
}

// SplitEvents takes the watch events out of a shell's text. The shell prints
// them from another thread than replies, each in two pieces, "\nWATCHER::\n" and
// "\nWatchedEvent …\n", and the reply's lines may fall before, between or after
// these. So their place in the text says nothing; their order among each other
// does.
func SplitEvents(text string) (rest string, events []string) {
	for _, match := range eventLine.FindAllStringSubmatch(text, -1) {
		events = append(events, match[1])
	}
	text = eventTitle.ReplaceAllString(text, "")
	text = eventLine.ReplaceAllString(text, "")
	// Without a connection the shell says so after the marker, too late for its
	// own exchange.
	return strings.ReplaceAll(text, "Not connected\n", ""), events
}
