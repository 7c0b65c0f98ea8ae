package metrics

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Value is one number as mntr shows it: an integer, or a decimal in the way
// Java prints a double.
type Value struct {
	integer int64
	decimal float64
	isFloat bool
	absent  bool
}

// Absent returns the value of a gauge that has no meaning at present, such as
// a leader's on a follower: it is left out wherever metrics are shown.
func Absent() Value { return Value{absent: true} }

// IsAbsent tells whether the value is to be left out.
func (v Value) IsAbsent() bool { return v.absent }

// Int returns an integer value.
func Int(v int64) Value { return Value{integer: v} }

// Float returns a decimal value.
func Float(v float64) Value { return Value{decimal: v, isFloat: true} }

// IsFloat tells whether the value is printed as a decimal.
func (v Value) IsFloat() bool { return v.isFloat }

// Int64 returns the value as an integer, cut towards zero.
func (v Value) Int64() int64 {
	if v.isFloat {
		return int64(v.decimal)
	}
	return v.integer
}

// Float64 returns the value as a float.
func (v Value) Float64() float64 {
	if v.isFloat {
		return v.decimal
	}
	return float64(v.integer)
}

// String prints the value as mntr does: 7, 0.0, 2.7143, 1.0E7.
func (v Value) String() string {
	if !v.isFloat {
		return strconv.FormatInt(v.integer, 10)
	}
	return FormatDouble(v.decimal)
}

// MarshalJSON writes the number.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.isFloat && (math.IsNaN(v.decimal) || math.IsInf(v.decimal, 0)) {
		return []byte("null"), nil
	}
	return []byte(v.String()), nil
}

// FormatDouble prints f as Java's Double.toString does: at least one digit
// after the point, and an exponent from ten millions up and below a
// thousandth.
func FormatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	abs := math.Abs(f)
	if abs == 0 || (abs >= 1e-3 && abs < 1e7) {
		return withFraction(strconv.FormatFloat(f, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	n, _ := strconv.Atoi(exponent)
	return withFraction(mantissa) + "E" + strconv.Itoa(n)
}

func withFraction(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}

// roundAverage rounds f to four decimals, halves away from zero, which is what
// ZooKeeper does to averages before it prints them.
func roundAverage(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) >= 1e15 {
		return f
	}
	// The float is taken exactly, so that only true halves (1/32 and the
	// like) count as halves.
	r, _ := new(big.Rat).SetString(new(big.Rat).SetFloat64(f).FloatString(4))
	rounded, _ := r.Float64()
	return rounded
}
