package main

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

/*
A container's memory is a limit of its cgroup, which Go's collector does not know:
a heap that may grow by as much as is live reaches it and the process is killed,
where one more collection would have kept it. So serve tells the collector nine
tenths of the limit, unless GOMEMLIMIT says otherwise. The last tenth is for what
the runtime does not count, and for what it takes beyond a limit while it collects.

	/proc/self/cgroup        0::/a/b           a group of version 2
	                         4:cpu,memory:/a   one of version 1
	/sys/fs/cgroup/a/b/memory.max              its limit, and those of the groups above it
	/sys/fs/cgroup/memory/a/memory.limit_in_bytes

Inside a container the path is often that of the host, and what is mounted begins
at the container's own group: the groups above are looked at too, up to the root.

Refused: a library for it (docs/dependencies.md): these are two files.
*/

// unlimited is the lowest number that says that there is no limit: version 1
// prints the largest multiple of a page.
const unlimited = math.MaxInt64 / 2

// cgroupLimit is the lowest limit of the groups that this process is in, in
// bytes, and the file that says so. Zero says that there is none, or no way to tell.
func cgroupLimit(root fs.FS) (limit int64, file string) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, ""
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		base, name := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			base, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !slices.Contains(strings.Split(parts[1], ","), "memory") {
				continue
			}
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			at := path.Join(base, group, name)
			if n := limitIn(root, at); n > 0 && (limit == 0 || n < limit) {
				limit, file = n, "/"+at
			}
			if group == "/" {
				break
			}
		}
	}
	return limit, file
}

// limitIn is the number in a file; zero if there is no limit in it.
func limitIn(root fs.FS, file string) int64 {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n >= unlimited { // version 2 says "max"
		return 0
	}
	return n
}

// obeyMemoryLimit tells the collector of the cgroup's limit.
func obeyMemoryLimit(root fs.FS, logger *slog.Logger) {
	if _, own := os.LookupEnv("GOMEMLIMIT"); own {
		return
	}
	limit, file := cgroupLimit(root)
	if limit == 0 {
		return
	}
	kept := limit - limit/10
	debug.SetMemoryLimit(kept)
	logger.Info("the memory of this process is limited: the collector keeps to nine tenths of it", "bytes", kept, "limit", limit, "by", file)
}
