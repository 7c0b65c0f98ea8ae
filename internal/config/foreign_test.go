package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeFiles makes files below a fresh directory: empty ones, or with content
// after an equals sign.
func makeFiles(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range files {
		file, content, _ := strings.Cut(file, "=")
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestApacheDataIsNeverStartedBeside(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		want  string // part of the reason; empty when the start is allowed
	}{
		{"nothing at all", nil, ""},
		{"a myid only", []string{"data/myid"}, ""},
		{"an empty version-2", []string{"data/version-2/acceptedEpoch", "data/version-2/currentEpoch"}, ""},
		{"the newest snapshot by zxid, not by name", []string{"data/version-2/snapshot.9", "data/version-2/snapshot.10", "data/version-2/log.1"},
			"version-2/snapshot.10, of zxid 0x10"},
		{"a compressed snapshot", []string{"data/version-2/snapshot.2f.gz", "data/version-2/snapshot.3"}, "snapshot.2f.gz, of zxid 0x2f"},
		{"a log alone", []string{"data/version-2/log.1", "data/version-2/log.a"}, "no snapshot; its newest log is"},
		{"a log in the log directory", []string{"log/version-2/log.1"}, "log/version-2/log.1"},
		{"data of ours beside it", []string{"data/version-2/snapshot.9", "data/zooraft/stable.db=x"}, ""},
		{"a snapshot of ours beside it", []string{"data/version-2/snapshot.9", "data/zooraft/snapshots/1/state=x"}, ""},
		{"what a failed start of ours left beside it", []string{"data/version-2/snapshot.9", "data/zooraft/lock",
			"data/zooraft/snapshots/empty", "data/zooraft/stable.db.tmp=x", "data/zooraft/snapshots/1.tmp/state=x"}, "snapshot.9, of zxid 0x9"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := makeFiles(t, test.files...)
			err := DetectForeign(filepath.Join(root, "data"), filepath.Join(root, "log"))
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var problem *Error
			if !errors.As(err, &problem) || problem.Kind != ErrForeignData || problem.ExitCode() != ExitDataDir ||
				!strings.Contains(problem.Reason, test.want) || !strings.Contains(problem.Reason, "separate command") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestDirectoriesThatCannotBeUsedAreRefused(t *testing.T) {
	root := makeFiles(t, "file")
	usable := DefaultStorage()
	usable.DataDir, usable.LogDir = filepath.Join(root, "none"), root
	if err := usable.CheckDirs(); err != nil {
		t.Errorf("error %v for a directory that can be made", err)
	}
	if _, err := os.Stat(usable.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the check made the directory")
	}
	noCreate := usable
	noCreate.AutoCreate = false
	file := usable
	file.LogDir = filepath.Join(root, "file")
	for _, s := range []Storage{noCreate, file} {
		err := s.CheckDirs()
		var problem *Error
		if !errors.As(err, &problem) || problem.ExitCode() != ExitDataDir {
			t.Errorf("error %v for %+v", err, s)
		}
	}
}

func TestDefinesAreTakenOutOfACommandLine(t *testing.T) {
	defines, rest := SplitDefines([]string{"serve", "-Da=b", "zoo.cfg", "-D", "--listen", ":1", "-Dc", "-Dd==", "--", "-De=f"})
	if got := strings.Join(defines, " "); got != "a=b c d==" {
		t.Errorf("defines %q", got)
	}
	if got := strings.Join(rest, " "); got != "serve zoo.cfg -D --listen :1 -- -De=f" {
		t.Errorf("rest %q", got)
	}
}
