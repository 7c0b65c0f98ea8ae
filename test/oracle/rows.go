package oracle

import (
	"fmt"
	"io"
	"slices"
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
}

// Rows are all differences on purpose that the oracle masks.
var Rows = []Row{
	{Name: "wrong-password-keeps-owner", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		return s.Verb() == "connect" && slices.Contains(s.Tokens, "passwd=wrong") && conn != s.Conn() &&
			len(real) == 1 && real[0].Kind == KindClose && len(ours) == 0
	}},
	{Name: "delete-container-refused", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		return s.Op() == "deleteContainer" && conn == s.Conn() && refused(ours)
	}},
	{Name: "create-session-refused", Outcome: func(s Step, conn string, real, ours []Entry) bool {
		return s.Op() == "createSession" && conn == s.Conn() && refused(ours)
	}},
}

// refused tells whether entries are the answer to an unknown op code: an
// error without a zxid, then a close.
func refused(e []Entry) bool {
	return len(e) == 2 && e[0].field("err") == errText(-6) && e[0].field("zxid") == "-1" && e[1].Kind == KindClose
}

// maskField tells whether a row masks this field, and counts it.
func maskField(rows []Row, used map[string]int, e Entry, real, ours Field) bool {
	for _, r := range rows {
		if r.Outcome != nil || r.Exchange != what(e) || r.Field != generic(real.Name) {
			continue
		}
		if r.When == nil || r.When(real.Value, ours.Value) {
			used[r.Name]++
			return true
		}
	}
	return false
}

// maskOutcome tells whether a row masks all that a step brought to a
// connection, and counts it.
func maskOutcome(rows []Row, used map[string]int, s Step, conn string, real, ours []Entry) bool {
	for _, r := range rows {
		if r.Outcome != nil && r.Outcome(s, conn, real, ours) {
			used[r.Name]++
			return true
		}
	}
	return false
}

// PrintUse writes how often each row was used in a run.
func PrintUse(w io.Writer, rows []Row, used map[string]int) {
	fmt.Fprintln(w, "rows of docs/compatibility.md used in this run:")
	for _, r := range rows {
		fmt.Fprintf(w, "  %6d  %s\n", used[r.Name], r.Name)
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
