package zktest

import (
	"log/slog"
	"time"

	"github.com/zooraft/zooraft/internal/config"
)

// Option changes how servers are made.
type Option func(*options)

type options struct {
	onDisk      bool
	dir         string // parent of the servers' directories; empty: a new temporary one
	manualClock bool
	logger      *slog.Logger
	tick        time.Duration
	minTimeout  time.Duration
	maxTimeout  time.Duration
	election    time.Duration
	listen      string
}

func makeOptions(opts []Option) options {
	o := options{
		logger: slog.New(slog.DiscardHandler),
		tick:   100 * time.Millisecond, minTimeout: 100 * time.Millisecond, maxTimeout: 10 * time.Minute,
		election: time.Second, listen: freePort,
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// OnDisk keeps the data in files, as production does, below dir; empty means a
// temporary directory that is removed at the end.
func OnDisk(dir string) Option { return func(o *options) { o.onDisk, o.dir = true, dir } }

// ManualClock stops the servers' clock: sessions expire and TTL and container
// nodes go only as Advance moves it. The network, elections included, goes on
// by the machine's clock.
func ManualClock() Option { return func(o *options) { o.manualClock = true } }

// Logger receives what the servers have to say. Default: nobody.
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// Listen is the address of a server alone, host:port. Default: any free port of
// 127.0.0.1, which cannot clash with anybody's.
func Listen(address string) Option { return func(o *options) { o.listen = address } }

// TickTime is ZooKeeper's tickTime, in whole milliseconds: expiry looks once a
// tick. Default 100 ms, so that a session of a second lives hardly longer;
// ZooKeeper's sample has 2 s.
func TickTime(d time.Duration) Option { return func(o *options) { o.tick = d } }

// SessionTimeouts bounds what clients may ask for. Default 100 ms to 10 minutes.
func SessionTimeouts(shortest, longest time.Duration) Option {
	return func(o *options) { o.minTimeout, o.maxTimeout = shortest, longest }
}

// ElectionTimeout is how long servers of an ensemble wait for a silent leader;
// a leader without a majority gives up after half of it. Default 1 s: a test
// machine is often busy, and an election that no fault has caused spoils the
// test. At least 20 ms.
func ElectionTimeout(d time.Duration) Option { return func(o *options) { o.election = d } }

// config is what a server with these options has in place of a zoo.cfg.
func (o *options) config() *config.Config {
	c := config.Bare()
	c.Listen.Port = 0
	c.Listen.MaxConnectionsPerHost = 0
	c.Session.TickTime, c.Session.MinTimeout, c.Session.MaxTimeout = o.tick, o.minTimeout, o.maxTimeout
	c.Ensemble.InitLimit, c.Ensemble.SyncLimit = initTicks, max(2, int(patience/o.tick))
	return c
}

const (
	// initTicks is zoo.cfg's initLimit, which nothing here waits for.
	initTicks = 50
	// patience is how long a server of an ensemble serves reads without a
	// leader before it drops its clients: 2 s.
	patience = 2 * time.Second
)
