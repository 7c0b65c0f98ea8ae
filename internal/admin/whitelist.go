package admin

import "strings"

// Whitelist is the set of words that clients may use.
type Whitelist struct {
	all   bool
	words map[string]bool
}

// ReadOnlyWords are the words that change nothing, for a server that is
// started without a configuration file.
const ReadOnlyWords = "conf,cons,dirs,dump,envi,gtmk,hash,isro,mntr,ruok,srvr,stat,wchc,wchp,wchs"

// ParseWhitelist reads the value of 4lw.commands.whitelist: words separated by
// commas, blanks around them ignored, or a star for all. srvr is always
// allowed, and isro when read-only mode is enabled, as on Apache. Unknown
// words are kept without effect.
func ParseWhitelist(value string, readOnlyMode bool) Whitelist {
	l := Whitelist{words: map[string]bool{"srvr": true}}
	for word := range strings.SplitSeq(value, ",") {
		switch word = strings.TrimSpace(word); word {
		case "*":
			l.all = true
		case "":
		default:
			l.words[word] = true
		}
	}
	if readOnlyMode {
		l.words["isro"] = true
	}
	return l
}

// Allows tells whether clients may use the word.
func (l Whitelist) Allows(word string) bool { return l.all || l.words[word] }
