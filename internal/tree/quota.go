package tree

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// Names of the two nodes that make a quota of /p: /zookeeper/quota/p/<name>.
const (
	quotaLimitsName = "zookeeper_limits"
	quotaStatsName  = "zookeeper_stats"
)

func limitsPath(prefix string) string { return proto.PathQuota + prefix + "/" + quotaLimitsName }
func statsPath(prefix string) string  { return proto.PathQuota + prefix + "/" + quotaStatsName }

// quotaNode tells whether path is the limits or stats node of a quota, and the
// path that the quota is for. The stats node of the root ("") is counted when
// it is created, as on Apache, but there is no quota for the root.
func quotaNode(path string) (prefix, name string, ok bool) {
	rest, found := strings.CutPrefix(path, proto.PathQuota)
	if !found || rest == "" || rest[0] != '/' {
		return "", "", false
	}
	cut := strings.LastIndexByte(rest, '/')
	prefix, name = rest[:cut], rest[cut+1:]
	return prefix, name, name == quotaStatsName || name == quotaLimitsName && prefix != ""
}

// quotaFor returns the deepest path with a quota at or above path, "" if there
// is none.
func (t *Tree) quotaFor(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for path != "" {
		if _, ok := t.quotas[path]; ok {
			return path
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	return ""
}

// usage is the text of a limits or stats node: pairs key=number. What is not
// named is −1, which for a limit means none.
type usage struct {
	keys   []string // distinct
	values []int64
}

const (
	usageCount     = "count"
	usageBytes     = "bytes"
	usageCountHard = "countHardLimit"
	usageBytesHard = "byteHardLimit"
)

// maxUsageLen is the longest text of a quota that is read: 256 bytes. Tools
// write half of that; every write below the quota reads it anew.
const maxUsageLen = 256

// parseUsage reads the text; ok is false where Apache's parser throws, and for
// a text that is too long.
func parseUsage(data []byte) (u usage, ok bool) {
	if data == nil || len(data) > maxUsageLen {
		return u, false
	}
	text := strings.TrimRight(string(data), ",;") // Java's split forgets empty parts at the end only
	for i, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		kv := strings.Split(strings.TrimRight(pair, "="), "=")
		if i == 0 && !strings.HasPrefix(text, pair) || len(kv) < 2 {
			return usage{}, false
		}
		v := int64(-1)
		if kv[1] != "" {
			var err error
			if v, err = strconv.ParseInt(kv[1], 10, 64); err != nil {
				return usage{}, false
			}
		}
		u.set(kv[0], v)
	}
	return u, true
}

func (u *usage) get(key string) int64 {
	if i := slices.Index(u.keys, key); i >= 0 {
		return u.values[i]
	}
	return -1
}

func (u *usage) set(key string, v int64) {
	if i := slices.Index(u.keys, key); i >= 0 {
		u.values[i] = v
		return
	}
	u.keys, u.values = append(u.keys, key), append(u.values, v)
}

// text writes count and bytes first, as old readers want it, and then the
// other keys in order.
func (u *usage) text() []byte {
	b := append([]byte(nil), usageCount+"="...)
	b = strconv.AppendInt(b, u.get(usageCount), 10)
	b = append(b, ","+usageBytes+"="...)
	b = strconv.AppendInt(b, u.get(usageBytes), 10)
	var rest []string
	for _, k := range u.keys {
		if k != usageCount && k != usageBytes {
			rest = append(rest, k)
		}
	}
	if len(rest) > 0 {
		b = append(b, '=')
	}
	slices.Sort(rest)
	for _, k := range rest {
		b = append(append(append(b, ';'), k...), '=')
		b = strconv.AppendInt(b, u.get(k), 10)
	}
	return b
}

// checkQuota judges a create (nodes 1) or a change of data by the usage that
// has been applied. Over is the path of a quota whose limit would be exceeded.
// With enforce the code is ErrQuotaExceeded if that limit is hard, and
// ErrMarshalling where Apache fails on an unreadable text.
func (t *Tree) checkQuota(path string, bytes, nodes int64, enforce bool) (over string, code proto.ErrCode) {
	prefix := t.quotaFor(path)
	if prefix == "" {
		return "", proto.ErrOK
	}
	broken := proto.ErrOK
	if enforce {
		broken = proto.ErrMarshalling
	}
	limits, ok := parseUsage(t.at(t.find(limitsPath(prefix))).data)
	if !ok {
		return "", broken
	}
	count, countHard := limit(&limits, usageCount, usageCountHard)
	size, sizeHard := limit(&limits, usageBytes, usageBytesHard)
	checkCount, checkSize := nodes != 0 && count > -1, bytes != 0 && size > -1
	stats := t.find(statsPath(prefix))
	if !checkCount && !checkSize || stats == none {
		return "", proto.ErrOK
	}
	used, ok := parseUsage(t.at(stats).data)
	if !ok {
		return "", broken
	}
	if checkCount && used.get(usageCount)+nodes > count {
		if over = prefix; countHard && enforce {
			return over, proto.ErrQuotaExceeded
		}
	}
	if checkSize && used.get(usageBytes)+bytes > size {
		if over = prefix; sizeHard && enforce {
			return over, proto.ErrQuotaExceeded
		}
	}
	return over, proto.ErrOK
}

// limit returns the hard limit if there is one, else the soft one; −1 is none.
func limit(u *usage, soft, hard string) (value int64, isHard bool) {
	if v := u.get(hard); v > -1 {
		return v, true
	}
	return u.get(soft), false
}

// addUsage books a change on the quota that covers path. It changes neither
// version nor time of the stats node and no watch fires. A missing or
// unreadable stats node is left alone (the latter ends Apache's server).
func (t *Tree) addUsage(path string, bytes, nodes int64) {
	prefix := t.quotaFor(path)
	if prefix == "" {
		return
	}
	p := statsPath(prefix)
	i := t.find(p)
	if i == none {
		return
	}
	u, ok := parseUsage(t.at(i).data)
	if !ok {
		return
	}
	u.set(usageCount, u.get(usageCount)+nodes)
	u.set(usageBytes, u.get(usageBytes)+bytes)
	t.putUsage(i, p, &u)
}

// quotaCreated keeps the registry and recounts when a quota's node appears.
func (t *Tree) quotaCreated(path string) {
	prefix, name, ok := quotaNode(path)
	switch {
	case !ok:
	case name == quotaLimitsName:
		t.quotas[prefix] = struct{}{}
	default:
		t.recount(prefix)
	}
}

func (t *Tree) quotaDeleted(path string) {
	if prefix, name, ok := quotaNode(path); ok && name == quotaLimitsName {
		delete(t.quotas, prefix)
	}
}

// recount writes the true usage of prefix into its stats node.
func (t *Tree) recount(prefix string) {
	p := statsPath(prefix)
	i := t.find(p)
	if i == none {
		return
	}
	var u usage
	count, bytes := t.measure(t.find(prefix))
	u.set(usageCount, count)
	u.set(usageBytes, bytes)
	t.putUsage(i, p, &u)
}

// measure counts the nodes of a subtree and the bytes of their data.
func (t *Tree) measure(top uint32) (count, bytes int64) {
	if top == none {
		return 0, 0
	}
	t.below(top, func(n *node) { count++; bytes += int64(len(n.data)) })
	n := t.at(top)
	return min(count+1, math.MaxInt32), bytes + int64(len(n.data))
}

func (t *Tree) putUsage(i uint32, path string, u *usage) {
	n := t.edit(i)
	t.putData(n, path, u.text())
	t.seal(n, path)
}
