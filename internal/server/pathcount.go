package server

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/proto"
)

// countedPathsMax bounds the memory of one count: the paths that come first are
// counted. Source: our choice; the hot ones among so many come soon.
const countedPathsMax = 100_000

// countedPathBytes is the longest path that is counted.
const countedPathBytes = 1024

// pathCounts are the counts of requests by path that somebody has asked for. A
// request looks at one pointer while nobody has.
type pathCounts struct {
	mu      sync.Mutex
	running atomic.Pointer[[]*pathCount] // replaced under mu; nil for none
}

// pathCount is one of them.
type pathCount struct {
	mu     sync.Mutex
	byPath map[string]admin.PathLoad // guarded by mu
}

// begin counts from now on, until end is called.
func (p *pathCounts) begin() (end func() []admin.PathLoad) {
	count := &pathCount{byPath: map[string]admin.PathLoad{}}
	p.replace(func(all []*pathCount) []*pathCount { return append(all, count) })
	return func() []admin.PathLoad {
		p.replace(func(all []*pathCount) []*pathCount {
			return slices.DeleteFunc(all, func(c *pathCount) bool { return c == count })
		})
		return count.sorted()
	}
}

// replace changes a copy, because requests read the list without a lock.
func (p *pathCounts) replace(change func([]*pathCount) []*pathCount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*pathCount
	if now := p.running.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = change(all); len(all) == 0 {
		p.running.Store(nil)
		return
	}
	p.running.Store(&all)
}

// note counts a request: that of each op in a multi, none where there is no path.
func (p *pathCounts) note(op proto.OpCode, body []byte) {
	running := p.running.Load()
	if running == nil {
		return
	}
	for _, path := range proto.RequestPaths(op, body) {
		for _, count := range *running {
			count.add(path, op.IsWrite())
		}
	}
}

func (c *pathCount) add(path string, write bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load, known := c.byPath[path]
	if !known && (len(c.byPath) >= countedPathsMax || len(path) > countedPathBytes) {
		return
	}
	load.Path = path
	if write {
		load.Writes++
	} else {
		load.Reads++
	}
	c.byPath[path] = load
}

// sorted lists the paths with the most requests first.
func (c *pathCount) sorted() []admin.PathLoad {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]admin.PathLoad, 0, len(c.byPath))
	for _, load := range c.byPath {
		all = append(all, load)
	}
	slices.SortFunc(all, func(a, b admin.PathLoad) int {
		return cmp.Or(cmp.Compare(b.Reads+b.Writes, a.Reads+a.Writes), cmp.Compare(a.Path, b.Path))
	})
	return all
}

// CountPaths implements admin.Server.
func (r *report) CountPaths() func() []admin.PathLoad { return (*Server)(r).pathCounts.begin() }
