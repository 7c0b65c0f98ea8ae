package tree

import "strings"

// validDN tells whether an x509 entry's id is a distinguished name: the empty
// one, or attributes type=value separated by comma, semicolon or plus, where
// a backslash escapes and double quotes enclose.
func validDN(s string) bool {
	if strings.TrimSpace(s) == "" {
		return true
	}
	for {
		end := dnSeparator(s)
		kind, value, ok := strings.Cut(s[:end], "=")
		if !ok || !validDNType(strings.TrimSpace(kind)) || strings.HasSuffix(value, `\`) && !strings.HasSuffix(value, `\\`) {
			return false
		}
		if end == len(s) {
			return true
		}
		s = s[end+1:]
	}
}

// dnSeparator returns where the first attribute ends.
func dnSeparator(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ';' || c == '+'):
			return i
		}
	}
	return len(s)
}

// dnKeywords are the attribute types that Java's X500Principal knows by name.
var dnKeywords = map[string]bool{
	"CN": true, "C": true, "L": true, "S": true, "ST": true, "O": true, "OU": true, "T": true,
	"IP": true, "STREET": true, "DC": true, "DNQUALIFIER": true, "DNQ": true, "SURNAME": true,
	"GIVENNAME": true, "INITIALS": true, "GENERATION": true, "EMAIL": true, "EMAILADDRESS": true,
	"UID": true, "SERIALNUMBER": true,
}

func validDNType(kind string) bool {
	if dnKeywords[strings.ToUpper(kind)] {
		return true
	}
	kind = strings.TrimPrefix(strings.ToUpper(kind), "OID.")
	if strings.Count(kind, ".") < 1 {
		return false
	}
	for _, arc := range strings.Split(kind, ".") {
		if arc == "" || strings.Trim(arc, "0123456789") != "" {
			return false
		}
	}
	return true
}
