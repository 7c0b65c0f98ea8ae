package tree

import (
	"maps"
	"slices"

	"github.com/zooraft/zooraft/internal/proto"
)

// Quota is one quota as operators see it: the limits in force (the hard ones
// where they are set, −1 where there is none) and what the stats node says.
type Quota struct {
	Path                   string // that the quota is for
	CountLimit, BytesLimit int64
	CountUsage, BytesUsage int64
	HasUsage               bool // there is a readable stats node
}

// Quotas lists all quotas in the order of their paths.
func (t *Tree) Quotas() []Quota {
	out := make([]Quota, 0, len(t.quotas))
	for _, prefix := range slices.Sorted(maps.Keys(t.quotas)) {
		q := Quota{Path: prefix, CountLimit: -1, BytesLimit: -1, CountUsage: -1, BytesUsage: -1}
		if i := t.find(limitsPath(prefix)); i != none {
			if u, ok := parseUsage(t.at(i).data); ok {
				q.CountLimit, _ = limit(&u, usageCount, usageCountHard)
				q.BytesLimit, _ = limit(&u, usageBytes, usageBytesHard)
			}
		}
		if i := t.find(statsPath(prefix)); i != none {
			if u, ok := parseUsage(t.at(i).data); ok {
				q.CountUsage, q.BytesUsage, q.HasUsage = u.get(usageCount), u.get(usageBytes), true
			}
		}
		out = append(out, q)
	}
	return out
}

// Namespace is the first component of a path, by which metrics are kept.
func Namespace(path string) string {
	if path == "" || path == proto.PathRoot {
		return ""
	}
	rest := path[1:]
	for i := range len(rest) {
		if rest[i] == '/' {
			return rest[:i]
		}
	}
	return rest
}
