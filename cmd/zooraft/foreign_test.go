package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/test/peer"
)

// fingerprint lists every file below a directory with its mode, times and a
// hash of its content.
func fingerprint(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v", path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(content))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The real server makes a directory with two snapshots and logs, under its own
// dataDir and dataLogDir. Ours refuses to start there whatever way it is asked,
// and leaves every file as it was.
func TestServeRefusesADirectoryOfTheRealServerAndTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	dataDir, logDir := filepath.Join(dir, "data"), filepath.Join(dir, "log")
	apache := peer.StartApache(t, peer.Options{DataDir: dataDir, Config: map[string]string{"dataLogDir": logDir}})
	c, err := client.Dial(t.Context(), apache.Address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := c.Create(t.Context(), fmt.Sprintf("/n%d", i), []byte("x"), proto.CreatePersistent); err != nil {
			t.Fatal(err)
		}
	}
	zxid := c.LastZxid()
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	apache.Restart(t) // which takes a snapshot of all of it
	apache.Stop(t)
	before := fingerprint(t, dir)

	write(t, filepath.Join(dir, "..", "zoo.cfg"), fmt.Sprintf("dataDir=%s\ndataLogDir=%s\nclientPort=0\n", dataDir, logDir))
	write(t, filepath.Join(dir, "..", "log-only.cfg"), fmt.Sprintf("dataDir=%s\ndataLogDir=%s\nclientPort=0\n", filepath.Join(dir, "..", "empty"), logDir))
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"by zoo.cfg", []string{"serve", filepath.Join(dir, "..", "zoo.cfg")}, fmt.Sprintf("snapshot.%x, of zxid 0x%x", int64(zxid)+1, int64(zxid)+1)},
		{"by arguments", []string{"serve", "0", dataDir}, "its newest snapshot is"},
		{"by a flag", []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dataDir}, "its newest snapshot is"},
		{"the log alone", []string{"serve", filepath.Join(dir, "..", "log-only.cfg")}, "its newest log is"},
		{"config check", []string{"config", "check", filepath.Join(dir, "..", "zoo.cfg")}, "its newest snapshot is"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, stderr, code := execute(t, test.args...)
			if code != 3 || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "separate command") {
				t.Errorf("exit code %d, want 3 and %q: %s", code, test.want, stderr)
			}
			if after := fingerprint(t, dir); after != before {
				t.Errorf("the directory changed\nbefore\n%s\nafter\n%s", before, after)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "empty")); err == nil {
		t.Error("a directory was made")
	}
}
