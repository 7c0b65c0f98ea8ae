package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

// files is a tree of files, as a machine has them.
func files(pairs ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		tree[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return tree
}

func TestTheLimitOfTheCgroupIsFound(t *testing.T) {
	const none = "9223372036854771712\n"
	for _, c := range []struct {
		name string
		tree fstest.MapFS
		want int64
		file string
	}{
		{"no cgroups at all", files(), 0, ""},
		{"version 2, the container's own root", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "536870912\n"), 536870912, "/sys/fs/cgroup/memory.max"},
		{"version 2, no limit", files("proc/self/cgroup", "0::/a\n", "sys/fs/cgroup/a/memory.max", "max\n"), 0, ""},
		{"version 2, a group above is narrower", files("proc/self/cgroup", "0::/pods/one/c\n", "sys/fs/cgroup/pods/one/c/memory.max", "2000\n",
			"sys/fs/cgroup/pods/one/memory.max", "1000\n", "sys/fs/cgroup/pods/memory.max", "max\n"), 1000, "/sys/fs/cgroup/pods/one/memory.max"},
		{"version 2, outside of the mounted tree", files("proc/self/cgroup", "0::/../../b\n", "sys/fs/cgroup/memory.max", "3000\n"), 3000, "/sys/fs/cgroup/memory.max"},
		{"version 1, with the host's path", files("proc/self/cgroup", "12:pids:/docker/x\n5:cpu,memory:/docker/x\n1:name=systemd:/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n"), 4000, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"version 1, no limit", files("proc/self/cgroup", "5:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes", none,
			"sys/fs/cgroup/memory/memory.limit_in_bytes", none), 0, ""},
		{"both versions, memory in the first", files("proc/self/cgroup", "5:memory:/a\n0::/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n"),
			5000, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"},
		{"what is no number", files("proc/self/cgroup", "nonsense\n0::/\n", "sys/fs/cgroup/memory.max", "much\n"), 0, ""},
	} {
		if limit, file := cgroupLimit(c.tree); limit != c.want || file != c.file {
			t.Errorf("%s: %d by %q, want %d by %q", c.name, limit, file, c.want, c.file)
		}
	}
}

func TestTheCollectorIsToldOfTheLimitUnlessTheOperatorSaysOtherwise(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	dir := t.TempDir() // files of a real file system, as at a start
	for name, text := range map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000000000\n"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	t.Setenv("GOMEMLIMIT", "off")
	if obeyMemoryLimit(os.DirFS(dir), logger); debug.SetMemoryLimit(-1) != before || log.Len() > 0 {
		t.Errorf("the operator's limit is now %d: %s", debug.SetMemoryLimit(-1), &log)
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	obeyMemoryLimit(os.DirFS(dir), logger)
	if got := debug.SetMemoryLimit(-1); got != 900_000_000_000 || !strings.Contains(log.String(), "/sys/fs/cgroup/memory.max") {
		t.Errorf("the limit is %d: %s", got, &log)
	}
}
