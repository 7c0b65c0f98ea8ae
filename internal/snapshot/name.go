package snapshot

import (
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// SnapshotName returns Apache's name for an uncompressed snapshot.
func SnapshotName(zxid proto.Zxid) string { return "snapshot." + hexZxid(zxid) }

// LogName returns Apache's name for a transaction log that begins with zxid.
func LogName(zxid proto.Zxid) string { return "log." + hexZxid(zxid) }

func hexZxid(zxid proto.Zxid) string { return strconv.FormatUint(uint64(zxid), 16) }

// ParseSnapshotName returns the zxid in a snapshot's name, which may end in
// ".gz" or ".snappy".
func ParseSnapshotName(name string) (proto.Zxid, bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".snappy")
	return parseName(name, "snapshot.")
}

// ParseLogName returns the first zxid of a transaction log from its name.
func ParseLogName(name string) (proto.Zxid, bool) { return parseName(name, "log.") }

func parseName(name, prefix string) (proto.Zxid, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	zxid, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || digits != hexZxid(proto.Zxid(zxid)) {
		return 0, false
	}
	return proto.Zxid(zxid), true
}
