package config

import "testing"

func TestNumbersAreDecodedAsJavaDecodesThem(t *testing.T) {
	tests := []struct {
		text string
		bits int
		want int64
		ok   bool
	}{
		{"100", 32, 100, true}, {"+5", 32, 5, true}, {"-5", 32, -5, true},
		{"0x100", 32, 256, true}, {"0XfF", 32, 255, true}, {"#10", 32, 16, true}, {"010", 32, 8, true},
		{"-0x10", 32, -16, true}, {"0", 32, 0, true}, {"-0", 32, 0, true},
		{"2147483647", 32, 2147483647, true}, {"-2147483648", 32, -2147483648, true}, {"-0x80000000", 32, -2147483648, true},
		{"2147483648", 32, 0, false}, {"0x80000000", 32, 0, false}, {"2147483648", 64, 2147483648, true},
		{"", 32, 0, false}, {"-", 32, 0, false}, {"0x", 32, 0, false}, {"0x-1", 32, 0, false}, {"--1", 32, 0, false},
		{"+-1", 32, 0, false}, {"08", 32, 0, false}, {"1_000", 32, 0, false}, {" 1", 32, 0, false}, {"1k", 32, 0, false},
	}
	for _, test := range tests {
		got, ok := decode(test.text, test.bits)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("decode(%q, %d) = %d, %v, want %d, %v", test.text, test.bits, got, ok, test.want, test.ok)
		}
	}
}

func TestStrictNumbersAreDecimalAndOf32Bits(t *testing.T) {
	for text, want := range map[string]int{"5": 5, "+5": 5, "-5": -5, "007": 7, "2147483647": 2147483647} {
		if got, err := parseInt(text); err != nil || got != want {
			t.Errorf("parseInt(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0x5", "5 ", "5.0", "2147483648", "5ms", "1_0", "- 5"} {
		if got, err := parseInt(text); err == nil {
			t.Errorf("parseInt(%q) = %d without an error", text, got)
		}
	}
}
