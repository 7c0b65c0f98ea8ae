package admin

import (
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// CompatibleVersion is the ZooKeeper release whose behaviour this server has.
// Clients and agents switch features by the digits at the start of the version.
const CompatibleVersion = "3.9.5"

// Build says which zooraft this is. It is printed where Apache prints its
// revision and build date.
type Build struct {
	Version  string    // zooraft's release, such as 0.1.0; may be empty
	Revision string    // source revision; may be empty
	Time     time.Time // of the build or of the source revision; may be zero
}

// CurrentBuild reads what the Go tool recorded in the binary; version is the
// release given by whoever linked it, or empty. A binary that was built outside
// a repository, as in a container image, has no time but its file's.
func CurrentBuild(version string) Build {
	b := recordedBuild(version)
	if path, err := os.Executable(); b.Time.IsZero() && err == nil {
		if info, err := os.Stat(path); err == nil {
			b.Time = info.ModTime()
		}
	}
	return b
}

func recordedBuild(version string) Build {
	b := Build{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = strings.TrimPrefix(info.Main.Version, "v")
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time, _ = time.Parse(time.RFC3339, s.Value)
		}
	}
	return b
}

// String has Apache's form, 3.9.5-<revision>, built on yyyy-MM-dd HH:mm UTC,
// with a revision that names zooraft: 3.9.5-zooraft-0.1.0-4c2f01ab99d0, built
// on 2026-11-30 10:00 UTC. kazoo reads the digits before the first hyphen;
// the Go client allows letters, digits, points and hyphens before the comma,
// so anything else becomes a hyphen. Without a known time the date is that of
// the epoch, since parsers want one.
func (b Build) String() string {
	parts := []string{CompatibleVersion, "zooraft"}
	if b.Version != "" {
		parts = append(parts, b.Version)
	}
	if b.Revision != "" && !strings.Contains(b.Version, b.Revision[:min(12, len(b.Revision))]) {
		parts = append(parts, b.Revision[:min(12, len(b.Revision))])
	}
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.', c == '-':
			return c
		default:
			return '-'
		}
	}, strings.Join(parts, "-"))
	built := b.Time
	if built.IsZero() {
		built = time.Unix(0, 0)
	}
	return name + ", built on " + built.UTC().Format("2006-01-02 15:04") + " UTC"
}
