package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Effect says what a setting does in this server.
type Effect string

// The effects.
const (
	// Applied settings do here what they do in Apache.
	Applied Effect = "applied"
	// NoEffect settings are accepted, checked as Apache checks them, and change
	// nothing here.
	NoEffect Effect = "no effect"
	// Refused settings stop the start, because they ask for protection that this
	// version does not have.
	Refused Effect = "refused"
)

// place says where a setting can be given.
type place int

const (
	// inFile settings belong to the parser of zoo.cfg: a -D does not reach them.
	inFile place = iota
	// inBoth settings are Java system properties that the file can set too; the
	// file wins, because Apache reads it later.
	inBoth
	// byDefine settings can only be given by -D.
	byDefine
)

// key is one setting: how it is written, what reads it, what it does here.
type key struct {
	// name is how it is written in zoo.cfg. One that ends in ".*" stands for all
	// that begin so.
	name string
	// property is the Java system property; empty means "zookeeper." + name.
	property string
	// documented is the name that Apache's manual prints for it although Apache
	// does not read that name. We read it, and say so.
	documented string
	place      place
	effect     Effect
	// unit and since are for the documentation; since is Apache's version.
	unit, since string
	// note is a sentence: what it does here, or why it does nothing.
	note string
	// asks reports whether a value asks for the protection; nil means any does.
	asks func(raw string) bool
	// missed reports whether someone who gave a value of a setting without effect
	// would miss it, so that a warning says that it has none; nil means no.
	missed func(raw string) bool
	// set puts a value into the configuration, or returns why it is impossible,
	// or a fallback when Apache goes on with another value. nil accepts all.
	set func(c *Config, raw string) error
	// show prints the effective value; nil for a setting without one.
	show func(c *Config) string
	// secret values are not printed.
	secret bool
}

// propertyName is the Java system property behind the setting.
func (k *key) propertyName() string {
	if k.property != "" {
		return k.property
	}
	return "zookeeper." + k.name
}

// fallback is returned by a setter when Apache does not stop at a bad value but
// uses another one. It becomes a warning.
type fallback struct{ text string }

func (f fallback) Error() string { return f.text }

func fallbackf(format string, args ...any) error { return fallback{fmt.Sprintf(format, args...)} }

// idle marks a setting that is kept and that nothing reads, with the reason;
// missed as in key.
func (k key) idle(note string, missed func(raw string) bool) key {
	k.effect, k.note, k.missed = NoEffect, note, missed
	return k
}

// isTrue is Java's Boolean.parseBoolean.
func isTrue(raw string) bool { return strings.EqualFold(raw, "true") }

// in returns a copy of k that can be given in place p.
func (k key) in(p place) key { k.place = p; return k }

// strictInt is an int that the parser reads; anything else stops the start.
func strictInt(name, note string, field func(*Config) *int) key {
	return key{
		name: name, note: note, effect: Applied,
		set: func(c *Config, raw string) (err error) {
			n, err := parseInt(raw)
			if err == nil {
				*field(c) = n
			}
			return err
		},
		show: func(c *Config) string { return strconv.Itoa(*field(c)) },
	}
}

// strictMillis is strictInt for a time in milliseconds.
func strictMillis(name, note string, field func(*Config) *time.Duration) key {
	return key{
		name: name, note: note, effect: Applied, unit: "ms",
		set: func(c *Config, raw string) error {
			n, err := parseInt(raw)
			if err == nil {
				*field(c) = time.Duration(n) * time.Millisecond
			}
			return err
		},
		show: func(c *Config) string { return millis(*field(c)) },
	}
}

// strictBool is a boolean that the parser reads.
func strictBool(name, note string, field func(*Config) *bool) key {
	return key{
		name: name, note: note, effect: Applied,
		set: func(c *Config, raw string) error {
			b, err := parseStrictBool(raw)
			if err == nil {
				*field(c) = b
			}
			return err
		},
		show: func(c *Config) string { return strconv.FormatBool(*field(c)) },
	}
}

// text is a string.
func text(name, note string, field func(*Config) *string) key {
	return key{
		name: name, note: note, effect: Applied,
		set:  func(c *Config, raw string) error { *field(c) = raw; return nil },
		show: func(c *Config) string { return *field(c) },
	}
}

// looseInt is an int read as Java's Integer.getInteger reads a system property:
// decimal, 0x or octal; a value that is none of them leaves the default.
func looseInt(name, note string, field func(*Config) *int) key {
	return looseNumber(name, note, "", 32,
		func(c *Config, n int64) { *field(c) = int(n) },
		func(c *Config) int64 { return int64(*field(c)) })
}

// looseMillis is looseInt for a time in milliseconds.
func looseMillis(name, note string, bits int, field func(*Config) *time.Duration) key {
	return looseNumber(name, note, "ms", bits,
		func(c *Config, n int64) { *field(c) = clampMillis(n) },
		func(c *Config) int64 { return field(c).Milliseconds() })
}

// looseKilobytes is a 64-bit number of KiB kept in bytes.
func looseKilobytes(name, note string, field func(*Config) *int64) key {
	return looseNumber(name, note, "KiB", 64,
		func(c *Config, n int64) { *field(c) = min(n, 1<<52) * 1024 },
		func(c *Config) int64 { return *field(c) / 1024 })
}

func looseNumber(name, note, unit string, bits int, store func(*Config, int64), load func(*Config) int64) key {
	return key{
		name: name, note: note, unit: unit, effect: Applied, place: inBoth,
		set: func(c *Config, raw string) error {
			n, ok := decode(raw, bits)
			if !ok {
				return fallbackf("%q is not an integer of %d bits; as in Apache it stays %d", raw, bits, load(c))
			}
			store(c, n)
			return nil
		},
		show: func(c *Config) string { return strconv.FormatInt(load(c), 10) },
	}
}

// atLeast makes a loose number that is too small fall back to one that is not,
// as Apache does.
func (k key) atLeast(least int64, otherwise string) key {
	set := k.set
	k.set = func(c *Config, raw string) error {
		if n, ok := decode(raw, 64); ok && n < least {
			if err := set(c, otherwise); err != nil {
				return err
			}
			return fallbackf("%s must be %d or more; as in Apache it becomes %s", raw, least, otherwise)
		}
		return set(c, raw)
	}
	return k
}

// looseBool is a boolean read as Java's Boolean.parseBoolean reads it: true in
// any case, and false for everything else.
func looseBool(name, note string, field func(*Config) *bool) key {
	return key{
		name: name, note: note, effect: Applied, place: inBoth,
		set: func(c *Config, raw string) error {
			*field(c) = strings.EqualFold(raw, "true")
			if _, err := parseStrictBool(raw); err != nil {
				return fallbackf("%q is neither true nor false; as in Apache it counts as false", raw)
			}
			return nil
		},
		show: func(c *Config) string { return strconv.FormatBool(*field(c)) },
	}
}

// exactWord is a switch that one exact word turns on (or, with off set, off),
// and every other value leaves as it is by default.
func exactWord(name, note, word string, off bool, field func(*Config) *bool) key {
	return key{
		name: name, note: note, effect: Applied, place: inBoth,
		set: func(c *Config, raw string) error {
			*field(c) = (raw == word) != off
			if raw != "yes" && raw != "no" {
				return fallbackf("%q is neither yes nor no; as in Apache only %s counts", raw, word)
			}
			return nil
		},
		show: func(c *Config) string {
			if *field(c) {
				return "yes"
			}
			return "no"
		},
	}
}

// double is a real number; Apache dies of one that it cannot read.
func double(name, note string, field func(*Config) *float64) key {
	return key{
		name: name, note: note, effect: Applied, place: inBoth,
		set: func(c *Config, raw string) error {
			n, err := parseDouble(raw)
			if err == nil {
				*field(c) = n
			}
			return err
		},
		show: func(c *Config) string { return strconv.FormatFloat(*field(c), 'g', -1, 64) },
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// clampMillis turns milliseconds into a duration; more than a duration can
// hold, 292 years, becomes the longest one.
func clampMillis(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}
