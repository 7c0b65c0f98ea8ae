package config

import (
	"sort"
	"strings"
)

// refuse stops the start for what this version cannot do.
func (l *loader) refuse() {
	for _, k := range table() {
		if k.effect != Refused {
			continue
		}
		for _, s := range l.given(k) {
			if k.asks != nil && !k.asks(s.value) {
				continue
			}
			if l.options.AllowUnprotected {
				l.warn(s, "is ignored because of --allow-unprotected. %s", strings.TrimSuffix(k.note, "."))
				continue
			}
			l.fail(s, &Error{Kind: ErrUnprotected, Reason: "asks for protection that the server would not have. " +
				k.note + " Start with --allow-unprotected to run without it"})
		}
	}
	if err := noGroups(l.config.Ensemble); err != nil {
		l.failAtSource(err)
	}
}

// fillReport lists the effective settings, then what was given in vain, and
// puts the warnings of a file in the order of its lines.
func (l *loader) fillReport() {
	sort.SliceStable(l.warnings, func(i, j int) bool { return l.warnings[i].at.line < l.warnings[j].at.line })
	for _, w := range l.warnings {
		l.report.Warnings = append(l.report.Warnings, Warning{Source: w.at.source(), Key: w.at.name, Text: w.text})
	}
	for _, k := range table() {
		if k.family() != "" || k.effect != Applied {
			for _, s := range l.given(k) {
				l.report.Values = append(l.report.Values, l.value(k, s.name, s.value, s.source()))
			}
			continue
		}
		source := "default"
		if s, ok := l.sources[k.name]; ok {
			source = s.source()
		}
		l.report.Values = append(l.report.Values, l.value(k, k.name, k.show(l.config), source))
	}
}

func (l *loader) value(k *key, name, value, source string) Value {
	secret := k.secret || strings.Contains(strings.ToLower(name), "password")
	if secret && value != "" {
		value = "(hidden)"
	}
	return Value{Key: name, Value: value, Source: source, Effect: k.effect, Note: k.note}
}
