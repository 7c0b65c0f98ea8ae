package tree

import (
	"strconv"
	"strings"
)

// Addresses are read as Apache's ip provider reads them, which is not how
// netip does: ::ffff:1.2.3.4 and zones are refused, numbers may carry a plus
// sign and leading zeros, and one "::" may stand for a single group only.

const (
	ipv6Groups   = 8
	ipv6GroupLen = 4 // hexadecimal digits at most
)

// ipMatches tells whether the address lies in the ACL entry's range.
func ipMatches(addr, want string) bool {
	if strings.Contains(addr, ":") != strings.Contains(want, ":") {
		return false // of two families; ACL lists can be long
	}
	base, bits, ok := parseIPRange(want)
	if !ok {
		return false
	}
	a := parseIP(addr)
	if len(a) != len(base) {
		return false
	}
	for i := range a {
		m := prefixMask(bits - 8*i)
		if a[i]&m != base[i]&m {
			return false
		}
	}
	return true
}

// prefixMask is the mask of a byte of which a prefix has that many bits, or
// more, or none.
func prefixMask(bits int) byte {
	if bits >= 8 {
		return 0xff
	}
	return ^byte(0xff >> max(bits, 0))
}

// parseIPRange reads an address with an optional prefix length.
func parseIPRange(s string) (addr []byte, bits int, ok bool) {
	host, prefix, cut := strings.Cut(s, "/")
	if addr = parseIP(host); addr == nil {
		return nil, 0, false
	}
	bits = 8 * len(addr)
	if cut {
		n, err := strconv.ParseInt(prefix, 10, 32)
		if err != nil || n < 0 || int(n) > bits {
			return nil, 0, false
		}
		bits = int(n)
	}
	return addr, bits, true
}

// parseIP returns 4 or 16 bytes, nil for what is no address.
func parseIP(s string) []byte {
	switch {
	case strings.Contains(s, ":"):
		return parseIPv6(s)
	case strings.Contains(s, "."):
		return parseIPv4(s)
	}
	return nil
}

func parseIPv4(s string) []byte {
	out := make([]byte, 0, 4)
	for rest, more := s, true; more; {
		var p string
		if p, rest, more = strings.Cut(rest, "."); len(out) == 4 {
			return nil
		}
		v, err := strconv.ParseInt(p, 10, 32)
		if err != nil || v < 0 || v > 255 {
			return nil
		}
		out = append(out, byte(v))
	}
	if len(out) != 4 {
		return nil
	}
	return out
}

func parseIPv6(s string) []byte {
	var head, tail []string
	switch parts := strings.Split(s, "::"); len(parts) {
	case 1:
		if head = strings.Split(s, ":"); len(head) != ipv6Groups {
			return nil
		}
	case 2:
		if parts[0] != "" {
			head = strings.Split(parts[0], ":")
		}
		if parts[1] != "" {
			tail = strings.Split(parts[1], ":")
		}
		if len(head)+len(tail) >= ipv6Groups {
			return nil
		}
	default:
		return nil
	}
	out := make([]byte, 2*ipv6Groups)
	if !putGroups(out, head) || !putGroups(out[2*(ipv6Groups-len(tail)):], tail) {
		return nil
	}
	return out
}

func putGroups(dst []byte, groups []string) bool {
	for i, g := range groups {
		if g == "" || len(g) > ipv6GroupLen {
			return false
		}
		v, err := strconv.ParseInt(g, 16, 32)
		if err != nil {
			return false
		}
		dst[2*i], dst[2*i+1] = byte(v>>8), byte(v)
	}
	return true
}
