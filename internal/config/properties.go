package config

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"
)

// errBadEscape is returned for an escape that Java refuses as well.
var errBadEscape = errors.New(`\u must be followed by four hexadecimal digits`)

// maxFileBytes bounds a configuration file: 1 MiB, far above any real one.
// Apache has no limit; a longer file is refused because it is surely not a
// configuration.
const maxFileBytes = 1 << 20

// property is one key and value of a file, with the line its key starts on.
type property struct {
	key, value string
	line       int
}

// scanner splits the text of a java.util.Properties file into properties.
//
// Java reads such a file as ISO 8859-1, joins a line that ends in an odd number
// of backslashes with the next one after that one's leading blanks, takes the
// first unescaped '=', ':' or blank as the end of the key, and resolves escapes
// in key and value. We read the same, with one difference: bytes that form
// valid UTF-8 stay as they are, so that a path with an umlaut means the file it
// looks like.
type scanner struct {
	text []byte
	pos  int
	line int // line of text[pos], from 1
}

// parseProperties returns every property in the order of the file; duplicates
// are kept, the caller lets the last one win. hadBOM reports a UTF-8 byte order
// mark, which Java would read as three characters of the first key.
func parseProperties(file string, text []byte) (properties []property, hadBOM bool, err error) {
	text, hadBOM = bytes.CutPrefix(text, []byte("\xef\xbb\xbf"))
	s := &scanner{text: text, line: 1}
	for {
		logical, line, ok := s.next()
		if !ok {
			return properties, hadBOM, nil
		}
		key, value, err := splitProperty(logical)
		if err != nil {
			return nil, hadBOM, &Error{Kind: ErrInvalid, File: file, Line: line, Reason: err.Error()}
		}
		properties = append(properties, property{key: trim(key), value: trim(value), line: line})
	}
}

// next returns the next logical line that is neither blank nor a comment,
// without its leading blanks, and the line it starts on.
func (s *scanner) next() (logical []byte, line int, ok bool) {
	var out []byte
	for s.pos < len(s.text) {
		s.skipBlanks()
		if s.pos == len(s.text) {
			break
		}
		if len(out) == 0 {
			if c := s.text[s.pos]; c == '#' || c == '!' {
				s.skipLine()
				continue
			}
			line = s.line
		}
		natural := s.takeLine()
		continued := endsInOddBackslashes(natural)
		if continued {
			natural = natural[:len(natural)-1]
		}
		out = append(out, natural...)
		if !continued && len(out) > 0 {
			return out, line, true
		}
		if continued && s.pos == len(s.text) && (len(out) > 0 || !bytes.HasSuffix(s.text, []byte("\r\n"))) {
			// Java makes a property even of a lone backslash here, but behind CR it
			// looks for LF first, and then finds nothing.
			return out, line, true
		}
	}
	return out, line, len(out) > 0
}

func (s *scanner) skipBlanks() {
	for s.pos < len(s.text) && isBlank(s.text[s.pos]) {
		s.pos++
	}
}

// takeLine returns the rest of the natural line and steps over its end: LF, CR
// or CR LF.
func (s *scanner) takeLine() []byte {
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] != '\n' && s.text[s.pos] != '\r' {
		s.pos++
	}
	natural := s.text[start:s.pos]
	if s.pos < len(s.text) {
		if s.text[s.pos] == '\r' && s.pos+1 < len(s.text) && s.text[s.pos+1] == '\n' {
			s.pos++
		}
		s.pos++
		s.line++
	}
	return natural
}

func (s *scanner) skipLine() { s.takeLine() }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

func endsInOddBackslashes(line []byte) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitProperty cuts a logical line into key and value and resolves escapes.
func splitProperty(line []byte) (key, value string, err error) {
	end, escaped := 0, false
	for end < len(line) {
		c := line[end]
		if !escaped && (c == '=' || c == ':' || isBlank(c)) {
			break
		}
		escaped = c == '\\' && !escaped
		end++
	}
	start, separated := end, false
	for start < len(line) {
		c := line[start]
		if !isBlank(c) {
			if separated || (c != '=' && c != ':') {
				break
			}
			separated = true
		}
		start++
	}
	if key, err = unescape(line[:end]); err != nil {
		return "", "", err
	}
	value, err = unescape(line[start:])
	return key, value, err
}

// unescape resolves \t, \n, \r, \f and \uXXXX; a backslash before any other
// character is dropped.
func unescape(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), nil
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if i == len(raw) {
			break
		}
		switch raw[i] {
		case 't':
			out = append(out, '\t')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 'f':
			out = append(out, '\f')
		case 'u':
			if len(raw) < i+5 {
				return "", errBadEscape
			}
			r, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
			if err != nil {
				return "", errBadEscape
			}
			out = utf8.AppendRune(out, rune(r))
			i += 4
		default:
			out = append(out, raw[i])
		}
	}
	return string(out), nil
}

// trim drops what Java's String.trim drops: every character up to U+0020 at
// both ends.
func trim(s string) string {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}
