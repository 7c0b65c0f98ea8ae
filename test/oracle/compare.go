package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Difference is the first place where two transcripts part.
type Difference struct {
	Script Script
	Step   int
	Conn   string
	Field  string // the field that differs, or what is missing
	Kind   string // exchange and field: differences of one kind have one cause, mostly
	Real   []Entry
	Ours   []Entry
	at     int // index of the entry that differs
	names  [2]string
}

// Compare returns the first difference between two transcripts of one script
// that no row masks, or nil. used counts how often each row masked a field.
func Compare(script Script, real, ours Transcript, rows []Row, used *Use) *Difference {
	a, b := group(Normalise(real)), group(Normalise(ours))
	for step := 0; step <= len(script.Steps); step++ {
		for _, conn := range connsOf(step, a, b) {
			k := place{step, conn}
			d := compareLists(a[k], b[k], stepAt(script, step), conn, rows, used)
			if d == nil {
				continue
			}
			d.Script, d.Step, d.Conn = script, step, conn
			d.Real, d.Ours = a[k], b[k]
			d.names = [2]string{real.Server, ours.Server}
			return d
		}
	}
	return nil
}

// place is a step and a connection.
type place struct {
	step int
	conn string
}

func group(entries []Entry) map[place][]Entry {
	m := map[place][]Entry{}
	for _, e := range entries {
		k := place{e.Step, e.Conn}
		m[k] = append(m[k], e)
	}
	return m
}

func connsOf(step int, maps ...map[place][]Entry) []string {
	seen := map[string]bool{}
	for _, m := range maps {
		for k := range m {
			if k.step == step {
				seen[k.conn] = true
			}
		}
	}
	return sortedKeys(seen)
}

func compareLists(real, ours []Entry, step Step, conn string, rows []Row, used *Use) *Difference {
	for i := 0; i < max(len(real), len(ours)); i++ {
		var d *Difference
		switch {
		case i >= len(real):
			d = &Difference{Field: "extra " + what(ours[i]), Kind: what(ours[i]) + ": extra"}
		case i >= len(ours):
			d = &Difference{Field: "missing " + what(real[i]), Kind: what(real[i]) + ": missing"}
		default:
			d = compareEntries(real[i], ours[i], rows, used)
		}
		if d == nil {
			continue
		}
		if maskOutcome(rows, used, step, conn, real, ours) {
			return nil
		}
		d.at = i
		return d
	}
	return nil
}

func stepAt(s Script, i int) Step {
	if i < len(s.Steps) {
		return s.Steps[i]
	}
	return Step{}
}

// what names an entry's kind of exchange.
func what(e Entry) string {
	switch e.Kind {
	case KindFrame:
		return e.Exch
	case KindConnect:
		return "connect"
	}
	return string(e.Kind) + " after " + e.Exch
}

func compareEntries(real, ours Entry, rows []Row, used *Use) *Difference {
	if real.Kind != ours.Kind || real.Exch != ours.Exch {
		return &Difference{Field: fmt.Sprintf("%s instead of %s", what(ours), what(real)),
			Kind: what(real) + ": " + what(ours) + " instead"}
	}
	if !slices.Equal(real.Fields, ours.Fields) {
		// Only ours counts as a use: theirs is sorted to compare with.
		real, ours = reorder(rows, nil, real), reorder(rows, used, ours)
	}
	for i := 0; i < max(len(real.Fields), len(ours.Fields)); i++ {
		var f, g Field
		if i < len(real.Fields) {
			f = real.Fields[i]
		}
		if i < len(ours.Fields) {
			g = ours.Fields[i]
		}
		if f == g || f.Name == g.Name && maskField(rows, used, real, f, g) {
			continue
		}
		name := f.Name
		if name == "" || name != g.Name {
			name = strings.Trim(f.Name+"/"+g.Name, "/")
		}
		return &Difference{Field: name, Kind: fmt.Sprintf("%s: %s %s → %s", what(real), generic(name), short(f.Value), short(g.Value))}
	}
	return nil
}

// generic takes indices out of a field's name.
func generic(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < '0' || r > '9' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// short keeps kinds readable: numbers that depend on the script are left out.
func short(v string) string {
	if strings.HasPrefix(v, "+") {
		return "+n"
	}
	if len(v) > 24 {
		return v[:24] + "…"
	}
	return v
}

// String shows a difference with its step and both sides.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "script %s, step %d: %s\n", d.Script.Name, d.Step, stepAt(d.Script, d.Step))
	fmt.Fprintf(&b, "connection %s: %s\n", d.Conn, d.Field)
	for i, side := range [][]Entry{d.Real, d.Ours} {
		fmt.Fprintf(&b, "  %s:\n", d.names[i])
		for j, e := range side {
			mark := "    "
			if j == d.at {
				mark = "  > "
			}
			fmt.Fprintf(&b, "%s%s\n", mark, clip(e.String()))
			if j == d.at && len(e.raw) > 0 && len(e.raw) <= 200 {
				fmt.Fprintf(&b, "      bytes %x\n", e.raw)
			}
		}
		if d.at >= len(side) {
			fmt.Fprintf(&b, "  > nothing\n")
		}
	}
	return b.String()
}

func clip(s string) string {
	if len(s) > 1500 {
		return s[:1500] + "…"
	}
	return s
}
