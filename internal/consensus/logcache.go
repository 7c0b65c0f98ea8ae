package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// logOverhead is what one cached entry costs beside its data, roughly.
const logOverhead = 128

// logCache keeps the newest entries of the log in memory, bounded by bytes.
// The library's own LogCache counts entries, which with entries of up to half a
// megabyte is either useless or gigabytes.
//
//	entries[i].Index == entries[0].Index + i
//	bytes == Σ size(entries[i]) ≤ limit
type logCache struct {
	limit int

	mu      sync.Mutex
	entries []*raft.Log // guarded by mu
	bytes   int         // guarded by mu
}

func newLogCache(limit int) *logCache { return &logCache{limit: limit} }

func logSize(l *raft.Log) int { return len(l.Data) + logOverhead }

// add appends entries that have just been stored.
func (c *logCache) add(logs []*raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range logs {
		if n := len(c.entries); n > 0 && c.entries[n-1].Index+1 != l.Index {
			c.dropLocked(n)
		}
		// A copy, because Raft goes on using its own.
		kept := *l
		c.entries = append(c.entries, &kept)
		c.bytes += logSize(l)
	}
	drop := 0
	for bytes := c.bytes; bytes > c.limit; drop++ {
		bytes -= logSize(c.entries[drop])
	}
	c.dropLocked(drop)
}

// get copies an entry out and tells whether it was there.
func (c *logCache) get(index uint64, out *raft.Log) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) == 0 || index < c.entries[0].Index {
		return false
	}
	i := index - c.entries[0].Index
	if i >= uint64(len(c.entries)) {
		return false
	}
	*out = *c.entries[i]
	return true
}

// clear forgets everything; called before entries are removed from the end.
func (c *logCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(len(c.entries))
}

// dropLocked forgets the oldest n entries.
func (c *logCache) dropLocked(n int) {
	for i := range n {
		c.bytes -= logSize(c.entries[i])
		c.entries[i] = nil
	}
	c.entries = c.entries[n:]
	if len(c.entries) == 0 {
		c.entries = nil
	}
}
