package metrics

import "sync/atomic"

// Counter counts events or bytes. It goes back to zero only by Reset. The zero
// value is ready for use; all methods may overlap.
type Counter struct {
	n atomic.Int64
}

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value returns the count.
func (c *Counter) Value() int64 { return c.n.Load() }

// Reset sets the count to zero.
func (c *Counter) Reset() { c.n.Store(0) }
