package config

import (
	"fmt"
	"io"
	"strings"
)

// Report says where a configuration came from and what an operator should know
// about it.
type Report struct {
	// Values are the effective settings in the order of the documentation, and
	// after them every setting that was given and has no effect here.
	Values []Value
	// Warnings are in the order of the sources.
	Warnings []Warning
}

// Value is one effective setting.
type Value struct {
	// Key is the name in zoo.cfg.
	Key string
	// Value is the effective value, hidden for a secret.
	Value string
	// Source is "default", "file:line", a -D definition, the name of an
	// environment variable, an argument or a flag.
	Source string
	// Effect says what the setting does here.
	Effect Effect
	// Note says why a setting has no effect.
	Note string
}

// Warning is something that does not stop the start.
type Warning struct {
	// Source is where it was written, as in Value.
	Source string
	// Key is the name as it was written.
	Key string
	// Text is a sentence without a full stop.
	Text string
}

func (w Warning) String() string { return fmt.Sprintf("%s: %s: %s", w.Source, w.Key, w.Text) }

// Write prints the report for `zooraft config check`.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	section := func(title string, effects ...Effect) {
		fmt.Fprintf(&b, "%s\n", title)
		rows := 0
		for _, v := range r.Values {
			for _, effect := range effects {
				if v.Effect == effect {
					rows++
					writeValue(&b, v)
				}
			}
		}
		if rows == 0 {
			b.WriteString("  none\n")
		}
	}
	section("Effective configuration", Applied)
	section("\nGiven, without effect here", NoEffect, Refused)
	b.WriteString("\nWarnings\n")
	if len(r.Warnings) == 0 {
		b.WriteString("  none\n")
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "  %s\n", warning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeValue(b *strings.Builder, v Value) {
	line := fmt.Sprintf("  %-48s %s", v.Key+" = "+v.Value, v.Source)
	if v.Effect != Applied && v.Note != "" {
		line += ": " + v.Note
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
