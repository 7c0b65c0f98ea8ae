package tree

import "strings"

// validDN tells whether Java's X500Principal accepts the name, as Apache's
// x509 provider asks: nothing, or attributes type=value separated by comma,
// semicolon or plus, where a backslash escapes, double quotes enclose a whole
// value, and # begins a value in hexadecimal DER.
func validDN(s string) bool {
	if s == "" {
		return true
	}
	for {
		kind, rest, ok := strings.Cut(s, "=")
		if !ok || !validDNType(strings.Trim(kind, " \n")) {
			return false
		}
		if rest, ok = skipDNValue(strings.TrimLeft(rest, " \n")); !ok {
			return false
		}
		if rest == "" {
			return true
		}
		s = rest[1:]
	}
}

// skipDNValue returns what follows the value: nothing, or a separator and
// more.
func skipDNValue(s string) (rest string, ok bool) {
	switch {
	case strings.HasPrefix(s, `"`):
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				rest = strings.TrimLeft(s[i+1:], " \n")
				return rest, rest == "" || strings.IndexByte(",;+", rest[0]) >= 0
			}
		}
		return "", false
	case strings.HasPrefix(s, "#"):
		end := strings.IndexAny(s, ",;+")
		if end < 0 {
			end = len(s)
		}
		return s[end:], validDER(strings.TrimRight(s[1:end], " \n"))
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ',', ';', '+':
			return s[i:], true
		case '"', '<', '>':
			return "", false
		case '\\':
			n := dnEscapeLen(s[i+1:])
			if n == 0 {
				return "", false
			}
			i += n
		}
	}
	return "", true
}

// dnEscapeLen returns how many bytes after a backslash belong to the escape: a
// special character or two hexadecimal digits; 0 is an error.
func dnEscapeLen(s string) int {
	switch {
	case s != "" && strings.IndexByte(",=\n+<>#;\\\" ", s[0]) >= 0:
		return 1
	case len(s) >= 2 && isHex(s[:2]):
		return 2
	}
	return 0
}

const hexDigits = "0123456789abcdefABCDEF"

func isHex(s string) bool { return strings.Trim(s, hexDigits) == "" }

// validDER tells whether the digits are one value of less than 128 bytes.
func validDER(digits string) bool {
	if len(digits) < 4 || len(digits)%2 != 0 || !isHex(digits) {
		return false
	}
	length := strings.IndexByte(hexLower, lower(digits[2]))<<4 | strings.IndexByte(hexLower, lower(digits[3]))
	return length < 128 && length == len(digits)/2-2
}

const hexLower = "0123456789abcdef"

func lower(c byte) byte {
	if c >= 'A' && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}

// dnKeywords are the attribute types that Java's X500Principal knows by name.
var dnKeywords = map[string]bool{
	"CN": true, "C": true, "L": true, "S": true, "ST": true, "O": true, "OU": true, "T": true,
	"IP": true, "STREET": true, "DC": true, "DNQUALIFIER": true, "DNQ": true, "SURNAME": true,
	"GIVENNAME": true, "INITIALS": true, "GENERATION": true, "EMAIL": true, "EMAILADDRESS": true,
	"UID": true, "SERIALNUMBER": true,
}

// validDNType accepts a known keyword or an object identifier, whose first arc
// is at most 2 and whose second is at most 39 below that.
func validDNType(kind string) bool {
	kind = strings.ToUpper(kind)
	if dnKeywords[kind] {
		return true
	}
	arcs := strings.Split(strings.TrimPrefix(kind, "OID."), ".")
	if len(arcs) < 2 {
		return false
	}
	for _, arc := range arcs {
		if arc == "" || strings.Trim(arc, "0123456789") != "" {
			return false
		}
	}
	return arcs[0] == "2" || (arcs[0] == "0" || arcs[0] == "1") && (len(arcs[1]) == 1 || len(arcs[1]) == 2 && arcs[1] < "40")
}
