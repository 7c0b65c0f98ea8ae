package config

import (
	"strings"
	"sync"
)

// table is every setting this version knows, in the order of the
// documentation. Load applies them in this order, so a setting that another
// one's default follows comes first.
var table = sync.OnceValue(func() []*key {
	var rows []*key
	add := func(keys []key) {
		for i := range keys {
			rows = append(rows, &keys[i])
		}
	}
	add(parserKeys())
	add(propertyKeys())
	refused := refusedKeys()
	for i := range refused {
		refused[i].effect = Refused
	}
	add(refused)
	add(noEffectKeys())
	return rows
})

// family returns the common beginning of the settings that a row stands for,
// or "" when it stands for one.
func (k *key) family() string {
	if prefix, ok := strings.CutSuffix(k.name, "*"); ok {
		return prefix
	}
	return ""
}

// find returns the row for a name as written in zoo.cfg: the one with exactly
// that name, else the family with the longest common beginning.
func find(name string) *key {
	var best *key
	for _, k := range table() {
		prefix := k.family()
		switch {
		case k.name == name:
			return k
		case prefix == "" || !strings.HasPrefix(name, prefix) || name == prefix:
		case best == nil || len(prefix) > len(best.family()):
			best = k
		}
	}
	return best
}

// findDocumented returns the row whose manual name is the given one.
func findDocumented(name string) *key {
	for _, k := range table() {
		if k.documented == name {
			return k
		}
	}
	return nil
}

// findProperty returns the row behind a Java system property, and the name
// that it has in zoo.cfg.
func findProperty(property string) (*key, string) {
	for _, k := range table() {
		if k.property == property {
			return k, k.name
		}
	}
	name, ok := strings.CutPrefix(property, "zookeeper.")
	if !ok {
		return nil, ""
	}
	if k := find(name); k != nil && k.property == "" {
		return k, name
	}
	return nil, ""
}

// similar returns a known name that differs from name only in case, or "".
func similar(name string) string {
	for _, k := range table() {
		if k.family() == "" && strings.EqualFold(k.name, name) {
			return k.name
		}
	}
	return ""
}
