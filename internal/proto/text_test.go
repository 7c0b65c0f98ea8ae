package proto_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/toolchain"
)

const textsFile = "testdata/texts.txt"

const textsHead = `# Strings as clients may send them: bytes in hex, what the real server's decoder makes
# of them (UTF-8 in hex), and 1 if its PathUtils takes that for a path.
# Made by: go test ./internal/proto -run TestTexts -update
`

// texts are strings at and around everything that the rules of paths and of
// UTF-8 speak of, and random ones.
func texts(seed uint64, count int) []string {
	out := []string{
		"", "/", "//", "a", "/a", "/a/", "/a//b", "/.", "/..", "/a/.", "/a/..", "/a/./b", "/a/../b", "/...", "/.a", "/a.", "/a/..b", "/a/.b/c",
		"a/b", "/a\x00", "/a\x00b", " ", "/ ", "/a b", "/é/ü", "/日本", "/\u200b", "/zookeeper/config",
		"/\xed\xa0\x80", "/\xed\xbf\xbf", "/\xed\xa0\xbd\xed\xb8\x80", // surrogates, alone and as a CESU-8 pair
		"/\xf0\x9f\x98\x80", "/\xf4\x8f\xbf\xbf", "/\xf4\x90\x80\x80", "/\xf5\x80\x80\x80", "/\xf8\x88\x80\x80\x80",
		"/\xc0\x80", "/\xc1\xbf", "/\xc2", "/\xc2/", "/\xe0\x80\x80", "/\xe0\x9f\xbf", "/\xe0\xa0", "/\xe2\x82", "/\xe2\x82a", "/\xe2a",
		"/\xf0\x80\x80\x80", "/\xf0\x8f\xbf\xbf", "/\xf0\x90\x80", "/\xf0\x9f\x98", "/\xf0\x9fa", "/\xf0a", "/\x80", "/\xbf\xbf", "/\xff\xfe", "/\xff",
		"/a\xe2\x82\xe2\x82\xac", "/\xc3\x28", "/\xe2\x28\xa1", "/\xf0\x28\x8c\xbc", "/\xed\xa0", "/\xed", "/\xef\xbf\xbd",
	}
	for _, edge := range []rune{0x1, 0x1f, 0x20, 0x7e, 0x7f, 0x80, 0x9f, 0xa0, 0xd7ff, 0xe000, 0xf8ff, 0xf900, 0xffef, 0xfff0, 0xfffd, 0xffff, 0x10000, 0x10ffff} {
		out = append(out, fmt.Sprintf("/x%cy", edge))
	}
	r := rand.New(rand.NewPCG(seed, 0))
	alphabet := []string{"/", "/", "a", "b", ".", "..", "é", "\x00", "\x1f", "\x7f", "\u0080", "\ud7ff", "\ue000", "\uf8ff", "\uf900", "\uffef", "\ufff0", "\U0001f600",
		"\xed", "\xa0", "\x80", "\xe2", "\x82", "\xac", "\xf0", "\x9f", "\x98", "\xc2", "\xf4", "\x90", "\xff"}
	for len(out) < count {
		var b strings.Builder
		if r.IntN(4) != 0 {
			b.WriteByte('/')
		}
		for range r.IntN(8) {
			switch r.IntN(8) {
			case 0:
				b.WriteRune(rune(r.IntN(0x10000)))
			case 1:
				b.WriteByte(byte(r.Uint32()))
			default:
				b.WriteString(alphabet[r.IntN(len(alphabet))])
			}
		}
		out = append(out, b.String())
	}
	return out
}

// askServer has the real server's classes read the texts.
func askServer(t *testing.T, texts []string) string {
	t.Helper()
	classPath := toolchain.ClassPath(t, filepath.Join(toolchain.Root(), "test", "peer", "pom.xml"))
	source, err := filepath.Abs(filepath.Join("testdata", "probe"))
	if err != nil {
		t.Fatal(err)
	}
	classes := toolchain.CompileJava(t, "proto-probe", source, classPath)
	var lines strings.Builder
	for _, s := range texts {
		fmt.Fprintf(&lines, "=%x\n", s)
	}
	dir := t.TempDir()
	input, logback := filepath.Join(dir, "texts"), filepath.Join(dir, "logback.xml")
	for name, content := range map[string]string{input: lines.String(), logback: "<configuration/>"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return toolchain.Run(t, source, nil, "java", "-Dlogback.configurationFile="+logback, "-cp", classes+":"+classPath, "TextProbe", input)
}

// compareTexts checks what the real server made of each text, and returns how
// many there were.
func compareTexts(t *testing.T, answers string) (count int) {
	t.Helper()
	for _, line := range strings.Split(answers, "\n") {
		f := strings.Fields(line)
		if len(f) != 3 || f[0][0] != '=' {
			continue // a comment, or a line of the Java runtime
		}
		count++
		raw, err1 := hex.DecodeString(f[0][1:])
		decoded, err2 := hex.DecodeString(f[1][1:])
		if err1 != nil || err2 != nil {
			t.Fatalf("line %q: %v, %v", line, err1, err2)
		}
		record := proto.AppendString(nil, "")[:0]
		record = append(proto.AppendInt(record, int32(len(raw))), raw...)
		got := proto.NewDecoder(record).String()
		if got != string(decoded) {
			t.Errorf("%x decoded to %q, want %q", raw, got, decoded)
		}
		if valid := proto.ValidPath(got); valid != (f[2] == "1") {
			t.Errorf("%x, decoded %q: a valid path %t", raw, got, valid)
		}
	}
	return count
}

func TestTextsAreReadAndJudgedAsTheRealServerDoes(t *testing.T) {
	if *update {
		if err := os.WriteFile(textsFile, []byte(textsHead+askServer(t, texts(1, 3000))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	table, err := os.ReadFile(textsFile)
	if err != nil {
		t.Fatal(err)
	}
	if n := compareTexts(t, string(table)); n != 3000 {
		t.Errorf("%d texts in the table, want 3000", n)
	}
}

func TestFreshTextsAreReadAndJudgedAsTheRealServerDoes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	if n := compareTexts(t, askServer(t, texts(seed, 20000))); n != 20000 {
		t.Errorf("%d answers, want 20000", n)
	}
}
