package config

import (
	"math"
	"strconv"
	"strings"
)

// parseInt reads what Java's Integer.parseInt reads: an optional sign and
// decimal digits within 32 bits.
func parseInt(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, invalid("", "%q is not an integer from %d to %d", s, math.MinInt32, math.MaxInt32)
	}
	return int(n), nil
}

// parseLong reads what Java's Long.parseLong reads.
func parseLong(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, invalid("", "%q is not an integer of 64 bits", s)
	}
	return n, nil
}

// decode reads what Java's Integer.decode (bits 32) and Long.decode (bits 64)
// read, and with them Integer.getInteger and Long.getLong: an optional sign,
// then decimal digits, or hexadecimal ones after 0x, 0X or #, or octal ones
// after 0.
func decode(s string, bits int) (int64, bool) {
	digits, negative := s, false
	switch {
	case strings.HasPrefix(digits, "-"):
		digits, negative = digits[1:], true
	case strings.HasPrefix(digits, "+"):
		digits = digits[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case strings.HasPrefix(digits, "#"):
		digits, base = digits[1:], 16
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		digits, base = digits[1:], 8
	}
	if strings.HasPrefix(digits, "-") || strings.HasPrefix(digits, "+") {
		return 0, false
	}
	if negative {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits, base, bits)
	return n, err == nil
}

// parseStrictBool reads a boolean as the parser of zoo.cfg does: true or
// false in any case, nothing else.
func parseStrictBool(s string) (bool, error) {
	switch {
	case strings.EqualFold(s, "true"):
		return true, nil
	case strings.EqualFold(s, "false"):
		return false, nil
	}
	return false, invalid("", "%q is neither true nor false", s)
}

// parseDouble reads what Java's Double.parseDouble reads, except hexadecimal
// floats, which nobody writes.
func parseDouble(s string) (float64, error) {
	bare := strings.TrimRight(trim(s), "dDfF")
	n, err := strconv.ParseFloat(bare, 64)
	if err != nil && !strings.Contains(err.Error(), "range") {
		return 0, invalid("", "%q is not a number", s)
	}
	return n, nil
}
