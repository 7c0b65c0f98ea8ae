package auth

import (
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

var update = flag.Bool("update", false, "make testdata/digests.txt anew with the real server's classes")

const digestsFile = "testdata/digests.txt"

const digestsHead = `# Identities that Apache ZooKeeper 3.9.5 makes of digest credentials: algorithm,
# credentials in hex, identity in hex.
# Made by: go test ./internal/auth -run TestDigests -update
`

var credentials = []string{
	"super:test", "ben:secret", "user:pass", "", ":", "a:", ":b", "no colon", "a:b:c", "user:pass:", "é:ü", "日本:\U0001f600",
	"u:\xff\xfe", "u:\xed\xa0\x80", "u\x00:p", " u : p ", strings.Repeat("long", 100) + ":p",
}

// askServer has the real server's classes make identities, once for each
// algorithm.
func askServer(t *testing.T) string {
	t.Helper()
	classPath := toolchain.ClassPath(t, filepath.Join(toolchain.Root(), "test", "peer", "pom.xml"))
	source, err := filepath.Abs(filepath.Join("testdata", "probe"))
	if err != nil {
		t.Fatal(err)
	}
	classes := toolchain.CompileJava(t, "auth-probe", source, classPath)
	dir := t.TempDir()
	input, logback := filepath.Join(dir, "credentials"), filepath.Join(dir, "logback.xml")
	var lines strings.Builder
	for _, c := range credentials {
		fmt.Fprintf(&lines, "=%x\n", c)
	}
	for name, content := range map[string]string{input: lines.String(), logback: "<configuration/>"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	for _, algorithm := range slices.Sorted(maps.Keys(algorithms)) {
		out.WriteString(toolchain.Run(t, source, nil, "java", "-Dlogback.configurationFile="+logback,
			"-Dzookeeper.DigestAuthenticationProvider.digestAlg="+algorithm, "-cp", classes+":"+classPath, "AuthProbe", input))
	}
	return out.String()
}

func TestDigestsAreThoseOfTheRealServer(t *testing.T) {
	if *update {
		if err := os.WriteFile(digestsFile, []byte(digestsHead+askServer(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	table, err := os.ReadFile(digestsFile)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, line := range strings.Split(string(table), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 || f[1][0] != '=' {
			continue // a comment, or a line of the Java runtime
		}
		count[f[0]]++
		raw, err1 := hex.DecodeString(f[1][1:])
		want, err2 := hex.DecodeString(f[2][1:])
		if err1 != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err1, err2)
		}
		config := DefaultConfig()
		config.DigestAlgorithm = f[0]
		a, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Digest(raw); got != string(want) {
			t.Errorf("%s of %q: %q, want %q", f[0], raw, got, want)
		}
	}
	for name := range algorithms {
		if count[name] != len(credentials) {
			t.Errorf("%d identities by %s in the table, want %d", count[name], name, len(credentials))
		}
	}
}

func TestTheAlgorithmIsNamedAsInJava(t *testing.T) {
	for _, name := range []string{"SHA1", "sha1", "Sha-1", "SHA", "MD5", "md5", "SHA-256", "sha256", "SHA512/256", "SHA3-384"} {
		if _, err := New(Config{DigestAlgorithm: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "SHA3256", "MD-5", "MD2", "SHA-1 ", "CRC32"} {
		if _, err := New(Config{DigestAlgorithm: name}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: error %v, want one that names it", name, err)
		}
	}
}
