package metrics

// Counter counts events or bytes. It goes back to zero only by Reset. Make it with
// NewCounter; all methods may overlap.
type Counter struct {
	n Spread
}

// NewCounter returns a counter that belongs to no registry, in one piece.
func NewCounter() *Counter { return &Counter{Spread{make([]spreadLane, 1)}} }

// Spread spreads a counter that nobody uses yet, for AddBy.
func (c *Counter) Spread() *Counter {
	c.n = NewSpread()
	return c
}

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(0, n) }

// AddBy adds n in the lane of whoever has that number.
func (c *Counter) AddBy(who uint64, n int64) { c.n.Add(who, n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(0, 1) }

// Value returns the count.
func (c *Counter) Value() int64 { return c.n.Load() }

// Reset sets the count to zero.
func (c *Counter) Reset() { c.n.Reset() }
