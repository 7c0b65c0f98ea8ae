package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// What config check prints for a file with CR LF as container images write it,
// and for one with one of everything that is worth a word.
func TestReportsAreAsExpected(t *testing.T) {
	for _, name := range []string{"image", "odd"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "check", name+".cfg")
			_, report, err := load(t, Options{
				File: file, AllowUnprotected: true,
				Defines: []string{"zookeeper.enforceQuota=true"}, Environ: []string{"JVMFLAGS=-Djute.maxbuffer=0x200000"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := report.Write(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "geheim") || strings.Contains(b.String(), "D/InIHSb") {
				t.Error("a secret is printed")
			}
			compareGolden(t, filepath.Join("testdata", "check", name+".golden"), b.String())
		})
	}
}
