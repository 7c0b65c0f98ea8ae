package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// wordPattern splits a line as zkCli does: a word ends at white space, unless it
// begins with a quote, which then ends it. There is no escape character.
var wordPattern = regexp.MustCompile(`\s*([^"'\s]\S*|"[^"]*"|'[^']*')\s*`)

// splitLine returns the words of a line.
func splitLine(line string) []string {
	var words []string
	for _, match := range wordPattern.FindAllStringSubmatch(line, -1) {
		word := match[1]
		if n := len(word); n >= 2 && (word[0] == '"' || word[0] == '\'') && word[n-1] == word[0] {
			word = word[1 : n-1]
		}
		words = append(words, word)
	}
	return words
}

const (
	blanks = " \t\n\v\f\r" // what white space is to wordPattern
	quotes = "\"'"
)

// lastWord returns the word at the end of a line that is still typed: where it
// begins, its text, and whether it has a quote. What is typed behind a quoted
// part belongs to the same word here, so that a path can be completed further.
func lastWord(line string) (start int, text string, quoted bool) {
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			i++
			start, text, quoted = i, "", false
		case strings.IndexByte(quotes, c) >= 0 && i == start:
			rest, _, closed := strings.Cut(line[i+1:], string(c))
			i += 1 + len(rest)
			text, quoted = rest, true
			if closed {
				i++
			}
		default:
			text += line[i : i+1] // a byte: a character may have several
			i++
		}
	}
	return start, text, quoted
}

// quote returns a text as one word. One with both kinds of quotes cannot be
// written as a word, as in zkCli.
func quote(text string) string {
	if strings.Contains(text, `"`) {
		return "'" + text + "'"
	}
	return `"` + text + `"`
}

// flag is one flag of a command. zkCli's have one letter or one dash, ours
// beyond it two dashes.
type flag struct {
	name string // without dashes
	arg  string // what its argument is called; empty for none
	help string
	long bool // two dashes: not one of zkCli's
}

func (f flag) String() string {
	text := "-" + f.name
	if f.long {
		text = "--" + f.name
	}
	if f.arg != "" {
		text += " " + f.arg
	}
	return text
}

// words are the parsed words of one command.
type words struct {
	args  []string            // without the command's name and without flags
	given map[string][]string // the arguments of each flag that was given
}

func (w *words) has(name string) bool { return w.given[name] != nil }

// value returns the last argument of a flag, or empty.
func (w *words) value(name string) string {
	values := w.given[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// arg returns the i-th argument, or empty.
func (w *words) arg(i int) string {
	if i < len(w.args) {
		return w.args[i]
	}
	return ""
}

// number reads the argument of a flag as a whole number; otherwise it is
// missing when the flag was not given.
func (w *words) number(name string, missing int64, bits int) (int64, error) {
	if !w.has(name) {
		return missing, nil
	}
	n, err := strconv.ParseInt(w.value(name), 10, bits)
	if err != nil {
		return 0, failf(ErrUsage, "-%s argument must be a whole number of %d bits, not %q", name, bits, w.value(name))
	}
	return n, nil
}

// version reads -v; -1, any version, when it was not given.
func (w *words) version() (int32, error) {
	n, err := w.number("v", -1, 32)
	return int32(n), err
}

// parseWords tells flags from arguments as zkCli does: flags stand anywhere,
// one-letter flags can be joined, an argument follows its flag directly, in the
// next word or after "=", and "--" alone ends the flags.
func parseWords(flags []flag, given []string) (*words, error) {
	w := &words{given: map[string][]string{}}
	for i := 0; i < len(given); i++ {
		word := given[i]
		if word == "--" {
			w.args = append(w.args, given[i+1:]...)
			break
		}
		if len(word) < 2 || word[0] != '-' {
			w.args = append(w.args, word)
			continue
		}
		found, rest, ok := matchFlag(flags, word)
		if !ok {
			return nil, failf(ErrUsage, "Unrecognized option: %s", word)
		}
		for j, f := range found {
			if f.arg == "" {
				w.given[f.name] = append(w.given[f.name], "")
				continue
			}
			value := rest
			if j < len(found)-1 || rest == "" {
				if i+1 >= len(given) || isFlag(flags, given[i+1]) {
					return nil, failf(ErrUsage, "Missing argument for option: %s", f.name)
				}
				i++
				value = given[i]
			}
			w.given[f.name] = append(w.given[f.name], strings.TrimPrefix(value, "="))
		}
	}
	return w, nil
}

// isFlag tells whether a word would be read as a flag: a negative number is
// not.
func isFlag(flags []flag, word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		return false
	}
	_, _, ok := matchFlag(flags, word)
	return ok
}

// matchFlag finds the flag or the joined flags of a word, and what stands
// directly behind the last one. Ours of two dashes are found with one, too.
func matchFlag(flags []flag, word string) (found []flag, rest string, ok bool) {
	long := strings.HasPrefix(word, "--")
	name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range flags {
		if f.name == name && (f.long || !long) {
			if hasValue && f.arg == "" {
				return nil, "", false
			}
			if hasValue {
				rest = "=" + value
			}
			return []flag{f}, rest, true
		}
	}
	if long {
		return nil, "", false
	}
	letters := word[1:]
	for i := range letters {
		at := slices.IndexFunc(flags, func(f flag) bool { return f.name == letters[i:i+1] && !f.long })
		if at < 0 {
			return nil, "", false
		}
		found = append(found, flags[at])
		if flags[at].arg != "" {
			return found, letters[i+1:], true
		}
	}
	return found, "", len(found) > 0
}

// oneOf refuses flags that exclude each other.
func (w *words) oneOf(names ...string) error {
	first := ""
	for _, name := range names {
		if !w.has(name) {
			continue
		}
		if first != "" {
			return failf(ErrUsage, "The option '%s' was specified but an option from this group has already been selected: '%s'", name, first)
		}
		first = name
	}
	return nil
}

// checkPath says what is wrong with a path, in the words of ZooKeeper's
// clients. A sequential create is judged with a number behind it.
func checkPath(path string, sequential bool) error {
	if sequential {
		path += "1"
	}
	wrong := func(why string) error {
		return failf(ErrPath, "Invalid path string %q caused by %s", path, why)
	}
	switch {
	case path == "":
		return failf(ErrPath, "Path length must be > 0")
	case path[0] != '/':
		return failf(ErrPath, "Path must start with / character")
	case path == "/":
		return nil
	case path[len(path)-1] == '/':
		return failf(ErrPath, "Path must not end with / character")
	}
	units := []rune(path)
	for i := 1; i < len(units); i++ {
		r, before := units[i], units[i-1]
		last := i == len(units)-1 || units[i+1] == '/'
		switch {
		case r == 0:
			return wrong(fmt.Sprintf("null character not allowed @%d", i))
		case r == '/' && before == '/':
			return wrong(fmt.Sprintf("empty node name specified @%d", i))
		case r == '.' && last && (before == '/' || before == '.' && units[i-2] == '/'):
			return wrong(fmt.Sprintf("relative paths not allowed @%d", i))
		case r > 0 && r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0 && r <= 0xffff:
			return wrong(fmt.Sprintf("invalid character @%d", i))
		}
	}
	return nil
}
