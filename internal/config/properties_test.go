package config

import (
	"errors"
	"reflect"
	"testing"
)

func TestPropertiesAreReadAsJavaReadsThem(t *testing.T) {
	tests := []struct {
		name, text string
		want       []property
	}{
		{"an equals sign, a colon and a blank separate", "a=1\nb:2\nc 3\n", []property{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}}},
		{"blanks around the separator do not count", " a \t=\f 1 \n", []property{{"a", "1", 1}}},
		{"only one separator is taken", "a = = 1\nb:=2\nc  :  =3", []property{{"a", "= 1", 1}, {"b", "=2", 2}, {"c", "=3", 3}}},
		{"a key alone has an empty value", "a\nb=\n", []property{{"a", "", 1}, {"b", "", 2}}},
		{"a value alone has an empty key", "=1\n", []property{{"", "1", 1}}},
		{"comments start with a hash or an exclamation mark", "# a=1\n ! b=2\nc=#3\n", []property{{"c", "#3", 3}}},
		{"all three line ends count", "a=1\rb=2\r\nc=3\n\nd=4", []property{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 5}}},
		{"a backslash joins the next line without its leading blanks", "a=1,\\\n   2,\\\r\n\t3\nb=4", []property{{"a", "1,2,3", 1}, {"b", "4", 4}}},
		{"two backslashes are one and join nothing", "a=1\\\\\nb=2", []property{{"a", `1\`, 1}, {"b", "2", 2}}},
		{"a joined line that looks like a comment is none", "a=1\\\n#2", []property{{"a", "1#2", 1}}},
		{"a comment cannot be continued", "# x \\\na=1", []property{{"a", "1", 2}}},
		{"a backslash at the end of the file is dropped", `a=1\`, []property{{"a", "1", 1}}},
		{"a backslash alone at the end is an empty property", "a=1\n\\\n", []property{{"a", "1", 1}, {"", "", 2}}},
		{"and none before CR LF, as Java looks for the LF first", "a=1\n\\\r\n", []property{{"a", "1", 1}}},
		{"but one before CR alone", "\\\r", []property{{"", "", 1}}},
		{"a backslash line before a comment joins nothing", "\\\n# x\na=1", []property{{"a", "1", 3}}},
		{"an escaped separator belongs to the key", `a\=b\ c\:d=1`, []property{{"a=b c:d", "1", 1}}},
		{"escapes are resolved", `a=\u0041\t|\q\\`, []property{{"a", "A\t|q\\", 1}}},
		{"trailing blanks go as in String.trim", "a = 1 \t \n", []property{{"a", "1", 1}}},
		{"duplicates are kept in order", "a=1\na=2\n", []property{{"a", "1", 1}, {"a", "2", 2}}},
		{"UTF-8 stays as it is", "dataDir=/ä\n", []property{{"dataDir", "/ä", 1}}},
		{"dollar braces are no expansion", "a=${b}\n", []property{{"a", "${b}", 1}}},
		{"an empty file has none", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, hadBOM, err := parseProperties("zoo.cfg", []byte(test.text))
			if err != nil || hadBOM {
				t.Fatalf("error %v, byte order mark %v", err, hadBOM)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("%q\n got %v\nwant %v", test.text, got, test.want)
			}
		})
	}
}

func TestAByteOrderMarkIsSkippedAndReported(t *testing.T) {
	got, hadBOM, err := parseProperties("zoo.cfg", []byte("\xef\xbb\xbfa=1"))
	if err != nil || !hadBOM || !reflect.DeepEqual(got, []property{{"a", "1", 1}}) {
		t.Errorf("got %v, byte order mark %v, error %v", got, hadBOM, err)
	}
}

func TestABadEscapeNamesItsLine(t *testing.T) {
	for _, text := range []string{"a=1\nb=\\u12", "a=1\nb=\\u00g0", "a=1\n\\uzzzz=1"} {
		_, _, err := parseProperties("zoo.cfg", []byte(text))
		var problem *Error
		if !errors.As(err, &problem) || problem.Line != 2 || problem.ExitCode() != ExitInvalid {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func FuzzParseProperties(f *testing.F) {
	for _, seed := range []string{"a=1\r\nb : 2\\\n  3", "\xef\xbb\xbf#x\na\\u0041=\\\\", "\\\n\\\n=\n", "a\\"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		properties, _, err := parseProperties("zoo.cfg", text)
		lines := 1
		for _, c := range text {
			if c == '\n' || c == '\r' {
				lines++
			}
		}
		before := 0
		for _, p := range properties {
			if p.line <= before || p.line > lines {
				t.Fatalf("line %d after %d of %d", p.line, before, lines)
			}
			if p.key != trim(p.key) || p.value != trim(p.value) {
				t.Fatalf("%q and %q are not trimmed", p.key, p.value)
			}
			before = p.line
		}
		if err != nil && properties != nil {
			t.Fatal("properties beside an error")
		}
	})
}
