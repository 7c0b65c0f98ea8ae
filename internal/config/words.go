package config

import (
	"slices"
	"sort"
	"strings"
)

// knownWords are the four-letter words of Apache 3.9.5, with true for those
// that change nothing.
var knownWords = map[string]bool{
	"conf": true, "cons": true, "dirs": true, "dump": true, "envi": true, "gtmk": true, "hash": true,
	"isro": true, "mntr": true, "ruok": true, "srvr": true, "stat": true, "wchc": true, "wchp": true,
	"wchs": true,
	"crst": false, "srst": false, "stmk": false,
}

// Words says which four-letter words are answered.
type Words struct {
	// Allowed holds them in alphabetical order. Default: srvr (Apache), and isro
	// when the read-only mode is on; without a zoo.cfg every word that changes
	// nothing (4lw.commands.whitelist).
	Allowed []string
}

// DefaultWords returns Apache's default.
func DefaultWords() Words { return Words{Allowed: []string{"srvr"}} }

func readOnlyWords() Words {
	var w Words
	for word, readOnly := range knownWords {
		if readOnly {
			w.allow(word)
		}
	}
	return w
}

// Allows reports whether a word is answered.
func (w Words) Allows(word string) bool { return slices.Contains(w.Allowed, word) }

// allow adds a word and keeps the order.
func (w *Words) allow(word string) {
	if !w.Allows(word) {
		w.Allowed = append(w.Allowed, word)
		sort.Strings(w.Allowed)
	}
}

// parseWords reads a comma list; a * stands for every word. It returns the
// words it does not know: they are kept, as Apache does, and mean nothing.
func parseWords(list string) (w Words, unknown []string) {
	w = DefaultWords()
	for _, word := range strings.Split(list, ",") {
		word = trim(word)
		if word == "*" {
			for known := range knownWords {
				w.allow(known)
			}
			return w, unknown
		}
		if word == "" {
			continue
		}
		if _, known := knownWords[word]; !known {
			unknown = append(unknown, word)
		}
		w.allow(word)
	}
	return w, unknown
}

// Validate accepts everything: an unknown word is a warning of Load.
func (w Words) Validate() error { return nil }
