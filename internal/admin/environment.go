package admin

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"runtime"
	rm "runtime/metrics"
	"strconv"
	"strings"
)

// environmentReport is envi: keys and values in Apache's order.
type environmentReport []environmentEntry

type environmentEntry struct{ key, value string }

// notAvailable is what Apache prints for what a platform does not know. The
// keys about Java keep their lines with it, for tools that read by line.
const notAvailable = "<NA>"

func (a *Admin) environment() environmentReport {
	hostName, err := os.Hostname()
	if err != nil {
		hostName = notAvailable
	}
	userName, home := notAvailable, notAvailable
	if u, err := user.Current(); err == nil {
		userName, home = u.Username, u.HomeDir
	}
	workDir, err := os.Getwd()
	if err != nil {
		workDir = notAvailable
	}
	free, limit, total := memory()
	return environmentReport{
		{"zookeeper.version", a.config.Build.String()},
		{"host.name", hostName},
		{"java.version", notAvailable},
		{"java.vendor", notAvailable},
		{"java.home", notAvailable},
		{"java.class.path", notAvailable},
		{"java.library.path", notAvailable},
		{"java.io.tmpdir", os.TempDir()},
		{"java.compiler", notAvailable},
		{"os.name", osName()},
		{"os.arch", osArch()},
		{"os.version", osVersion()},
		{"user.name", userName},
		{"user.home", home},
		{"user.dir", workDir},
		{"os.memory.free", megabytes(free)},
		{"os.memory.max", megabytes(limit)},
		{"os.memory.total", megabytes(total)},
	}
}

func (r environmentReport) writeText(out io.Writer) {
	fmt.Fprint(out, "Environment:\n")
	for _, e := range r {
		fmt.Fprintf(out, "%s=%s\n", e.key, e.value)
	}
}

// osName uses Java's names.
func osName() string {
	switch runtime.GOOS {
	case "linux":
		return "Linux"
	case "darwin":
		return "Mac OS X"
	case "freebsd":
		return "FreeBSD"
	default:
		return runtime.GOOS
	}
}

func osArch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return runtime.GOARCH
}

func osVersion() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return notAvailable
	}
	return string(bytes.TrimSpace(release))
}

func megabytes(n uint64) string { return strconv.FormatUint(n>>20, 10) + "MB" }

// memory returns bytes: free within what the runtime holds, the most that it
// may hold (the memory limit of the runtime, or else the machine's memory), and
// what it holds. runtime/metrics does not stop the process.
func memory() (free, limit, total uint64) {
	samples := []rm.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/gc/gomemlimit:bytes"},
	}
	rm.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != rm.KindUint64 {
			return 0
		}
		return samples[i].Value.Uint64()
	}
	free, total, limit = value(0), value(2)-value(1), value(3)
	if limit == 0 || limit == math.MaxInt64 {
		limit = machineMemory()
	}
	return free, limit, total
}

func machineMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kilobytes, _ := strconv.ParseUint(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
