// Package zooraft runs a ZooKeeper-compatible server inside a Go program, with
// its data in a directory. `zooraft serve` starts its server by this package too.
//
//	cfg := zooraft.DefaultConfig("/var/lib/app/zooraft")
//	srv, err := zooraft.Start(ctx, cfg)
//
// For tests, package zktest is smaller and faster, and breaks things on demand.
//
// The package owns this surface and nothing behind it. It installs no signal
// handler and has no global state; many servers may run in one process.
package zooraft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zooraft/zooraft/internal/admin"
	"github.com/zooraft/zooraft/internal/config"
	"github.com/zooraft/zooraft/internal/server"
)

// Config is everything that a zoo.cfg can say, one struct for each concern:
// Listen, Session, Storage, Limits, Throttle, Security, Words, Containers,
// Ensemble and others. docs/configuration.md describes each value under its
// name in zoo.cfg. Start from DefaultConfig or LoadConfig.
type Config = config.Config

// Member is one server of an ensemble, as a server.N line of a zoo.cfg:
// Config.Ensemble has them in Servers, and says with MyID which one this is.
type Member = config.Member

// PeerAddress is where the other servers reach a Member.
type PeerAddress = config.PeerAddress

var (
	// ErrConfig is returned by Start and LoadConfig when the configuration
	// cannot be used.
	ErrConfig = errors.New("zooraft: the configuration cannot be used")
	// ErrMetrics is returned by Start when the registerer does not take the
	// metrics, for instance because another server's are there by the same names.
	ErrMetrics = errors.New("zooraft: the metrics cannot be registered")
	// ErrListen is returned by Start when the client port cannot be opened.
	ErrListen = server.ErrListen
	// ErrData is returned by Start when the data directory is locked, damaged
	// or another server's. The text says what to do.
	ErrData = server.ErrData
	// ErrFailed is returned by WaitReady when the server has given up or been
	// stopped before it was ready.
	ErrFailed = errors.New("zooraft: the server does not run")
)

// DefaultConfig returns what `zooraft serve` uses without a file, except that
// the client port is any free one: a server alone on 127.0.0.1, its data in
// dataDir.
func DefaultConfig(dataDir string) *Config {
	c := config.Bare()
	c.Listen.Port = 0
	c.Storage.DataDir = dataDir
	return c
}

// LoadConfig reads a zoo.cfg as Apache ZooKeeper reads it. Warnings are about
// lines that have no effect or another one than there.
func LoadConfig(file string, opts ...LoadOption) (cfg *Config, warnings []string, err error) {
	var o loadOptions
	for _, opt := range opts {
		opt(&o)
	}
	cfg, report, err := config.Load(config.Options{File: file, AllowUnprotected: o.allowUnprotected})
	if report != nil {
		for _, w := range report.Warnings {
			warnings = append(warnings, fmt.Sprintf("%s: %s: %s", w.Source, w.Key, w.Text))
		}
	}
	if err != nil {
		return nil, warnings, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return cfg, warnings, nil
}

// LoadOption changes what LoadConfig accepts.
type LoadOption func(*loadOptions)

type loadOptions struct{ allowUnprotected bool }

// AllowUnprotected accepts what `zooraft serve` accepts with its flag
// --allow-unprotected: a file that asks for protection which this version does
// not have.
func AllowUnprotected() LoadOption { return func(o *loadOptions) { o.allowUnprotected = true } }

// Option changes how Start starts.
type Option func(*options)

type options struct {
	logger     *slog.Logger
	version    string
	registerer prometheus.Registerer
}

// WithLogger has the server log to l. Default: slog.Default().
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithMetrics registers the server's metrics with r for as long as it runs,
// under the names that Apache's Prometheus endpoint has. For a prefix or labels,
// and for several servers in one process, wrap r:
//
//	prometheus.WrapRegistererWithPrefix("zk_", r)
//	prometheus.WrapRegistererWith(prometheus.Labels{"server": "1"}, r)
//
// Default: none.
func WithMetrics(r prometheus.Registerer) Option { return func(o *options) { o.registerer = r } }

// WithVersion is the release that the words srvr and envi name beside
// ZooKeeper's. Default: the version of the main module.
func WithVersion(v string) Option { return func(o *options) { o.version = v } }

// Addresses are where a server is reached.
type Addresses struct {
	// Client is the client port, with the number that was taken for port 0.
	Client net.Addr
	// Peer is where the other servers of the ensemble reach this one; nil for a
	// server alone.
	Peer net.Addr
}

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	inner      *server.Server
	cancel     func() bool // detaches the server from its context
	unregister func()      // takes the metrics back

	stopOnce sync.Once     // guards stopErr
	stopErr  error         // set before stopped is closed
	stopped  chan struct{} // closed when Stop has ended
}

// Start starts a server. When it returns, the port is open (and written to
// Config.Listen.PortFile, if that is set) and the data are loaded; clients are served once Ready is closed, which for a server alone is
// at once and for one of an ensemble when there is a leader. When ctx ends the
// server stops, as by Stop.
func Start(ctx context.Context, cfg *Config, opts ...Option) (*Server, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := *cfg // the caller may go on changing its own
	c.Complete()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := c.Storage.CheckDirs(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	inner, err := startInner(ctx, server.Options{Config: &c, Build: admin.CurrentBuild(o.version), Logger: o.logger})
	if err != nil {
		return nil, err
	}
	s := &Server{inner: inner, stopped: make(chan struct{}), unregister: func() {}}
	if o.registerer != nil {
		numbers := &collector{inner.Metrics()}
		if err := o.registerer.Register(numbers); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrMetrics, err), inner.Stop())
		}
		s.unregister = func() { o.registerer.Unregister(numbers) }
	}
	if c.Listen.PortFile != "" {
		if err := s.writePortFile(c.Listen.PortFile); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	s.cancel = context.AfterFunc(ctx, func() { _ = s.stop() })
	return s, nil
}

// startGrace is how long a start whose context has ended may still take to end in
// good order. Our choice: nobody waits for it, and most starts are done by then.
const startGrace = time.Second

// startInner is server.Start for as long as the context goes on.
//
// Refused: a way to break off inside. What is read at a start is judged, and set
// aside where it is found broken; that no half-read file is ever taken for a broken
// one is easiest to see when each is read to its end.
func startInner(ctx context.Context, o server.Options) (*server.Server, error) {
	type result struct {
		server *server.Server
		err    error
	}
	done := make(chan result, 1)
	go func() {
		s, err := server.Start(o)
		done <- result{s, err}
	}()
	select {
	case r := <-done:
		return r.server, r.err
	case <-ctx.Done():
	}
	ended := make(chan error, 1)
	go func() {
		r := <-done
		if r.err == nil {
			r.err = r.server.Stop()
		}
		ended <- r.err
	}()
	grace := time.NewTimer(startGrace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return nil, errors.Join(ctx.Err(), err)
	case <-grace.C:
		return nil, ctx.Err()
	}
}

// Ready is closed once clients are served for the first time.
func (s *Server) Ready() <-chan struct{} { return s.inner.Ready() }

// WaitReady waits for Ready, or returns why that will not come.
func (s *Server) WaitReady(ctx context.Context) error {
	select {
	case <-s.inner.Ready():
		return nil
	case <-s.inner.Failed():
		return fmt.Errorf("%w: %w", ErrFailed, s.inner.Err())
	case <-s.stopped:
		return ErrFailed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Addresses tells where the server is reached.
func (s *Server) Addresses() Addresses {
	return Addresses{Client: s.inner.Addr(), Peer: s.inner.PeerAddr()}
}

// AdminHandler answers what the local admin channel answers, for a server of
// your own: GET /health, /health/live, /words, /words/NAME and /metrics.json. It
// asks nobody who they are; put it only where an operator may look.
func (s *Server) AdminHandler() http.Handler { return s.inner.AdminHandler() }

// Failed is closed when the server has given up by itself, for instance because
// its disk failed; Err then tells why. Stop must be called all the same.
func (s *Server) Failed() <-chan struct{} { return s.inner.Failed() }

// Err is why the server has given up, nil if it has not.
func (s *Server) Err() error { return s.inner.Err() }

// Stopped is closed when the server has stopped, by Stop or with its context.
func (s *Server) Stopped() <-chan struct{} { return s.stopped }

// Stop closes all connections and the data, and returns when nothing of the
// server runs any more. Sessions stay and go on when it is started again. A
// second call waits for the first and returns the same.
func (s *Server) Stop() error {
	s.cancel()
	return s.stop()
}

func (s *Server) stop() error {
	s.stopOnce.Do(func() {
		s.unregister()
		s.stopErr = s.inner.Stop()
		close(s.stopped)
	})
	return s.stopErr
}

// writePortFile writes the client port, for those who asked for any free one.
// The file appears whole or not at all.
func (s *Server) writePortFile(path string) error {
	port := s.inner.Addr().(*net.TCPAddr).Port
	temp := path + ".tmp"
	if err := os.WriteFile(temp, []byte(strconv.Itoa(port)+"\n"), 0o644); err != nil {
		return fmt.Errorf("zooraft: port file: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("zooraft: port file: %w", err)
	}
	return nil
}
