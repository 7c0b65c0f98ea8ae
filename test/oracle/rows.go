package oracle

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Row is a difference that is on purpose: a row of docs/compatibility.md, by
// its name there. It masks one field of one kind of exchange, or, where one
// server answers and the other closes, the outcome of one kind of exchange.
type Row struct {
	Name string
	// Exchange and Field name what is masked: what(entry), and a field's name
	// without indices. When narrows it to the values that it is about.
	Exchange, Field string
	When            func(real, ours string) bool
	// Outcome, when set, stands instead of Exchange and Field: it tells
	// whether all that a step brought to one connection is as the row says. A
	// script goes no further with a connection that only one side has closed.
	Outcome func(s Step, conn string, real, ours []Entry) bool
	// Order, when set, stands instead of both: Exchange's list of these fields
	// is put into an order before it is compared; Order tells which
	// neighbours may change places.
	Order func(a, b []Field) bool
}

// Rows are all differences on purpose that the oracle masks.
var Rows = []Row{
	{Name: "identity-order", Exchange: "whoAmI", Field: "ids", Order: func(a, b []Field) bool { return true }},
	{Name: "identity-order", Exchange: "getACL", Field: "acl", Order: func(a, b []Field) bool {
		return a[0].Value == b[0].Value && a[1].Value == `"digest"` && b[1].Value == `"digest"`
	}},
	{Name: "supplementary-characters", Exchange: "sync", Field: "path", When: sameAfterCESU},
	{Name: "supplementary-characters", Exchange: "getACL", Field: "acl[].id", When: sameAfterCESU},
	{Name: "supplementary-characters", Exchange: "whoAmI", Field: "ids[].user", When: sameAfterCESU},
	{Name: "wrong-password-keeps-owner", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		return s.Verb() == "connect" && slices.Contains(s.Tokens, "passwd=wrong") && conn != s.Conn() &&
			len(real) == 1 && real[0].Kind == KindClose && len(ours) == 0
	}},
	{Name: "moved-session-is-closed", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		_, resumes := parseArgs(s.Tokens[min(2, len(s.Tokens)):]).named["session"]
		return s.Verb() == "connect" && resumes && conn != s.Conn() &&
			len(real) == 0 && len(ours) == 1 && ours[0].Kind == KindClose
	}},
	{Name: "delete-container-refused", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		return s.Op() == "deleteContainer" && conn == s.Conn() && refused(ours)
	}},
	{Name: "create-ttl-needs-ttl-mode", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		a := parseArgs(s.Tokens[min(3, len(s.Tokens)):])
		mode := a.num("flags", 0)
		return s.Op() == "createTTL" && conn == s.Conn() && a.num("ttl", -1) < 0 && mode >= 0 && mode <= 4 &&
			len(ours) == 1 && ours[0].field("err") == errText(-8) && len(real) == 1
	}},
	{Name: "container-flag-in-multi", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		text := s.String()
		return s.Op() == "multi" && conn == s.Conn() && strings.Contains(text, "createContainer") &&
			(strings.Contains(text, "flags=1") || strings.Contains(text, "flags=3")) &&
			len(real) > 0 && hasValue(real[0], errText(-108)) && len(ours) > 0 && !hasValue(ours[0], errText(-108))
	}},
	{Name: "create-session-refused", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		return s.Op() == "createSession" && conn == s.Conn() && refused(ours)
	}},
}

// hasValue tells whether any field of an entry has this value.
func hasValue(e Entry, value string) bool {
	return slices.ContainsFunc(e.Fields, func(f Field) bool { return f.Value == value })
}

// refused tells whether entries are the answer to an unknown op code: an
// error without a zxid, then a close.
func refused(e []Entry) bool {
	return len(e) == 2 && e[0].field("err") == errText(-6) && e[0].field("zxid") == "-1" && e[1].Kind == KindClose
}

// The node of the membership has no zxid of its own in a real ensemble,
// however its Stat is asked for.
func init() {
	for _, exchange := range []string{"getData", "exists", "getACL", "getChildren2", "multiRead"} {
		stat := "stat."
		if exchange == "multiRead" {
			stat = "op[].stat."
		}
		Rows = append(Rows,
			Row{Name: "config-node-zxid", Exchange: exchange, Field: stat + "mzxid", When: func(real, ours string) bool {
				return real == "0" && ours == "old"
			}},
			Row{Name: "config-node-zxid", Exchange: exchange, Field: stat + "mtime", When: func(real, ours string) bool {
				return real == notItsTime && ours == "t"
			}})
	}
}

// maskField tells whether a row masks this field, and counts it.
func maskField(rows []Row, used *Use, e Entry, real, ours Field) bool {
	for _, r := range rows {
		if r.Outcome != nil || r.Order != nil || r.Exchange != what(e) || r.Field != generic(real.Name) {
			continue
		}
		if r.When == nil || r.When(real.Value, ours.Value) {
			used.add(r.Name)
			return true
		}
	}
	return false
}

// maskOutcome tells whether a row masks all that a step brought to a
// connection, and counts it.
func maskOutcome(rows []Row, used *Use, s Step, conn string, real, ours []Entry) bool {
	for _, r := range rows {
		if r.Outcome != nil && r.Outcome(s, conn, real, ours) {
			used.add(r.Name)
			return true
		}
	}
	return false
}

// reorder sorts what rows allow to be in another order and counts a row that
// changed something.
func reorder(rows []Row, used *Use, e Entry) Entry {
	for _, r := range rows {
		if r.Order == nil || r.Exchange != what(e) {
			continue
		}
		e.Fields = slices.Clone(e.Fields)
		if sortGroups(e.Fields, r) {
			used.add(r.Name)
		}
	}
	return e
}

// sortGroups sorts neighbouring list elements that may change places, and
// tells whether any did. An element is the run of fields with one index.
func sortGroups(fields []Field, r Row) (changed bool) {
	for swapped := true; swapped; {
		swapped = false
		for i := 0; i < len(fields); {
			a := element(fields[i:], r.Field)
			if len(a) == 0 {
				i++
				continue
			}
			b := element(fields[i+len(a):], r.Field)
			if len(b) == len(a) && r.Order(a, b) && joined(b) < joined(a) {
				for k := range a {
					a[k].Value, b[k].Value = b[k].Value, a[k].Value
				}
				swapped, changed = true, true
			}
			i += len(a)
		}
	}
	return changed
}

// element returns the leading fields that belong to one element of the list.
func element(fields []Field, list string) []Field {
	n := 0
	for n < len(fields) && strings.HasPrefix(fields[n].Name, list+"[") &&
		index(fields[n].Name) == index(fields[0].Name) {
		n++
	}
	return fields[:n]
}

func index(name string) string {
	_, rest, _ := strings.Cut(name, "[")
	i, _, _ := strings.Cut(rest, "]")
	return i
}

func joined(fields []Field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f.Value + "\x00")
	}
	return b.String()
}

// sameAfterCESU tells whether the real server's text is ours with each
// supplementary character as two surrogates of three bytes.
func sameAfterCESU(real, ours string) bool {
	u, err := strconv.Unquote(ours)
	if err != nil {
		return false
	}
	var b []byte
	for _, r := range u {
		if r < 0x10000 {
			b = utf8.AppendRune(b, r)
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		for _, s := range []rune{hi, lo} {
			b = append(b, 0xe0|byte(s>>12), 0x80|byte(s>>6)&0x3f, 0x80|byte(s)&0x3f)
		}
	}
	return real == strconv.QuoteToASCII(string(b))
}

// Use counts how often each row was used in a run. Runs of several pairs share
// one; nil counts nothing.
type Use struct {
	mu    sync.Mutex
	times map[string]int // by row; guarded by mu
}

// add counts one use and returns how many there are.
func (u *Use) add(row string) int {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times == nil {
		u.times = map[string]int{}
	}
	u.times[row]++
	return u.times[row]
}

// PrintUse writes how often each row was used in a run that has ended.
func PrintUse(w io.Writer, rows []Row, used *Use) {
	fmt.Fprintln(w, "rows of docs/compatibility.md used in this run:")
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
			fmt.Fprintf(w, "  %6d  %s\n", used.times[r.Name], r.Name)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
