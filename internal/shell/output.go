package shell

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zooraft/zooraft/internal/proto"
)

// jsonLine returns a value as one line of JSON, without escaping for HTML.
func jsonLine(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprintf(`{"error":{"message":%q}}`, err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// statJSON is a Stat as JSON. Zxids and sessions are hexadecimal strings,
// because JSON's numbers cannot hold them.
type statJSON struct {
	Czxid          string `json:"czxid"`
	Ctime          string `json:"ctime"`
	Mzxid          string `json:"mzxid"`
	Mtime          string `json:"mtime"`
	Pzxid          string `json:"pzxid"`
	Cversion       int32  `json:"cversion"`
	Version        int32  `json:"version"`
	Aversion       int32  `json:"aversion"`
	EphemeralOwner string `json:"ephemeralOwner"`
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
}

func statValue(s *proto.Stat) *statJSON {
	return &statJSON{
		Czxid: s.Czxid.String(), Ctime: isoTime(s.Ctime), Mzxid: s.Mzxid.String(), Mtime: isoTime(s.Mtime),
		Pzxid: s.Pzxid.String(), Cversion: s.CVersion, Version: s.Version, Aversion: s.AVersion,
		EphemeralOwner: hex(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

func hex(n int64) string { return fmt.Sprintf("0x%x", uint64(n)) }

func isoTime(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// printStat prints a Stat as zkCli does: Java's text of a date, in the local
// zone.
func printStat(w io.Writer, s *proto.Stat) {
	date := func(millis int64) string { return time.UnixMilli(millis).Format("Mon Jan 02 15:04:05 MST 2006") }
	fmt.Fprintf(w, "cZxid = %s\nctime = %s\nmZxid = %s\nmtime = %s\npZxid = %s\n",
		s.Czxid, date(s.Ctime), s.Mzxid, date(s.Mtime), s.Pzxid)
	fmt.Fprintf(w, "cversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = %s\ndataLength = %d\nnumChildren = %d\n",
		s.CVersion, s.Version, s.AVersion, hex(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

// nodeJSON is a node as JSON: an answer of get, and a line of dump. Data that
// is not UTF-8 stands in data64.
type nodeJSON struct {
	Path   string    `json:"path"`
	Data   *string   `json:"data,omitempty"`
	Data64 []byte    `json:"data64,omitempty"`
	Null   bool      `json:"null,omitempty"`
	Kind   string    `json:"kind,omitempty"`
	TTL    int64     `json:"ttl,omitempty"`
	ACL    []string  `json:"acl,omitempty"`
	Stat   *statJSON `json:"stat,omitempty"`
}

// setData puts data into the field that can hold it.
func (n *nodeJSON) setData(data []byte) {
	switch {
	case data == nil:
		n.Null = true
	case utf8.Valid(data):
		text := string(data)
		n.Data = &text
	default:
		n.Data64 = data
	}
}

// bytes returns the data that setData put in.
func (n *nodeJSON) bytes() []byte {
	switch {
	case n.Data != nil:
		return []byte(*n.Data)
	case n.Data64 != nil:
		return n.Data64
	case n.Null:
		return nil
	}
	return []byte{}
}

// hexRow is how many bytes a line of a hex dump shows.
const hexRow = 16

// hexDump draws data as get -x does.
func hexDump(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	var b strings.Builder
	rule := strings.Repeat("-", 3*hexRow+1)
	fmt.Fprintf(&b, "         +%s+\n         |", rule)
	for i := range hexRow {
		fmt.Fprintf(&b, "  %x", i)
	}
	fmt.Fprintf(&b, " |\n+--------+%s+%s+\n", rule, strings.Repeat("-", hexRow))
	for start := 0; start < len(data); start += hexRow {
		row := data[start:min(start+hexRow, len(data))]
		fmt.Fprintf(&b, "|%08x|", start)
		for _, c := range row {
			fmt.Fprintf(&b, " %02x", c)
		}
		b.WriteString(strings.Repeat("   ", hexRow-len(row)) + " |")
		for _, c := range row {
			if c <= 0x1f || c >= 0x7f {
				c = '.'
			}
			b.WriteByte(c)
		}
		b.WriteString(strings.Repeat(" ", hexRow-len(row)) + "|\n")
	}
	fmt.Fprintf(&b, "+--------+%s+%s+", rule, strings.Repeat("-", hexRow))
	return b.String()
}

// permLetters are the letters of permissions in zkCli's order, by bit.
var permLetters = []struct {
	letter byte
	bit    int32
}{{'c', 4}, {'d', 8}, {'r', 1}, {'w', 2}, {'a', 16}}

// permText returns the letters of permissions.
func permText(perms int32) string {
	var letters []byte
	for _, p := range permLetters {
		if perms&p.bit != 0 {
			letters = append(letters, p.letter)
		}
	}
	return string(letters)
}

// aclText returns one entry in the form that setAcl takes.
func aclText(acl proto.ACL) string {
	return acl.ID.Scheme + ":" + acl.ID.ID + ":" + permText(acl.Perms)
}

func aclTexts(acls []proto.ACL) []string {
	texts := []string{}
	for _, acl := range acls {
		texts = append(texts, aclText(acl))
	}
	return texts
}

// parseACL reads entries separated by commas. What is wrong is said by complain
// and left out, as zkCli does; the server refuses an empty list.
func parseACL(text string, complain func(format string, args ...any)) []proto.ACL {
	acls := []proto.ACL{}
	for _, entry := range strings.Split(text, ",") {
		if acl, ok := parseEntry(entry, complain); ok {
			acls = append(acls, acl)
		}
	}
	return acls
}

// parseEntry reads one entry, whose id may hold commas and colons.
func parseEntry(entry string, complain func(format string, args ...any)) (acl proto.ACL, ok bool) {
	first, last := strings.IndexByte(entry, ':'), strings.LastIndexByte(entry, ':')
	if first < 0 || first == last {
		complain("%s does not have the form scheme:id:perm", entry)
		return acl, false
	}
	acl.ID = proto.ID{Scheme: entry[:first], ID: entry[first+1 : last]}
	for _, letter := range entry[last+1:] {
		known := false
		for _, p := range permLetters {
			if rune(p.letter) == letter {
				acl.Perms, known = acl.Perms|p.bit, true
			}
		}
		if !known {
			complain("Unknown perm type: %c", letter)
		}
	}
	return acl, true
}
